"""The settings of the logger: arguments, a config file and the environment, merged."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Meta, Struct

from balog.common import config as configs
from balog.common.errors import ConfigError, split_refusal
from balog.common.redaction_options import REDACTION_SCHEMA
from balog.event import Event
from balog.log.levels import Pattern
from balog.log.outputs import LogOutput
from balog.log.outputs.objects import is_object, object_name


class Writable(Protocol):
    """A text or binary stream."""

    def write(self, data: Any, /) -> object:
        """Write a line."""


Where = str | Mapping[str, Any] | Callable[[Event], object] | Writable | LogOutput


_VARIABLES = ("BALOG_CONFIG", "BALOG_OUTPUT", "BALOG_LEVEL")
_NAME = re.compile(r"\$\.?(\w*)(.*)", re.DOTALL)


class OutputConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """One output: ``to`` is its name, its URL or a sink's config; ``where`` is a filter in the expression language."""

    to: str | dict[str, Any]
    level: str | None = None
    where: Annotated[str, Meta(description="The events that the output gets, in the expression language.")] | None = (
        None
    )


class LoggerConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """A logger's config file. ``configure`` describes each key."""

    examples: ClassVar = (
        {
            "output": "local:topics#shop",
            "level": "INFO",
            "levels": {"urllib3.*": "WARNING"},
            "application": "shop",
        },
        {
            "output": ["stderr", {"to": {"type": "statsd"}, "level": "INFO", "where": "cls_type = 'metric'"}],
            "redact": {"emails": True},
            "callsite": True,
        },
    )

    output: str | OutputConfig | list[str | OutputConfig] | None = None
    level: str | None = None
    levels: Annotated[
        dict[Pattern, str], Meta(description="The lowest level that passes, by patterns of channels such as urllib3.*.")
    ] = {}
    application: Annotated[str, Meta(description="The application's name in the context of events.")] | None = None
    redact: bool | Annotated[dict[str, Any], Meta(extra_json_schema=REDACTION_SCHEMA)] = True
    validate: Annotated[
        Literal["off", "tag", "raise"],
        Meta(description="Check payloads of declared types: report errors in payload.problem (tag), or raise them."),
    ] = "off"
    callsite: Annotated[bool, Meta(description="Write file, line and func of each call into the context.")] = False
    strict: Annotated[
        bool, Meta(description="Raise errors of logging instead of writing the event as well as possible.")
    ] = False

    @staticmethod
    def extend_schema(definitions: dict[str, Any]) -> list[Any]:
        """Add the parts that other structs decode, and return their types: sinks, levels, outputs."""
        from balog.log.config.logger_schema import extend

        return extend(definitions)


def list_outputs(output: Where | Sequence[Where]) -> tuple[list[Any], dict[int, Any]]:
    """Return the outputs as in a config file, objects by their names; and the objects, by their index in the list."""
    is_one = isinstance(output, (str, Mapping)) or is_object(output) or not isinstance(output, Iterable)
    entries: list[Any] = []
    objects: dict[int, Any] = {}
    for number, where in enumerate([output] if is_one else output):  # type: ignore[arg-type]
        entry = {"to": where} if isinstance(where, Mapping) and "to" not in where else where
        to = entry["to"] if isinstance(entry, Mapping) else entry
        if isinstance(to, msgspec.Struct) and not is_object(to):  # the config of a sink, as an object
            to = msgspec.to_builtins(to)
            entry = {**entry, "to": to} if isinstance(entry, Mapping) else {"to": to}
        if not isinstance(to, (str, Mapping)) and is_object(to):
            objects[number] = to
            entry = {**entry, "to": object_name(to)} if isinstance(entry, Mapping) else object_name(to)
        entries.append(entry)
    return entries, objects


def merge_settings(
    given: dict[str, Any], config: str | os.PathLike[str] | None = None, ignored: Container[str] = ()
) -> tuple[LoggerConfig, dict[str, str]]:
    """Merge arguments, the config file and the environment; return the settings and the source of each.

    Args:
        ignored: environment variables to skip.
    """
    environment = {name: os.environ.get(name) or None for name in _VARIABLES if name not in ignored}
    path = config or environment.get("BALOG_CONFIG")
    settings = LoggerConfig() if path is None else _read(path)
    sources = dict.fromkeys(LoggerConfig.__struct_fields__, str(path))
    try:
        checked = msgspec.convert(given, LoggerConfig)
    except msgspec.ValidationError as error:
        reason, where = split_refusal(error)
        name, rest = _NAME.match(where).groups()  # type: ignore[union-attr]
        raise ConfigError(reason, f"configure({name}=…)", rest) from None
    changes = {name: getattr(checked, name) for name in given}
    sources |= {name: f"configure({name}=…)" for name in given}
    if changes.get("output", settings.output) is None:
        changes["output"], sources["output"] = _outputs_of(environment.get("BALOG_OUTPUT")), "BALOG_OUTPUT"
    if changes.get("level", settings.level) is None:
        changes["level"], sources["level"] = environment.get("BALOG_LEVEL"), "BALOG_LEVEL"
    return msgspec.structs.replace(settings, **changes), sources


def _read(path: str | os.PathLike[str]) -> LoggerConfig:
    if not str(path).endswith(".env"):
        return configs.load(path, LoggerConfig)
    variables = configs.load_env(path, ("BALOG_OUTPUT", "BALOG_LEVEL", "BALOG_RUN_ID"))
    if variables.get("BALOG_RUN_ID"):
        os.environ.setdefault("BALOG_RUN_ID", variables["BALOG_RUN_ID"])
    return LoggerConfig(output=_outputs_of(variables.get("BALOG_OUTPUT")), level=variables.get("BALOG_LEVEL") or None)


def _outputs_of(text: str | None) -> list[str | OutputConfig] | None:
    return [part.strip() for part in (text or "").split(",") if part.strip()] or None
