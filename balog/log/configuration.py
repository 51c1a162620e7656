"""Configure logging in one call, from a JSON file or from the environment. Configuring again is safe."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from balog.common.ending import seconds_left
from balog.common.errors import ConfigError, complain
from balog.common.text import counted
from balog.log import exit_hooks
from balog.log.assembly import build_recorder
from balog.log.config.environment import apply_environment
from balog.log.config.logger_config import Where, list_outputs, merge_settings
from balog.log.context import run_id
from balog.log.levels import parse_threshold
from balog.log.outputs.queued import QueuedOutput, flush_all
from balog.log.recorder import Recorder

if TYPE_CHECKING:
    from balog.common.redaction import Redactor

_current: Recorder | None = None
_program: tuple[str | None, str | None] = (None, None)
_diverted: Callable[[Recorder], Recorder] | None = None
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def introduced(application: str, version: str | None = None) -> Iterator[None]:
    """Name the application for the block, unless ``configure`` or a config file does."""
    global _program
    before, _program = _program, (application, version)
    try:
        yield
    finally:
        _program = before


def current() -> Recorder:
    """Return the process's recorder, configured from the environment if nothing else has configured it."""
    return _current or _configure_from_environment()


def configure(
    output: Where | Sequence[Where] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    level: str | None = None,
    levels: Mapping[str, str] | None = None,
    application: str | None = None,
    redact: bool | Mapping[str, Any] | None = None,
    validate: Literal["off", "tag", "raise"] | None = None,
    callsite: bool | None = None,
    strict: bool | None = None,
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
) -> None:
    """Configure where events go, from which level on, and how they are processed. Existing loggers follow.

    Arguments that you omit come from ``config``, then from the environment, then from the defaults below.

    Args:
        output: ``singer`` (LOG messages on stdout), ``stderr`` (JSON lines), ``console`` (lines for people),
            ``logging`` (the standard library's handlers), a callable (called with each ``Event``), a text or binary
            stream (JSON lines), a URL such as ``file:app.jsonl`` or
            ``local:topics?topic=events``, a sink's config; or a list of these, each also as
            ``{"to": …, "level": …, "where": …}``. Default: ``BALOG_OUTPUT`` (separated by commas), else ``console`` if
            stderr is a terminal and ``stderr`` if it is not.
        config: a JSON file with these names as keys, or a ``.env`` file with lines ``BALOG_OUTPUT=…``. Default:
            ``BALOG_CONFIG``.
        level: the lowest level that is written. Default: ``BALOG_LEVEL``, else ``INFO``. An output's own level
            replaces it for that output.
        levels: the lowest levels of channels by pattern, such as ``{"singer.*": "WARNING"}``; the most specific
            pattern wins, see ``balog.log.levels.ChannelLevels``. ``OFF`` turns a channel off. An output's own
            level applies in addition.
        application: its name in every event's context. Default: the program's file name.
        redact: whether to redact secrets in events, or rules as ``balog.common.redaction.from_config`` reads them.
        validate: check payloads of declared types: ``off``, ``tag`` (report in ``payload.problem``) or ``raise``.
        callsite: whether events of loggers have ``callsite`` in their context: ``file``, ``line`` and ``func`` of the
            caller.
        strict: raise errors of logging instead of writing the event as well as possible. For tests.
        processors: structlog's processors, run before a logger's call becomes an event.

    Raises:
        ConfigError: a setting is invalid. The earlier configuration stays.
    """
    given: dict[str, Any] = {
        "output": None if output is None else list_outputs(output),
        "level": level,
        "levels": levels,
        "application": application,
        "redact": redact,
        "validate": validate,
        "callsite": callsite,
        "strict": strict,
    }
    if config is not None and not isinstance(config, (str, os.PathLike)):  # open() would take over a file descriptor
        raise ConfigError(f"expected the path of a file, not {type(config).__name__}", "configure(config=…)")
    if not isinstance(processors, Iterable):
        raise ConfigError(f"expected a list of functions, not {type(processors).__name__}", "configure(processors=…)")
    processors = list(processors)
    for processor in processors:
        if not callable(processor):
            raise ConfigError(f"{str(processor)[:80]!r} cannot be called", "configure(processors=…)")
    given = {name: value for name, value in given.items() if value is not None}
    _apply(given, config, processors)


def _apply(
    given: dict[str, Any],
    config: str | os.PathLike[str] | None,
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
    ignored: Collection[str] = (),
) -> None:
    """Configure from arguments, the config file and the environment.

    Args:
        given: the arguments that are not omitted.
        ignored: environment variables to skip.
    """
    settings, sources = merge_settings(given, config, ignored)
    declared = settings.levels.keys() | ({""} if sources["level"] != "BALOG_LEVEL" and settings.level else set())
    recorder = build_recorder(settings, sources, processors, program=_program, knowing=_knowing)
    with _lock:
        _drop_overrides(declared)
        _install(recorder)


def set_level(name: str | None, level: int | str | None) -> None:
    """Set the lowest level that is written on channels, in a running process. Loggers follow at once.

    It stays until another call, or until a configuration declares a level for the same pattern.

    Args:
        name: a logger's name or a pattern, as in ``configure(levels=…)``. None or ``""`` sets the level of all channels
            that no pattern covers, as ``configure(level=…)`` does.
        level: a level's name, ``OFF``, or a number of the standard library. None or 0 (``NOTSET``) restores the
            configured level.

    Raises:
        ConfigError: there is no such level. Nothing changes.
    """
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"expected a logger's name, not {type(name).__name__}", "set_level(…)")
    if level is None or (level == 0 and not isinstance(level, bool)):
        with _lock:
            current()
            _drop_overrides({name or ""})
            announce_levels()
        return
    try:
        threshold = parse_threshold(level)
    except ConfigError as error:
        raise ConfigError(error.reason, "set_level(…)") from None
    with _lock:
        current()
        swap_overrides({**_overrides, name or "": threshold})


def swap_overrides(overrides: Mapping[str, int]) -> Mapping[str, int]:
    """Replace the levels that ``set_level`` has set, and return the earlier ones."""
    global _overrides
    with _lock:
        before, _overrides = _overrides, overrides
        announce_levels()
        return before


def _drop_overrides(patterns: Collection[str]) -> None:
    global _overrides
    _overrides = {pattern: level for pattern, level in _overrides.items() if pattern not in patterns}


def announce_levels() -> None:
    """Apply changed levels to the current recorder, then call the listeners.

    Whatever changes a level or replaces the recorder calls this.
    """
    with _lock:
        recorder = _current
        if recorder is not None:
            recorder.use_levels(_overrides)
        for listener in _level_listeners:
            listener(recorder)


def on_levels(listener: Callable[[Recorder | None], object]) -> None:
    """Call a function now and whenever levels may have changed, with the current recorder. For caches of thresholds.

    None instead of a recorder means that the next event configures the process.
    """
    with _lock:
        _level_listeners.append(listener)
        listener(_current)


_overrides: Mapping[str, int] = {}
"""What ``set_level`` has set: thresholds by pattern, that of all other channels at an empty one. Never changed."""

_level_listeners: list[Callable[[Recorder | None], object]] = []


@contextmanager
def concealed(secrets: Iterable[str]) -> Iterator[None]:
    """Redact texts in every event that is logged inside the block, also after another ``configure``.

    Contexts and channels that were encoded before are encoded again. With ``redact=False`` nothing is redacted.

    Args:
        secrets: texts of at least four characters; shorter ones are ignored.
    """
    own = frozenset(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
    with _lock:
        current()
        _concealed.append(own)
        _conceal_again()
    try:
        yield
    finally:
        with _lock:
            _concealed.remove(own)
            _conceal_again()


def _conceal_again() -> None:
    """Make the current recorder hide the texts of the open ``concealed`` blocks only."""
    recorder = _current
    if recorder is not None and recorder.redactor is not None:
        redactor = _knowing(recorder.redactor)
        if redactor is not recorder.redactor:
            recorder.redact_with(redactor)


def _knowing(redactor: Redactor) -> Redactor:
    return redactor.knowing(frozenset().union(*_concealed))


_concealed: list[frozenset[str]] = []
_SHORTEST_SECRET = 4


def _configure_from_environment() -> Recorder:
    with _lock:
        while _current is None:
            apply_environment(_apply)
        return _current


def _install(recorder: Recorder) -> None:
    global _current, _lost_before
    run_id()  # before the process starts others, which belong to the same run
    with _lock:
        if _diverted is not None:
            recorder = _diverted(recorder)
        before, _current = _current, recorder
        announce_levels()
    exit_hooks.at_end(_close)
    if any(isinstance(route.output, QueuedOutput) for route in recorder.routes):
        exit_hooks.catch_sigterm()
    if before is not None:
        lost = before.close()
        _report_lost(before)
        with _lock:
            _lost_before += lost


_lost_before = 0
"""Events that earlier configurations of this process lost."""


def swap(recorder: Recorder | None) -> Recorder | None:
    """Replace the recorder without closing it, and return the replaced one. For tests."""
    global _current
    with _lock:
        before, _current = _current, recorder
        _conceal_again()
        announce_levels()
        return before


def peek() -> Recorder | None:
    """Return the process's recorder; None if nothing has been logged or configured yet."""
    return _current


def divert(how: Callable[[Recorder], Recorder] | None) -> Callable[[Recorder], Recorder] | None:
    """Set a function that replaces every recorder that is configured, and return the previous one. For tests."""
    global _diverted
    with _lock:
        before, _diverted = _diverted, how
        return before


def flush(deadline: float = 5.0) -> int:
    """Wait at most ``deadline`` seconds until queued events are delivered.

    An output without a spool drops the events that its sink has not accepted by then. They count as lost.

    Returns:
        The number of events that this process has lost so far, also under earlier configurations.
    """
    return _lost_before + (0 if _current is None else _current.flush(deadline))


def _close() -> None:
    recorder = _current
    if recorder is not None:
        recorder.close(seconds_left())
        _report_lost(recorder)
    flush_all(min(_LAST_SECONDS, seconds_left()))


def _report_lost(recorder: Recorder) -> None:
    for route in recorder.routes:
        if route.lost:
            complain(f"output {route.name}: {counted(route.lost, 'event', 'were')} lost")


_LAST_SECONDS = 1.0
"""Seconds for events that were written to outputs after their replacement."""
