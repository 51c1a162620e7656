"""Looking at a config before it runs: everything that is wrong with it at once, and whether its sinks are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from balog import config as configs
from balog.broker.chaining import Chaining
from balog.broker.config import BrokerConfig
from balog.broker.quarantine import Quarantine, QuarantineConfig
from balog.broker.records.rules import refused_parts
from balog.broker.run_config import RunConfig
from balog.errors import BalogError, ConfigError
from balog.expressions import Expression
from balog.local_path import local_path
from balog.problems import problems
from balog.sinks import SinkConfig, SinkError

__all__ = ["Reach", "find_problems", "notes", "reach"]


class Reach(NamedTuple):
    """Whether a sink's other side answered: ``trouble`` is empty, or says why not."""

    name: str
    trouble: str


def find_problems(path: str | os.PathLike[str], type: Any = BrokerConfig) -> tuple[Any, list[ConfigError]]:
    """Read a config file and find all that is wrong with it, short of asking other machines.

    Secrets are looked up, expressions compiled, folders tried.

    Args:
        type: the struct that the file should be.

    Returns:
        The config, or None when it can't be read, and the problems.

    Raises:
        ConfigError: there is no such file, or it is not JSON.
    """
    document = configs.load(path, Any)
    source = str(path)
    found = problems(document, type, source)
    if found:
        return None, found
    config = msgspec.convert(document, type)
    return config, [ConfigError(error.reason, error.source or source, error.path) for error in _meaning(config)]


def _meaning(config: Any) -> Iterator[ConfigError]:
    """Find what only building the parts shows."""
    sinks: Sequence[SinkConfig] = getattr(config, "sinks", None) or ([config] if hasattr(config, "build") else [])
    for number, sink in enumerate(sinks):
        place = f"$.sinks[{number}]" if hasattr(config, "sinks") else "$"
        yield from _at(place, sink.build)
        if sink.where is not None:
            yield from _at(f"{place}.where", Expression, sink.where)
    if isinstance(config, BrokerConfig):
        refused = refused_parts(config.records)
        yield from refused
        bare = msgspec.structs.replace(config, batch=None, state=None)
        yield from _at("", _build_editors, msgspec.structs.replace(bare, records=[]) if refused else bare)
        for name in ("batch", "state"):  # each alone, so that what is wrong with one hides nothing of the other
            alone = msgspec.structs.replace(bare, records=[], schemas=[], **{name: getattr(config, name)})
            yield from _at("", _build_editors, alone)
    elif isinstance(config, RunConfig):
        yield from _at("", config.check)
    if (quarantine := getattr(config, "quarantine", None)) is not None:
        yield from _at("", _open_quarantine, quarantine)
    if config.spool is not None:
        wrong = list(_at("", local_path, config.spool.path, "$.spool.path"))
        yield from wrong or _writable("$.spool.path", local_path(config.spool.path))


def _build_editors(config: BrokerConfig) -> None:
    Chaining(
        config,
        lambda _: None,
        position=lambda: 0,
        durable=lambda: 0,
        quarantine=None,
        sleep=lambda _: None,
    )


def _open_quarantine(config: QuarantineConfig) -> None:
    """Open the file, and leave no new one."""
    existed = Path(config.path).exists()
    Quarantine(config, lambda _: None).close()
    if not existed:
        with suppress(OSError):
            os.unlink(config.path)


def _at(place: str, build: Callable[..., object], *arguments: Any) -> Iterator[ConfigError]:
    try:
        build(*arguments)
    except ConfigError as error:
        inner = error.path.removeprefix("$").removeprefix(".")
        yield ConfigError(error.reason, error.source, ".".join(part for part in (place or "$", inner) if part))
    except BalogError as error:  # an extra that is missing
        yield ConfigError(str(error), path=place or "$")


def _writable(place: str, path: str) -> Iterator[ConfigError]:
    """See whether a folder can be made or written to, without making it."""
    folder = Path(path).absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield ConfigError(f"{folder} is no folder that this user may write to", path=place)


def notes(config: Any) -> Iterator[str]:
    """Give what is allowed and worth a thought."""
    if config.spool is None and getattr(config, "sinks", True):
        yield "without a spool, events that a sink does not take in time are lost; they are counted on stderr"


def reach(sinks: Sequence[SinkConfig]) -> Iterator[Reach]:
    """Try the other side of each sink; nothing is delivered."""
    for config in sinks:
        sink = config.build()
        trouble = ""
        try:
            sink.open()
            if (probe := getattr(sink, "probe", None)) is not None:
                probe()
        except SinkError as error:
            trouble = str(error)
        finally:
            with suppress(SinkError):
                sink.close()
        yield Reach(config.name, trouble)
