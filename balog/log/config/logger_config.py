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
from balog.log.outputs.objects import ObjectName, is_object


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


def list_outputs(output: Where | Sequence[Where]) -> list[Any]:
    """Return the outputs as a list, with a sink's config as the ``to`` of an output, and objects by their names."""
    is_one = isinstance(output, (str, Mapping)) or is_object(output) or not isinstance(output, Iterable)
    return [_entry(where) for where in ([output] if is_one else output)]  # type: ignore[union-attr]


def _entry(output: Any) -> Any:
    if isinstance(output, Mapping):
        return {**output, "to": _named(output["to"])} if "to" in output else {"to": output}
    return _named(output)


def _named(output: Any) -> Any:
    return output if isinstance(output, (str, Mapping)) or not is_object(output) else ObjectName.of(output)


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
    settings = msgspec.structs.replace(settings, **{name: getattr(checked, name) for name in given})
    sources |= {name: f"configure({name}=…)" for name in given}
    if settings.output is None:
        settings.output, sources["output"] = _outputs_of(environment.get("BALOG_OUTPUT")), "BALOG_OUTPUT"
    if settings.level is None:
        settings.level, sources["level"] = environment.get("BALOG_LEVEL"), "BALOG_LEVEL"
    return settings, sources


def _read(path: str | os.PathLike[str]) -> LoggerConfig:
    if not str(path).endswith(".env"):
        return configs.load(path, LoggerConfig)
    variables = configs.load_env(path, ("BALOG_OUTPUT", "BALOG_LEVEL", "BALOG_RUN_ID"))
    if variables.get("BALOG_RUN_ID"):
        os.environ.setdefault("BALOG_RUN_ID", variables["BALOG_RUN_ID"])
    return LoggerConfig(output=_outputs_of(variables.get("BALOG_OUTPUT")), level=variables.get("BALOG_LEVEL") or None)


def _outputs_of(text: str | None) -> list[str | OutputConfig] | None:
    return [part.strip() for part in (text or "").split(",") if part.strip()] or None
