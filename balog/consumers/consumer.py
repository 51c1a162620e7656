"""A consumer: a handler with the events that it wants, declared beside it by ``@consumer_config``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

import semantic_version
import venusian

from balog.errors import ConfigError
from balog.event import Event

__all__ = ["CATEGORY", "Consumer", "consumer_config"]

CATEGORY = "balog.consumers"
"""The venusian category under which consumers are attached."""

Handler = TypeVar("Handler", bound=Callable[..., Any])
Strings = str | Iterable[str] | None


class Consumer:
    """A handler and the events that it wants.

    Args:
        func: the handler; what it is called with is the operator's business.
        topic: the topic's name, possibly with ``{placeholders}`` that the operator fills in.
        cls_type: one type of payload or several; None takes all, also a payload without a type.
        version: one condition on the event's ``schema`` or several that must all hold, as semantic-version's
            ``SimpleSpec`` writes them (``'<1.0'``, ``'>=1.0.1,<2'``, ``'==1.2.3'``); None takes all.
        name: what it is called in logs and dead letters, unique in a hub; ``module.function`` when omitted.

    Raises:
        ConfigError: an argument that can't be; it names the function.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        topic: str,
        cls_type: Strings = None,
        version: Strings = None,
        name: str | None = None,
    ) -> None:
        self.func = func
        self.name = name or _dotted_name(func)
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"consumer {self.name}: topic {topic!r} is not a name")
        self.topic = topic
        self.cls_type = None if cls_type is None else frozenset(_strings(self.name, "cls_type", cls_type))
        self.version = None if version is None else _strings(self.name, "version", version)
        self._conditions = tuple(_condition(self.name, text) for text in self.version or ())

    def __repr__(self) -> str:
        return f"<Consumer {self.name} of {self.topic}>"

    def match_event(self, event: Event | dict[str, Any]) -> bool:
        """Tell whether this consumer wants an event, given as an ``Event`` or as the plain dict of one."""
        if isinstance(event, Event):
            return self._match(event.cls_type, event.schema)
        payload = event.get("payload")
        return self._match(payload.get("cls_type") if isinstance(payload, dict) else None, event.get("schema"))

    def _match(self, cls_type: object, schema: object) -> bool:
        if self.cls_type is not None and not (isinstance(cls_type, str) and cls_type in self.cls_type):
            return False
        if not self._conditions:
            return True
        version = _version(schema) if isinstance(schema, str) else None
        return version is not None and all(condition.match(version) for condition in self._conditions)


def consumer_config(
    topic: str, cls_type: Strings = None, version: Strings = None, name: str | None = None
) -> Callable[[Handler], Handler]:
    """Declare that a function handles events of a topic; the arguments are those of :class:`Consumer`.

    The function stays what it was and can be called as before. Several of these above one function declare several
    consumers, called ``m.f``, ``m.f-2`` … from below: an event that two of them want is handled twice. Other
    decorators go below this one, since a scan looks at what the module holds in the end.

    Raises:
        ConfigError: an argument that can't be; it names the function.
    """

    def declare(func: Handler) -> Handler:
        below = len(getattr(func, venusian.ATTACH_ATTR, {}).get(CATEGORY, ()))
        own_name = name or _dotted_name(func) + (f"-{below + 1}" if below else "")
        consumer = Consumer(func, topic, cls_type, version, own_name)

        def register(scanner: Any, member: str, found: object) -> None:
            scanner.hub.add(consumer)

        venusian.attach(func, register, category=CATEGORY)
        return func

    return declare


def _dotted_name(func: Callable[..., Any]) -> str:
    name = getattr(func, "__qualname__", None) or type(func).__qualname__
    return f"{getattr(func, '__module__', None) or '?'}.{name}"


def _strings(consumer: str, argument: str, value: str | Iterable[str]) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"consumer {consumer}: {argument} {value!r} is neither a text nor a tuple of texts")
    return texts


def _condition(consumer: str, text: str) -> semantic_version.SimpleSpec:
    try:
        return semantic_version.SimpleSpec(text)
    except ValueError:
        raise ConfigError(
            f"consumer {consumer}: version {text!r} is not a condition; want something like '>=1.0.1,<2'"
        ) from None


@lru_cache(maxsize=64)
def _version(text: str) -> semantic_version.Version | None:
    try:
        return semantic_version.Version(text)
    except ValueError:
        return None
