"""Make events from calls, and write them to the outputs.

``configure`` replaces the ``Recorder``. Loggers ask for the current one at every call, so existing loggers follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from balog.common.errors import complain
from balog.event import LEVELS, Event, decode_own
from balog.log.context import ProcessContext
from balog.log.levels import OFF, ChannelLevels
from balog.log.outputs import LogOutput
from balog.log.rendering.callsites import CallsiteFinder
from balog.log.rendering.renderer import EventRenderer, counting

if TYPE_CHECKING:
    from balog.common.redaction import Redactor
    from balog.log.values.validation import DeclaredTypeValidator


class OutputRoute:
    """One output, and the conditions for the events that go to it.

    Args:
        name: its name in errors.
        threshold: the number of the lowest level, as in ``LEVELS``.
        where: returns whether an event goes to the output; None for all events.
        has_own_level: whether ``threshold`` is the output's own. Otherwise it is that of all outputs, which the levels
            of channels replace.
    """

    def __init__(
        self,
        name: str,
        output: LogOutput,
        threshold: int = 0,
        where: Callable[[Event], bool] | None = None,
        *,
        has_own_level: bool = True,
    ) -> None:
        self.name = name
        self.output = output
        self.threshold = threshold
        self.where = where
        self.has_own_level = has_own_level
        self.lost = 0

    def threshold_under(self, level: int) -> int:
        """Return the output's threshold for a channel that has its own."""
        return max(level, self.threshold) if self.has_own_level else level

    def use_general(self, threshold: int) -> None:
        """Use the threshold of all outputs, unless this one has its own."""
        if not self.has_own_level:
            self.threshold = threshold

    def reject(self, error: BaseException) -> None:
        """Count an event that the output did not accept, and report the first."""
        with counting:
            self.lost += 1
            is_first = self.lost == 1
        if is_first and self.name != "stderr":
            complain(f"output {self.name}: {type(error).__name__}: {error}; rejected events are counted")


class Recorder(EventRenderer):
    """Makes events and writes them to outputs. Never raises, unless ``strict``.

    Args:
        routes: the outputs.
        process_context: the context of the process and its threads.
        redactor: redacts payloads and bound values.
        levels: the thresholds of channels by pattern; see ``balog.log.levels``.
        validator: checks payloads of declared types.
        processors: callables of structlog's form ``(logger, level, event_dict) -> event_dict``, run before a logger's
            call becomes an event.
        callsites: finds the caller of a logger, whose place goes to the context.
        strict: whether errors are raised.
        is_redirected: whether levels of ``use_levels`` are ignored.

    Attributes:
        threshold: the lowest level that is written on any channel.
        lost: number of events that could not be made, or that an output did not accept.
    """

    def __init__(
        self,
        routes: Sequence[OutputRoute],
        process_context: ProcessContext,
        *,
        redactor: Redactor | None = None,
        levels: Mapping[str, int] | None = None,
        validator: DeclaredTypeValidator | None = None,
        processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
        callsites: CallsiteFinder | None = None,
        strict: bool = False,
        is_redirected: bool = False,
    ) -> None:
        super().__init__(process_context, redactor, validator, callsites, strict)
        self.routes = tuple(routes)
        self.processors = tuple(processors)
        self.lost = 0
        self._only = self.routes[0] if len(routes) == 1 and routes[0].where is None else None
        self._has_conditions = any(route.where is not None for route in routes)
        self._declared_levels = dict(levels or {})
        self._general = next((route.threshold for route in routes if not route.has_own_level), OFF)
        self._is_redirected = is_redirected
        self.use_levels({})

    def use_levels(self, overrides: Mapping[str, int]) -> None:
        """Replace levels of this recorder's configuration, except those that an output has of its own.

        Args:
            overrides: thresholds by pattern; an empty pattern is all channels that no other pattern covers.
        """
        if self._is_redirected:
            overrides = {}
        general = overrides.get("", self._general)
        for route in self.routes:
            route.use_general(general)
        patterns = self._declared_levels | {pattern: level for pattern, level in overrides.items() if pattern}
        self.levels = ChannelLevels(patterns) if patterns else None
        self._rest = min((route.threshold for route in self.routes), default=OFF)
        self.threshold = min([self._rest, *map(self._threshold_under, patterns.values())])

    def _threshold_under(self, level: int) -> int:
        return min((route.threshold_under(level) for route in self.routes), default=OFF)

    def threshold_of(self, channel: str) -> int:
        """Return the lowest level that is written on a channel."""
        levels = self.levels
        level = None if levels is None else levels.of(channel)
        return self._rest if level is None else self._threshold_under(level)

    def redirected(self, routes: Sequence[OutputRoute], *, strict: bool) -> Recorder:
        """Return a recorder that makes the same events for other outputs, without levels."""
        return Recorder(
            routes,
            self.process_context,
            redactor=self.redactor,
            validator=self.validator,
            processors=self.processors,
            callsites=self.callsites,
            strict=strict,
            is_redirected=True,
        )

    def write(self, level: str, event: bytes, channel: str = "") -> None:
        """Write an encoded event, whose level passes, to every matching output.

        A failing output does not affect the others.
        """
        only = self._only
        if only is not None:
            try:
                only.output.write(level, event)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                self._failed(only, error)
                if self.strict:
                    raise
            return
        number = LEVELS[level]
        whole = decode_own(event) if self._has_conditions else None
        is_covered = self.levels is not None and self.levels.of(channel) is not None
        for route in self.routes:
            if number >= route.threshold or (is_covered and not route.has_own_level):
                try:
                    if route.where is None or whole is None or route.where(whole):
                        route.output.write(level, event)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:
                    self._failed(route, error)
                    if self.strict:
                        raise

    def _failed(self, route: OutputRoute, error: BaseException) -> None:
        self.failed()
        route.reject(error)

    def failed(self) -> None:
        """Count an event that could not be made."""
        with counting:
            self.lost += 1

    def flush(self, deadline: float = 5.0) -> int:
        """Wait at most ``deadline`` seconds for delivery of queued events; return the number of lost events so far."""
        return self.lost + self._each_output(lambda output, seconds: output.flush(seconds), deadline)

    def close(self, deadline: float = 5.0) -> int:
        """Flush, and close the outputs."""
        return self.lost + self._each_output(lambda output, seconds: output.close(seconds), deadline)

    def _each_output(self, act: Callable[[LogOutput, float], int], deadline: float) -> int:
        until = time.monotonic() + deadline
        lost = 0
        for route in self.routes:
            try:
                lost += act(route.output, max(0.0, until - time.monotonic()))
            except Exception as error:
                self._failed(route, error)
        return lost
