"""Capture logged events in a list with assertions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from balog.common.redaction import Redactor
from balog.common.text import cut
from balog.event import LEVELS, Event, decode, parse_level
from balog.log.configuration import state
from balog.log.context import ProcessContext
from balog.log.outputs import LogOutput
from balog.log.recorder import OutputRoute, Recorder

_MAX_SHOWN = 20
_MAX_NEAREST = 3
_MAX_WIDTH = 300
_MISSING = object()

_ATTRIBUTES: dict[str, Callable[[Event], Any]] = {
    "channel": lambda event: event.header.channel,
    "level": lambda event: event.level,
    "cls_type": lambda event: event.cls_type,
    "payload": lambda event: event.payload,
    "context": lambda event: event.header.context,
}
"""The criteria that are not fields, and how to read them from an event."""


class Events(list[Event]):
    """Events in the order in which they were logged.

    ``find``, ``one``, ``assert_logged`` and ``assert_none`` accept the same criteria, which must all be met:

    Args:
        channel: a glob such as ``tap.users.*``.
        level: the level's name, in any case.
        cls_type: the payload's type.
        payload: a dict that the payload must contain; nested dicts likewise, other values must be equal.
        context: the same for the header's context.
        fields: keys of the payload, or of the ``fields`` of a ``log`` payload. A compiled regular expression is
            searched for in the value; other values are compared with ``==``.
    """

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """Each event's payload."""
        return [event.payload for event in self]

    @property
    def channels(self) -> list[str]:
        """Each event's channel."""
        return [event.header.channel for event in self]

    def find(self, **criteria: Any) -> Events:
        """Return the events that meet all criteria, possibly none."""
        wanted = _criteria(criteria)
        return Events(event for event in self if all(_holds(event, *criterion) for criterion in wanted.items()))

    def one(self, **criteria: Any) -> Event:
        """Return the one event that meets all criteria.

        Raises:
            AssertionError: none or several do; the message shows them.
        """
        __tracebackhide__ = True
        return self.assert_logged(times=1, **criteria)[0]

    def assert_logged(self, *, times: int | None = None, **criteria: Any) -> Events:
        """Assert that at least one event, or exactly ``times`` events, meet all criteria; return these events.

        Raises:
            AssertionError: not so; the message shows the wanted event and the most similar logged ones.
        """
        __tracebackhide__ = True
        events = self.find(**criteria)
        if len(events) == times or (times is None and events):
            return events
        wanted = _criteria(criteria)
        number = "an event" if times is None else f"{times} events" if times != 1 else "one event"
        lines = [f"expected {number} with", *_listed(wanted)]
        if events:
            lines += [f"found {len(events)}:", *events._shown()]
        else:
            lines += [
                *self._nearest(wanted),
                *([f"logged {len(self)}:", *self._shown()] if self else ["nothing was logged"]),
            ]
        raise AssertionError("\n".join(lines))

    def assert_none(self, *, level: str = "ERROR", **criteria: Any) -> None:
        """Assert that no event of this level or above meets the other criteria.

        Raises:
            AssertionError: events do; the message lists them.
        """
        __tracebackhide__ = True
        floor = LEVELS[_level(level)]
        events = Events(event for event in self.find(**criteria) if LEVELS[event.level or "INFO"] >= floor)
        if events:
            lines = [f"expected no event of {_level(level)} or above"]
            lines += ["with", *_listed(_criteria(criteria))] if criteria else []
            raise AssertionError("\n".join([*lines, f"found {len(events)}:", *events._shown()]))

    def _nearest(self, wanted: dict[str, Any]) -> list[str]:
        """Show what differs, ``-`` as wanted and ``+`` as logged, for the events that meet the most criteria."""
        ranked = sorted(self, key=lambda event: -sum(_holds(event, *each) for each in wanted.items()))[:_MAX_NEAREST]
        lines: list[str] = []
        for event in ranked:
            lines.append(f"near: {_summary(event)}")
            for name, value in wanted.items():
                if _holds(event, name, value):
                    lines.append(f"    {_line(name, value)}")
                else:
                    lines += [f"  - {_line(name, value)}", f"  + {_line(name, _value_of(event, name))}"]
        return lines

    def _shown(self) -> list[str]:
        lines = [f"    {_summary(event)}" for event in self[:_MAX_SHOWN]]
        return [*lines, f"    … and {len(self) - _MAX_SHOWN} more"] if len(self) > _MAX_SHOWN else lines


@contextmanager
def capture_events(*, strict: bool = True) -> Iterator[Events]:
    """Capture every event that is logged inside the block, at every level, instead of writing it.

    This includes existing loggers, metrics, the standard library's records from ``EventHandler``, and all threads.
    Other configuration (redaction, processors, checks of payloads) applies, also if the block calls ``configure``;
    outputs, levels and sampling do not. Blocks nest: the inner block captures. The end restores the configuration.

    Args:
        strict: raise errors of logging, such as a payload without a JSON form.
    """
    events = Events()
    route = OutputRoute("capture_events", _Catch(events))

    def diverted(recorder: Recorder) -> Recorder:
        return recorder.redirected([route], strict=strict)

    before = state.recorder
    redactor = Redactor()
    ours = diverted(before or Recorder([], ProcessContext(clean=redactor.redact_encoded), redactor=redactor))
    diverted_before = state.divert(diverted)
    overrides = state.swap_overrides({})
    state.swap(ours)
    try:
        yield events
    finally:
        state.divert(diverted_before)
        state.swap_overrides(overrides)
        state.swap(before)


class _Catch(LogOutput):
    def __init__(self, events: Events) -> None:
        self._events = events

    def write(self, level: str, event: bytes) -> None:
        self._events.append(decode(event))


def _level(name: str) -> str:
    level = parse_level(name)
    if level is None:
        raise ValueError(f"no level {name!r}; there are {', '.join(LEVELS)}")
    return level


def _criteria(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted values by their names, without criteria that are None."""
    wanted = {name: value for name, value in given.items() if value is not None or name not in _ATTRIBUTES}
    return {name: _level(value) if name == "level" else value for name, value in wanted.items()}


def _equal(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(actual, str) and wanted.search(actual) is not None
    return bool(actual is not _MISSING and wanted == actual)


def _contains(wanted: Any, actual: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return _equal(wanted, actual)
    return isinstance(actual, Mapping) and all(
        _contains(value, actual.get(key, _MISSING)) for key, value in wanted.items()
    )


def _value_of(event: Event, name: str) -> Any:
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](event)
    if name in event.payload:
        return event.payload[name]
    fields = event.payload.get("fields") if event.cls_type == "log" else None
    return fields.get(name, _MISSING) if isinstance(fields, dict) else _MISSING


def _holds(event: Event, name: str, wanted: Any) -> bool:
    actual = _value_of(event, name)
    if name == "channel":
        return fnmatchcase(actual, wanted)
    return _contains(wanted, actual) if name in ("payload", "context") else _equal(wanted, actual)


def _listed(wanted: Mapping[str, Any]) -> list[str]:
    return [f"    {_line(name, value)}" for name, value in wanted.items()]


def _line(name: str, value: Any) -> str:
    if value is _MISSING:
        return f"{name} is not there"
    text = value.pattern if isinstance(value, re.Pattern) else value
    return f"{name}{' ~ ' if text is not value else ' = '}{cut(repr(text), _MAX_WIDTH)}"


def _summary(event: Event) -> str:
    return cut(f"{event.level} {event.header.channel} {msgspec.json.encode(event.payload).decode()}", _MAX_WIDTH)
