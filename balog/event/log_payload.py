"""The payload of a log line. Loggers import it without the other payload types, which take longer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Frame(Struct, omit_defaults=True, kw_only=True):
    """One frame of a traceback; ``locals``, if configured, are texts."""

    file: str = ""
    line: int | None = None
    function: str = ""
    locals: dict[str, str] | None = None


class ExceptionInfo(Struct, omit_defaults=True, kw_only=True):
    """An exception as data.

    ``type`` is the class's dotted name, and ``frames`` begin with the outermost. ``cause`` is of ``raise … from``,
    ``context`` was being handled, ``exceptions`` are a group's, ``omitted`` the number of those that are not here.
    ``language`` is that of a program whose crash report the sidecar reads, such as ``java``.
    """

    type: str
    message: str = ""
    language: str = ""
    notes: list[str] = []
    frames: list[Frame] = []
    cause: ExceptionInfo | None = None
    context: ExceptionInfo | None = None
    exceptions: list[ExceptionInfo] = []
    omitted: int = 0


class LogPayload(Struct, tag_field="cls_type", tag="log", omit_defaults=True, kw_only=True):
    """A readable log line; ``log_payload`` makes one.

    ``fields`` has the call's other fields, ``exc_text`` the whole traceback.
    """

    message: str
    version: str = "1.0.0"
    severity: str | None = None
    logger: str | None = None
    fields: dict[str, Any] | None = None
    exception: ExceptionInfo | None = None
    exc_text: str | None = None
    problem: str | None = None


def log_payload(message: str, severity: str, **parts: Any) -> dict[str, Any]:
    """Return a ``log`` payload; ``parts`` are fields of ``LogPayload``, without empty ones."""
    payload: dict[str, Any] = {"cls_type": "log", "version": "1.0.0", "message": message, "severity": severity}
    for key, part in parts.items():
        if part:
            payload[key] = part
    return payload
