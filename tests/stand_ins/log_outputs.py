"""The other end of a logger: an output that keeps what it is given, and a recorder that writes to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from balog.event import Event, decode
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.outputs import LogOutput
from balog.log.recorder import OutputRoute, Recorder


class Lines(LogOutput):
    """Keeps each event with its level. What ``act`` does comes first: it may log, or raise."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.act: Callable[[], object] | None = None

    def write(self, level: str, event: bytes) -> None:
        if self.act is not None:
            self.act()
        assert b"\n" not in event
        self.written.append((level, event))

    @property
    def levels(self) -> list[str]:
        return [level for level, _ in self.written]

    @property
    def events(self) -> list[Event]:
        return [decode(line) for _, line in self.written]

    @property
    def channels(self) -> list[str]:
        return [event.header.channel for event in self.events]

    def take(self) -> Event:
        """Return the one event that was written since the last time."""
        (event,) = self.events
        self.written.clear()
        return event


def use_output(output: LogOutput, threshold: int = 0, **options: Any) -> Recorder:
    """Let the process write to one output alone, by the options of a ``Recorder``; return the recorder."""
    recorder = Recorder([OutputRoute("lines", output, threshold)], ProcessContext("app"), **options)
    configuration.state.swap(recorder)
    return recorder


@contextmanager
def recording(output: LogOutput, **options: Any) -> Iterator[Recorder]:
    """Do the same for a block."""
    before = configuration.state.recorder
    try:
        yield use_output(output, **options)
    finally:
        configuration.state.swap(before)
