"""Targets of alerts: standard output, and the sinks of a broker's config."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence

from balog.delivery import Dispatcher
from balog.delivery.spool import SpoolConfig
from balog.event import Event
from balog.sinks import Delivery, SinkConfig


class LineTarget:
    """Writes each alert as a line of JSON to standard output.

    Attributes:
        is_closed: whether the reader has closed the stream. Alerts are then not delivered.
        on_close: called when that is noticed.
    """

    def __init__(self) -> None:
        self._stream = sys.stdout.buffer
        self._last = 0
        self.is_closed = False
        self.on_close: Callable[[], object] = lambda: None

    def send(self, number: int, event: Event, body: bytes) -> None:
        """Write a line."""
        if self.is_closed:
            return
        try:
            self._stream.write(body + b"\n")
            self._stream.flush()
        except BrokenPipeError:
            self.is_closed = True
            self.on_close()
            return
        self._last = number

    def delivered(self) -> int:
        """Return the number of the last line."""
        return self._last


class SinkTarget:
    """Sends each alert to sinks, with their retries, and with a spool if the config has one.

    Args:
        sinks: the sinks.
        spool: where alerts wait on disk while a sink fails.
        say: called with one line for the operator.

    Raises:
        ConfigError: a sink can't be built.
    """

    def __init__(self, sinks: Sequence[SinkConfig], spool: SpoolConfig | None, say: Callable[[str], None]) -> None:
        self._dispatcher = Dispatcher(sinks, say, put_timeout=1.0, spool=spool)
        self._say = say
        self._in_flight: deque[tuple[int, int]] = deque()
        self._last = 0
        self._is_closed = False

    def send(self, number: int, event: Event, body: bytes) -> None:
        """Queue an alert for the sinks."""
        self._dispatcher.put(Delivery(event, body))
        self._in_flight.append((self._dispatcher.position, number))

    def delivered(self) -> int:
        """Return the number up to which every alert is on disk or at its sinks, or was refused for good."""
        settled = self._dispatcher.settled
        while self._in_flight and self._in_flight[0][0] <= settled:
            self._last = self._in_flight.popleft()[1]
        return self._last

    def close(self, seconds: float) -> None:
        """Deliver what is queued for some seconds, and stop. The next process sends what no sink has answered for.

        A second call does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for name, stats in self._dispatcher.close(seconds).items():
            for warning in stats.warnings(are_kept=True):
                self._say(f"{name}: {warning}")


AlertTarget = LineTarget | SinkTarget
"""Where alerts go. Each number that it gets is larger than the one before."""
