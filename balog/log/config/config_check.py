"""Check a logger's config before it is used, and report all of its problems at once. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator

from balog.common import config as configs
from balog.common.config.problems import intact
from balog.common.errors import BalogError, ConfigError
from balog.common.redaction import from_config
from balog.filters import Expression
from balog.log.config.logger_config import LoggerConfig, OutputConfig
from balog.log.levels import parse_threshold
from balog.log.outputs import open_output


def find_logger_problems(path: str | os.PathLike[str]) -> list[ConfigError]:
    """Return all problems of a config of ``balog.configure``, without connecting to servers.

    Raises:
        ConfigError: there is no such file, or it is not JSON.
    """
    document, problems = configs.read(path)
    source = str(path)
    problems = configs.add_problems(problems, configs.find_problems(document, LoggerConfig, source))
    config, _, original = intact(document, LoggerConfig)
    if config is not None:
        problems += (ConfigError(problem.reason, source, original(problem.path)) for problem in _meaning(config))
    return problems


def _meaning(config: LoggerConfig) -> Iterator[ConfigError]:
    yield from _level(config.level, "$.level")
    for pattern, level in config.levels.items():
        yield from _level(level, f"$.levels[{pattern!r:.80}]")
    if config.redact is not False:
        try:
            from_config(config.redact)
        except BalogError as error:
            yield ConfigError(getattr(error, "reason", str(error)), path="$.redact")
    several = isinstance(config.output, list)
    outputs = config.output if isinstance(config.output, list) else [config.output]
    for number, output in enumerate(outputs):
        yield from _target(output, f"$.output[{number}]" if several else "$.output")
        if isinstance(output, OutputConfig):
            yield from _level(output.level, f"$.output[{number}].level")
            if output.where is not None:
                try:
                    Expression(output.where)
                except ConfigError as error:
                    yield ConfigError(error.reason, path=f"$.output[{number}].where")


def _target(output: str | OutputConfig | None, path: str) -> Iterator[ConfigError]:
    """Yield the problems of an output. An output opens at its first event, so this creates nothing."""
    to = output.to if isinstance(output, OutputConfig) else output
    if to is None:
        return
    if isinstance(output, OutputConfig):
        path += ".to"
    try:
        open_output(to)
    except ConfigError as error:
        inner = error.path or "$"
        if inner.startswith("$"):
            yield ConfigError(error.reason, path=path + inner[1:])
        else:
            yield ConfigError(f"{inner}: {error.reason}", path=path)
    except BalogError as error:
        yield ConfigError(str(error), path=path)


def _level(name: str | None, path: str) -> Iterator[ConfigError]:
    try:
        parse_threshold("INFO" if name is None else name)
    except ConfigError as error:
        yield ConfigError(error.reason, path=path)
