"""Check a config before it runs: report all problems at once, and probe its sinks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from balog.broker.config import BrokerConfig, RunConfig
from balog.broker.editor_chain import build_editors
from balog.broker.quarantine import Quarantine, QuarantineConfig
from balog.broker.records.compiled_rule import refused_parts
from balog.common import config as configs
from balog.common.config.problems import intact
from balog.common.errors import BalogError, ConfigError, ConfigProblems
from balog.common.local_path import local_path
from balog.delivery.attempt import reason_of
from balog.filters import Expression
from balog.sinks import Sink, SinkConfig


class Reach(NamedTuple):
    """The result of probing a sink; ``error`` is empty if it answered. ``note`` is for people."""

    name: str
    error: str
    note: str = ""


def find_problems(path: str | os.PathLike[str], type: Any = BrokerConfig) -> tuple[Any, list[ConfigError]]:
    """Read a config file and find all of its problems, without connecting to other machines.

    Secrets are looked up, expressions compiled, folders tried.

    Args:
        type: the struct that the file should be.

    Returns:
        The config, or None when it can't be read, and the problems.

    Raises:
        ConfigError: there is no such file, or it is not JSON.
    """
    document, twice = configs.read(path)
    config, problems = find_in_document(document, type, str(path))
    return config, configs.add_problems(twice, problems)


def find_in_document(document: Any, type: Any, source: str, root: str = "$") -> tuple[Any, list[ConfigError]]:
    """Find all problems of a config that is already read; see ``find_problems``.

    Args:
        source: its file, for the errors.
        root: where the config is in that file.
    """
    errors = [
        ConfigError(each.reason, source, root + each.path[1:]) for each in configs.find_problems(document, type, source)
    ]
    config, left_out, original = intact(document, type)
    if config is None:
        return None, errors
    for error in _meaning(config, left_out):
        path = error.path if error.source else original(error.path)
        if not any(path == part or path.startswith((f"{part}.", f"{part}[")) for part in left_out):
            errors.append(ConfigError(error.reason, error.source or source, path if error.source else root + path[1:]))
    return (None if left_out else config), errors


def complete(error: ConfigError, path: str | os.PathLike[str], type: Any = BrokerConfig) -> ConfigError:
    """Return all problems of an invalid config, as ``balog check`` does, including the known one.

    Args:
        error: why it was refused.
        path: its file.
        type: as of ``find_problems``.
    """
    try:
        _, problems = find_problems(path, type)
    except ConfigError as unreadable:
        return unreadable
    if problems and (not error.source or error.source == str(path)):
        return ConfigProblems(problems)
    return ConfigError(error.reason, error.source or str(path), error.path)


@contextmanager
def complete_errors(path: str | os.PathLike[str], type: Any = BrokerConfig) -> Iterator[None]:
    """Replace a ConfigError that the block raises by the problems of ``complete``."""
    try:
        yield
    except ConfigError as error:
        raise complete(error, path, type) from None


def _meaning(config: Any, left_out: Sequence[str] = ()) -> Iterator[ConfigError]:
    """Find the problems that show only when the parts are built.

    Args:
        left_out: paths of parts that are wrong, and not in ``config``.
    """
    is_sink = hasattr(config, "build")
    parts = {part.removeprefix("$.") for part in left_out}
    sinks: Sequence[SinkConfig] = getattr(config, "sinks", None) or ([config] if is_sink else [])
    if is_sink and parts - {"spool", "strip", "drain"}:
        sinks = []  # its problems are reported already
    for number, sink in enumerate(sinks):
        path = f"$.sinks[{number}]" if hasattr(config, "sinks") else "$"
        yield from _at(path, _build_sink, sink)
        if sink.where is not None:
            yield from _at(f"{path}.where", Expression, sink.where)
    if isinstance(config, BrokerConfig):
        yield from refused_parts(config.records)
        bare = msgspec.structs.replace(config, batch=None, state=None, records=[])
        for name in ("batch", "state"):  # each alone, so that a problem of one does not hide another's
            alone = msgspec.structs.replace(bare, **{name: getattr(config, name)})
            yield from _at("", _build_editors, alone)
    elif isinstance(config, RunConfig):
        yield from _at("", config.patterns)
    if (quarantine := getattr(config, "quarantine", None)) is not None:
        yield from _at("", _open_quarantine, quarantine)
    if config.spool is not None:
        wrong = list(_at("", local_path, config.spool.path, "$.spool.path"))
        yield from wrong or _writable("$.spool.path", local_path(config.spool.path))


def _build_sink(config: SinkConfig) -> Sink:
    """Build a sink; what another package does wrong is a problem of the config."""
    try:
        sink = config.build()
    except BalogError:
        raise
    except Exception as error:
        raise ConfigError(f"the sink cannot be built: {type(error).__name__}: {error}") from error
    for method in ("open", "write", "close"):
        if not callable(getattr(sink, method, None)):
            raise ConfigError(f"the sink cannot be used: its {type(sink).__name__} has no {method}()")
    return sink


def _build_editors(config: BrokerConfig) -> None:
    build_editors(config, lambda _: None, position=lambda: 0, durable=lambda: 0, quarantine=None)


def _open_quarantine(config: QuarantineConfig) -> None:
    """Open the file, and remove it if it is new."""
    existed = Path(config.path).exists()
    Quarantine(config, lambda _: None).close()
    if not existed:
        with suppress(OSError):
            os.unlink(config.path)


def _at(path: str, build: Callable[..., object], *arguments: Any) -> Iterator[ConfigError]:
    try:
        build(*arguments)
    except ConfigError as error:
        inner = error.path.removeprefix("$").removeprefix(".")
        yield ConfigError(error.reason, error.source, ".".join(part for part in (path or "$", inner) if part))
    except BalogError as error:  # a missing extra
        yield ConfigError(str(error), path=path or "$")


def _writable(config_path: str, path: str) -> Iterator[ConfigError]:
    """Check whether a folder can be created or written to, without creating it."""
    folder = Path(path).absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:  # permissions are not enough: a file system may be read-only or accept no files
        with tempfile.TemporaryDirectory(prefix=".balog-check-", dir=folder):
            return
    except OSError:
        yield ConfigError(f"{folder} is no folder that this user may write to", path=config_path)


def notes(config: Any) -> Iterator[str]:
    """Yield warnings about valid settings."""
    if config.spool is None and getattr(config, "sinks", True):
        yield "without a spool, events that a sink does not take in time are lost; they are counted on stderr"


def reach(sinks: Sequence[SinkConfig]) -> Iterator[Reach]:
    """Probe each sink without delivering anything."""
    for config in sinks:
        sink = config.build()
        failure, note = "", ""
        try:
            sink.open()
            if (probe := getattr(sink, "probe", None)) is not None:
                note = probe() or ""
        except Exception as error:  # a sink of another package may raise anything
            failure = reason_of(error)
        finally:
            with suppress(Exception):
                sink.close()
        yield Reach(config.name, failure, note)
