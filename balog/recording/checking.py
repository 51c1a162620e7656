"""Looking at a logger's config before it is used: everything that is wrong with it at once. No output is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator

from balog import config as configs
from balog.errors import BalogError, ConfigError
from balog.event import LEVELS, parse_level
from balog.expressions import Expression
from balog.problems import intact, problems
from balog.recording.configuring import LoggerConfig, OutputConfig
from balog.redaction import from_config

__all__ = ["find_logger_problems"]


def find_logger_problems(path: str | os.PathLike[str]) -> list[ConfigError]:
    """Return all that is wrong with a config of ``balog.configure``, short of opening its outputs.

    Raises:
        ConfigError: there is no such file, or it is not JSON.
    """
    document, found = configs.read(path)
    source = str(path)
    found += problems(document, LoggerConfig, source)
    config, _, original = intact(document, LoggerConfig)
    if config is not None:
        found += (ConfigError(one.reason, source, original(one.path)) for one in _meaning(config))
    return found


def _meaning(config: LoggerConfig) -> Iterator[ConfigError]:
    yield from _level(config.level, "$.level")
    if config.redact is not False:
        try:
            from_config(config.redact)
        except BalogError as error:
            yield ConfigError(getattr(error, "reason", str(error)), path="$.redact")
    outputs = config.output if isinstance(config.output, list) else []
    for number, output in enumerate(outputs):
        if isinstance(output, OutputConfig):
            yield from _level(output.level, f"$.output[{number}].level")
            if output.where is not None:
                try:
                    Expression(output.where)
                except ConfigError as error:
                    yield ConfigError(error.reason, path=f"$.output[{number}].where")


def _level(name: str | None, path: str) -> Iterator[ConfigError]:
    if name is not None and parse_level(name) is None:
        yield ConfigError(f"no level {name[:40]!r}; there are {', '.join(LEVELS)}", path=path)
