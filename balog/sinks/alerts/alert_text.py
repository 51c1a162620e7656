"""The title and the text of an alert for people, from templates such as ``{state}: {monitor}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from msgspec import Meta

from balog.common.errors import ConfigError, EventError
from balog.common.text import cut, one_line, suggest
from balog.event import Event
from balog.event.payload import AlertPayload, read

DEFAULT_TITLE = "{state}: {monitor} {series}"
DEFAULT_TEXT = "{reason}"

MAX_TITLE = 250
"""Characters of a title."""

MAX_TEXT = 2000
"""Characters of a text."""

_MAX_VALUE = 1000
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z_]+(?:\.[^{}\s]{1,100})?)\}|[{}]")

Template = Annotated[
    str, Meta(min_length=1, max_length=2000, description="A text with fields of the alert, such as {monitor}.")
]


def _number(value: float | str | None) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else value or ""


def _series(alert: AlertPayload) -> str:
    names = [alert.labels[name] for name in ("pipeline", "stream") if alert.labels.get(name)]
    return " / ".join(names) or alert.key


def _expected(alert: AlertPayload) -> str:
    band = alert.expected
    if band is None or (band.low is None and band.high is None):
        return ""
    if band.low is None:
        return f"at most {_number(band.high)}"
    return f"at least {_number(band.low)}" if band.high is None else f"{_number(band.low)} to {_number(band.high)}"


_FIELDS: Mapping[str, Callable[[AlertPayload], str]] = {
    "monitor": lambda alert: alert.monitor,
    "kind": lambda alert: alert.kind,
    "state": lambda alert: alert.state.replace("_", " "),
    "previous": lambda alert: (alert.previous or "").replace("_", " "),
    "severity": lambda alert: alert.severity,
    "series": _series,
    "pipeline": lambda alert: alert.labels.get("pipeline", ""),
    "stream": lambda alert: alert.labels.get("stream", ""),
    "labels": lambda alert: ", ".join(f"{name}={value}" for name, value in sorted(alert.labels.items())),
    "value": lambda alert: _number(alert.value),
    "expected": _expected,
    "reason": lambda alert: alert.reason,
    "since": lambda alert: alert.since,
    "started": lambda alert: alert.started or "",
    "runs": lambda alert: ", ".join(alert.evidence.runs),
    "link": lambda alert: alert.evidence.link or "",
    "key": lambda alert: alert.key,
    "incident": lambda alert: alert.incident,
}
"""Field of a template -> its text."""


class AlertTemplate:
    """A template with checked fields; ``{labels.NAME}`` is one label, and ``{{`` is a brace.

    Args:
        text: the template.
        path: the field of the config that has it, for errors.

    Raises:
        ConfigError: a field is unknown, or a brace is not closed.
    """

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        for match in _PLACEHOLDER.finditer(text):
            if match[0] in ("{", "}"):
                raise ConfigError(f"has a single {match[0]}; write {match[0] * 2} for a brace", path=path)
            name = (match[1] or "").partition(".")
            if match[1] and name[0] not in _FIELDS:
                raise ConfigError(
                    f"has the unknown field {match[1]!r}{suggest(name[0], [*_FIELDS, 'labels.NAME'])}", path=path
                )
            if name[1] and name[0] != "labels":
                raise ConfigError(f"has {match[1]!r}, but only labels have parts, such as labels.stream", path=path)

    def render(self, alert: AlertPayload, longest: int, escape: Callable[[str], str] = str) -> str:
        """Return the text of an alert: 1 to ``longest`` printable characters and newlines of the template.

        Args:
            escape: applied to each value; what it adds counts, and is not cut through.
        """
        room = max(1, longest - len(_PLACEHOLDER.sub("", self._text)))

        def fill(match: re.Match[str]) -> str:
            nonlocal room
            if match[1] is None:
                return match[0][0]
            value = escape(cut(short_line(_value(alert, match[1])), min(_MAX_VALUE, longest)))
            if len(value) > room:
                value = "…" if room else ""
            room -= len(value)
            return value

        text = "\n".join(" ".join(line.split()) for line in _PLACEHOLDER.sub(fill, self._text).splitlines()).strip()
        return cut(text or "alert", longest)


def read_alert(event: Event) -> AlertPayload | None:
    """Return the payload of an alert; None for another event, or one that does not match its type."""
    if event.cls_type != "alert":
        return None
    try:
        alert = read(event)
    except EventError:
        return None
    return alert if isinstance(alert, AlertPayload) else None


def facts(alert: AlertPayload) -> dict[str, str]:
    """Return what people want to know beside the text: name -> value, each on one line, without empty ones."""
    values = {name.capitalize(): short_line(_FIELDS[name](alert)) for name in ("severity", "value", "expected")}
    values["Started" if alert.state != "resolved" else "Resolved"] = _moment(alert)
    values["Runs"] = cut(short_line(_FIELDS["runs"](alert)), 200)
    return {name: cut(value, 500) for name, value in values.items() if value}


def short_line(text: str) -> str:
    """Return the beginning of a text on one line, without control characters."""
    return one_line(text[: _MAX_VALUE * 4])


def _moment(alert: AlertPayload) -> str:
    return short_line((alert.since if alert.state == "resolved" else alert.started) or alert.since)


def _value(alert: AlertPayload, name: str) -> str:
    field, _, label = name.partition(".")
    return alert.labels.get(label, "") if label else _FIELDS[field](alert)
