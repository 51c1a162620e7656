"""Configure logging in one call, from a JSON file or from the environment. Configuring again is safe."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
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
from balog.log.outputs.objects import is_deferred
from balog.log.outputs.queued import QueuedOutput, flush_all
from balog.log.recorder import Recorder

if TYPE_CHECKING:
    from balog.common.redaction import Redactor

_SHORTEST_SECRET = 4
_LAST_SECONDS = 1.0
"""Seconds for events that were written to outputs after their replacement."""


class LoggingState:
    """The configuration of this process, which loggers follow.

    Attributes:
        recorder: makes and writes events; None until the first event or ``configure``.
        program: name and version of the application, unless ``configure`` or a config file names it.
    """

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.program: tuple[str | None, str | None] = (None, None)
        self._diverted: Callable[[Recorder], Recorder] | None = None
        self._overrides: Mapping[str, int] = {}  # thresholds that set_level has set, by pattern; never changed
        self._concealed: list[frozenset[str]] = []
        self._lost_before = 0  # events that earlier configurations of this process lost
        self._lock = threading.RLock()
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    def current(self) -> Recorder:
        """Return the process's recorder, configured from the environment if nothing else has configured it."""
        recorder = self.recorder
        if recorder is None:
            with self._lock:
                while (recorder := self.recorder) is None:
                    apply_environment(_apply)
        return recorder

    @contextmanager
    def introduced(self, application: str, version: str | None = None) -> Iterator[None]:
        """Name the application for the block, unless ``configure`` or a config file does."""
        before, self.program = self.program, (application, version)
        try:
            yield
        finally:
            self.program = before

    def install(self, recorder: Recorder, declared: Collection[str]) -> None:
        """Replace the recorder, and close the earlier one.

        Args:
            declared: patterns of the new configuration, whose levels by ``set_level`` end.
        """
        run_id()  # before the process starts others, which belong to the same run
        with self._lock:
            self._drop_overrides(declared)
            if self._diverted is not None:
                recorder = self._diverted(recorder)
            recorder.use_levels(self._overrides)
            before, self.recorder = self.recorder, recorder
        exit_hooks.at_end(self._close)
        if any(isinstance(route.output, QueuedOutput) for route in recorder.routes):
            exit_hooks.catch_sigterm()
        if before is not None:
            lost = before.close()
            _report_lost(before)
            with self._lock:
                self._lost_before += lost

    def override(self, pattern: str, threshold: int | None) -> None:
        """Set the threshold of channels; None restores the configured one."""
        with self._lock:
            self.current()
            self._drop_overrides({pattern})
            if threshold is not None:
                self._overrides = {**self._overrides, pattern: threshold}
            self._use_levels()

    def swap_overrides(self, overrides: Mapping[str, int]) -> Mapping[str, int]:
        """Replace the levels that ``set_level`` has set, and return the earlier ones. For tests."""
        with self._lock:
            before, self._overrides = self._overrides, overrides
            self._use_levels()
            return before

    def _drop_overrides(self, patterns: Collection[str]) -> None:
        self._overrides = {pattern: level for pattern, level in self._overrides.items() if pattern not in patterns}

    def _use_levels(self) -> None:
        """Apply changed levels to the current recorder."""
        if self.recorder is not None:
            self.recorder.use_levels(self._overrides)

    @contextmanager
    def concealed(self, secrets: Iterable[str]) -> Iterator[None]:
        """Redact texts in every event that is logged inside the block, also after another ``configure``.

        Contexts and channels that were encoded before are encoded again. With ``redact=False`` nothing is redacted.

        Args:
            secrets: texts of at least four characters; shorter ones are ignored.
        """
        own = frozenset(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
        with self._lock:
            self.current()
            self._concealed.append(own)
            self._conceal_again()
        try:
            yield
        finally:
            with self._lock:
                self._concealed.remove(own)
                self._conceal_again()

    def _conceal_again(self) -> None:
        """Make the current recorder hide the texts of the open ``concealed`` blocks only."""
        recorder = self.recorder
        if recorder is not None and recorder.redactor is not None:
            redactor = self.knowing(recorder.redactor)
            if redactor is not recorder.redactor:
                recorder.redact_with(redactor)

    def knowing(self, redactor: Redactor) -> Redactor:
        """Return a redactor that also hides the texts of the open ``concealed`` blocks."""
        return redactor.knowing(frozenset().union(*self._concealed))

    def swap(self, recorder: Recorder | None) -> Recorder | None:
        """Replace the recorder without closing it, and return the replaced one. For tests."""
        with self._lock:
            before, self.recorder = self.recorder, recorder
            self._conceal_again()
            self._use_levels()
            return before

    def divert(self, how: Callable[[Recorder], Recorder] | None) -> Callable[[Recorder], Recorder] | None:
        """Set a function that replaces every recorder that is configured, and return the previous one. For tests."""
        with self._lock:
            before, self._diverted = self._diverted, how
            return before

    def flush(self, deadline: float) -> int:
        """Deliver queued events, and return the number of events that this process has lost so far."""
        return self._lost_before + (0 if self.recorder is None else self.recorder.flush(deadline))

    def _close(self) -> None:
        if self.recorder is not None:
            self.recorder.close(seconds_left())
            _report_lost(self.recorder)
        flush_all(min(_LAST_SECONDS, seconds_left()))


state = LoggingState()


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
    entries, objects = list_outputs([] if output is None else output)
    given: dict[str, Any] = {
        "output": None if output is None else entries,
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
        if is_deferred(processor):
            raise ConfigError(f"{str(processor)[:80]!r} is async or a generator", "configure(processors=…)")
    given = {name: value for name, value in given.items() if value is not None}
    _apply(given, config, processors, objects)


def _apply(
    given: dict[str, Any],
    config: str | os.PathLike[str] | None,
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
    objects: Mapping[int, Any] = MappingProxyType({}),
    ignored: Collection[str] = (),
) -> None:
    """Configure from arguments, the config file and the environment.

    Args:
        given: the arguments that are not omitted.
        objects: outputs that are objects of the program, by their index.
        ignored: environment variables to skip.
    """
    settings, sources = merge_settings(given, config, ignored)
    declared = settings.levels.keys() | ({""} if sources["level"] != "BALOG_LEVEL" and settings.level else set())
    recorder = build_recorder(settings, sources, processors, objects, program=state.program, knowing=state.knowing)
    state.install(recorder, declared)


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
        state.override(name or "", None)
        return
    try:
        threshold = parse_threshold(level)
    except ConfigError as error:
        raise ConfigError(error.reason, "set_level(…)") from None
    state.override(name or "", threshold)


def flush(deadline: float = 5.0) -> int:
    """Wait at most ``deadline`` seconds until queued events are delivered.

    An output without a spool drops the events that its sink has not accepted by then. They count as lost.

    Returns:
        The number of events that this process has lost so far, also under earlier configurations.
    """
    return state.flush(deadline)


def _report_lost(recorder: Recorder) -> None:
    for route in recorder.routes:
        if route.lost:
            complain(f"output {route.name}: {counted(route.lost, 'event', 'were')} lost")
