"""Evaluate monitors once over files of events; the clock follows the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from balog.common.errors import ConfigError, EventError
from balog.event import Event, decode
from balog.topics.archives import read_lines
from balog.watch.evaluation import Evaluation, TimedAlert
from balog.watch.observations import observe


class SourceEvents:
    """The events of files that monitors judge, in the order of time.

    Args:
        paths: files of JSON lines, plain or compressed with gzip or zstd.

    Attributes:
        events: only those that a kind of monitor judges, since all of them are in memory.
        invalid_lines: number of lines that are not events.

    Raises:
        ConfigError: a file cannot be read.
        BalogError: a file is truncated or damaged.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.events: list[Event] = []
        self.invalid_lines = 0
        for path in paths:
            self.events += self._read(path)
        self.events.sort(key=lambda event: event.header.timestamp)

    def _read(self, path: Path) -> Iterator[Event]:
        try:
            with path.open("rb") as file:
                for line in read_lines(file):
                    try:
                        event = decode(line.data)
                    except EventError:
                        self.invalid_lines += 1
                        continue
                    if next(observe(event), None) is not None:
                        yield event
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", str(path)) from None


def unique_events(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events without those whose id came before."""
    known: set[str] = set()
    for event in events:
        if event.header.id not in known:
            known.add(event.header.id)
            yield event


def evaluate_events(
    evaluation: Evaluation, events: Iterable[Event], until: float | None = None
) -> Iterator[TimedAlert]:
    """Yield the alerts of events. An event that comes twice counts once.

    Args:
        events: in the order of time.
        until: the end, at which the clock stops; the time of the last event if omitted.
    """
    for event in unique_events(events):
        when = event.header.timestamp.timestamp()
        if until is not None and when > until:
            break
        yield from evaluation.take(event)
    end = until if until is not None else evaluation.clock
    if end:
        yield from evaluation.advance(end)
