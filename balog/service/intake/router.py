"""Routes an event to a topic: that of the first matching stream, or the topic of its type."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from balog.common.errors import ConfigError
from balog.event import Event
from balog.topics.keys import RUN, key_reader

if TYPE_CHECKING:
    from balog.service.document import ControlDocument, EventStream

UNTYPED_TOPIC = "events"
"""The topic of events without a type."""

FAILED_EVENTS_TOPIC = "failed_events"
"""The topic of rejected events. No type and no stream may use it."""

_REMEMBERED = 4096
_LONGEST = 300

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,69}", re.ASCII)
_ESCAPED = re.compile(r".*--[0-9a-f]{32}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


class Route(NamedTuple):
    """The route of an event. ``stream`` is the topic's name if no stream matches; ``key`` determines its order."""

    stream: str
    topic: str
    key: str | None


def topic_for_type(cls_type: str | None, *, dots: bool = True) -> str:
    """Return the topic of a type without a stream: the name of the type if a topic can have it.

    For other names, and for reserved ones, the topic is the readable part of the name plus a digest. Two types share a
    topic only if 128 bits of SHA-256 are equal. No type has the topic ``events`` or ``failed_events``.

    Args:
        dots: False for a backend whose names have no dots, such as queues of SQS.
    """
    if cls_type is None:
        return UNTYPED_TOPIC
    if (
        _PLAIN.fullmatch(cls_type)
        and (dots or "." not in cls_type)
        and cls_type not in (UNTYPED_TOPIC, FAILED_EVENTS_TOPIC)
        and not _ESCAPED.fullmatch(cls_type)
    ):
        return cls_type
    digest = hashlib.sha256(cls_type.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_OTHER.sub('_', cls_type[:200])[:34].strip('_')}--{digest}"


class _Target(NamedTuple):
    """A compiled stream. ``matches`` is None if it accepts every event of its types."""

    stream: str
    topic: str
    matches: Callable[[Event], bool] | None
    key: Callable[[Event], str | None]


class StreamRouter:
    """Routes events according to the streams of a document. Thread-safe.

    Args:
        document: the control document.
        dots: names of topics may have dots; see ``topic_for_type``.

    Raises:
        ConfigError: a ``where`` or ``key`` is not valid; ``path`` is its path in the document.
    """

    def __init__(self, document: ControlDocument, *, dots: bool = True) -> None:
        self._dots = dots
        self._streams = [_compiled(stream, number) for number, stream in enumerate(document.streams)]
        self._key = key_reader(RUN, "$")
        self._targets: dict[str | None, tuple[_Target, ...]] = {}
        self.rates = {stream.name: stream.rate for stream in document.streams if stream.rate is not None}

    def route(self, event: Event) -> Route:
        """Return the route of an event. Candidates are cached by type."""
        cls_type = event.cls_type
        for stream, topic, matches, key in self._targets.get(cls_type) or self._find(cls_type):
            if matches is None or matches(event):
                return Route(stream, topic, key(event))
        raise AssertionError("the last target accepts every event")

    def stream_of(self, type: str) -> str:
        """Return the name of the first stream that may match a type; see ``Route``."""
        return (self._targets.get(type or None) or self._find(type or None))[0].stream

    def _find(self, cls_type: str | None) -> tuple[_Target, ...]:
        targets = []
        for target, globs in self._streams:
            if any(_covers(glob, cls_type) for glob in globs):
                targets.append(target)
                if target.matches is None:
                    break
        else:
            topic = topic_for_type(cls_type, dots=self._dots)
            targets.append(_Target(topic, topic, None, self._key))
        matching_targets = tuple(targets)
        if len(cls_type or "") <= _LONGEST:
            if len(self._targets) >= _REMEMBERED:
                self._targets.clear()  # unbounded types
            self._targets[cls_type] = matching_targets
        return matching_targets


def _compiled(stream: EventStream, number: int) -> tuple[_Target, tuple[str, ...]]:
    """Return a stream and the globs of its types."""
    path = f"$.streams[{number}]"
    matches = None
    if stream.where is not None:
        from balog.filters import Expression

        try:
            matches = Expression(stream.where).matches
        except ConfigError as error:
            raise ConfigError(error.reason, path=f"{path}.where") from None
    key = key_reader(stream.key or RUN, f"{path}.key")
    return _Target(stream.name, stream.topic or stream.name, matches, key), stream.types


def _covers(glob: str, cls_type: str | None) -> bool:
    """Return whether a glob matches a type. An event without a type matches only ``*``."""
    if glob == "*":
        return True
    return cls_type is not None and fnmatchcase(cls_type, glob)


def route_problems(document: ControlDocument) -> Iterator[ConfigError]:
    """Yield the problems of a document's streams, each with its path.

    Problems are invalid expressions, and reserved topics.
    """
    for number, stream in enumerate(document.streams):
        path = f"$.streams[{number}]"
        try:
            _compiled(stream, number)
        except ConfigError as error:
            yield error
        if (stream.topic or stream.name) == FAILED_EVENTS_TOPIC:
            yield ConfigError(
                f"{FAILED_EVENTS_TOPIC} is the topic of rejected events; name another", path=f"{path}.topic"
            )
