"""The conditions of ``@consumer_config`` on events, parsed once and checked for each event."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from balog.common.errors import ConfigError
from balog.event import LEVELS, Event, Level, parse_level
from balog.event.versions import parse_condition, parse_version, version_text

if TYPE_CHECKING:
    import semantic_version

Texts = str | Iterable[str] | None
"""One string or several; None for no condition."""

_MAX_GLOBS = 100
_TWO_PARTS = re.compile(r"[<>=]\s*\d+\.\d+(?![\w.+*-])", re.ASCII)
"""A version without a third part, after an operator of the first balog: it was one version, not a series."""


class Facts(NamedTuple):
    """The fields that conditions read, except ``where``. Events with equal facts have the same consumers."""

    cls_type: object
    schema: object
    version: object
    channel: object
    level: object

    @classmethod
    def of_event(cls, event: Event, *, head: bool = True, channel: bool = True) -> Facts:
        """Return the facts of an event.

        Args:
            head: include the payload's type and version, which costs a look through its bytes.
            channel: include the channel.
        """
        header, version = event.header, event.raw_version if head else None
        level = header.level
        return cls(
            event.cls_type if head else None,
            event.schema,
            version if version is None or version.__class__ is str else version_text(version),
            header.channel if channel else None,
            level if level.__class__ is str else "INFO",
        )

    @classmethod
    def of_dict(cls, event: Mapping[str, Any]) -> Facts:
        """Return the facts of an event as a plain dict; missing and invalid fields are None."""
        header, payload = event.get("header"), event.get("payload")
        header = header if isinstance(header, Mapping) else {}
        payload = payload if isinstance(payload, Mapping) else {}
        return cls(
            payload.get("cls_type"),
            event.get("schema"),
            version_text(payload.get("version")),
            header.get("channel"),
            header.get("level", "INFO"),
        )


class Conditions:
    """The conditions on an event's facts, as :class:`balog.consumers.Consumer` describes them.

    Args:
        consumer: its name, for errors.

    Raises:
        ConfigError: an invalid condition.
    """

    def __init__(
        self, consumer: str, cls_type: Texts, version: Texts, payload_version: Texts, channel: Texts, level: str | None
    ) -> None:
        self.types = None if cls_type is None else read_texts(consumer, "cls_type", cls_type)
        self.cls_type = None if self.types is None else frozenset(self.types)
        self.version = None if version is None else read_texts(consumer, "version", version)
        self.payload_version = (
            None if payload_version is None else read_texts(consumer, "payload_version", payload_version)
        )
        self.channel = None if channel is None else read_texts(consumer, "channel", channel)
        self.level = None if level is None else _read_level(consumer, level)
        self.reads_head = self.cls_type is not None or self.payload_version is not None
        """Whether a condition reads the payload's type or version."""
        self._schema = _versions(consumer, "version", [_TWO_PARTS.sub(r"\g<0>.0", text) for text in self.version or ()])
        self._payload = _versions(consumer, "payload_version", self.payload_version)
        self._channel = None if self.channel is None else _compile_globs(consumer, self.channel)
        self._levels = None if self.level is None else _at_least(self.level)

    def meet(self, facts: Facts) -> bool:
        """Return whether an event with these facts meets all conditions."""
        return self.meet_channel(facts.channel) and self.meet_others(facts)

    def meet_channel(self, channel: object) -> bool:
        """Return whether an event in this channel meets ``channel``."""
        return self._channel is None or (isinstance(channel, str) and self._channel(channel) is not None)

    def meet_others(self, facts: Facts) -> bool:
        """Return whether an event with these facts meets all conditions except ``channel``."""
        if self.cls_type is not None and not (isinstance(facts.cls_type, str) and facts.cls_type in self.cls_type):
            return False
        if self._levels is not None and not (isinstance(facts.level, str) and facts.level in self._levels):
            return False
        return _holds(self._schema, facts.schema) and _holds(self._payload, facts.version)

    def meet_version(self, version: str) -> bool:
        """Return whether a version of the facility layer meets ``version``."""
        return _holds(self._schema, version)


def read_texts(consumer: str, argument: str, value: object) -> tuple[str, ...]:
    """Return one string or several as a tuple.

    Raises:
        ConfigError: not a string, an empty string, or no string at all.
    """
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"consumer {consumer}: {argument} {value!r} is neither a text nor a tuple of texts")
    return texts


def _read_level(consumer: str, value: object) -> Level:
    level = parse_level(value) if isinstance(value, str) else None
    if level is None:
        raise ConfigError(f"consumer {consumer}: there is no level {value!r}; expected one of {', '.join(LEVELS)}")
    return level


def _at_least(level: Level) -> frozenset[str]:
    return frozenset(name for name, number in LEVELS.items() if number >= LEVELS[level])


def _compile_globs(consumer: str, globs: tuple[str, ...]) -> Any:
    if len(globs) > _MAX_GLOBS:
        raise ConfigError(f"consumer {consumer}: {len(globs)} channels; expected at most {_MAX_GLOBS}, or a where")
    return re.compile("|".join(map(fnmatch.translate, globs))).match


def _versions(consumer: str, argument: str, texts: Sequence[str] | None) -> tuple[semantic_version.SimpleSpec, ...]:
    if not texts:
        return ()
    try:
        return tuple([parse_condition(text) for text in texts])
    except ConfigError as error:
        raise ConfigError(f"consumer {consumer}: {argument} {error}") from None


def _holds(specs: tuple[semantic_version.SimpleSpec, ...], text: object) -> bool:
    if not specs:
        return True
    version = parse_version(text) if isinstance(text, str) else None
    return version is not None and all(spec.match(version) for spec in specs)
