"""A consumer: a handler, the events that it wants, and how they are delivered; declared by ``@consumer_config``."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import venusian

from balog.common.backoff import LONGEST_BACKOFF, Backoff
from balog.common.errors import ConfigError, EventError
from balog.common.stats import StatSample
from balog.consumers.conditions import Conditions, Facts, Texts
from balog.event import Event, decode
from balog.filters import Expression
from balog.topics import Received

__all__ = ["CATEGORY", "Backoff", "BatchOptions", "Consumer", "MessageConsumer", "ReceivedEvent", "consumer_config"]

CATEGORY = "balog.consumers"
"""The venusian category under which consumers are attached."""

MAX_BATCH = 10_000
MAX_RETRIES = 1000
MAX_CONCURRENCY = 1000
MAX_SECONDS = 12 * 3600.0
"""The longest time that SQS lets a message be held."""

BATCH_WAIT = 1.0

Handler = TypeVar("Handler", bound=Callable[..., Any])


class BatchOptions(NamedTuple):
    """Up to ``size`` events in one call, and after ``wait`` seconds as many as there are."""

    size: int
    wait: float = BATCH_WAIT


class Consumer:
    """A handler, the events that it wants, and how they are delivered.

    A consumer wants an event that meets every condition:

    Args:
        func: the handler, plain or ``async def``; the operator decides about its arguments.
        topic: the topic's name, possibly with ``{placeholders}`` that the operator fills in.
        cls_type: one payload type or several; None for all, also a payload without a type.
        version: one condition on the event's ``schema`` or several that must all hold, as semantic-version's
            ``SimpleSpec`` writes them (``'<1.0'``, ``'>=1.0.1,<2'``, ``'==1.2.3'``), except that a third part that is
            missing after an operator is 0, so that ``'==1.0'`` is 1.0.0 alone; None for all.
        name: its name in logs, dead letters and the ledger, unique in a hub; ``module.function`` when omitted. A
            renamed consumer is a new one, without a record of what the old one handled.
        payload_version: the same as ``version`` for the payload's ``version``; a payload without one does not meet it.
        channel: one glob or several, of which one must match: ``*``, ``?``, ``[ab]``, case-sensitive.
        level: this level and above. An event without a level, as in facility 0.0.1, counts as INFO.
        where: a condition in the filter language, ``payload.rows > 1000``; see :mod:`balog.filters`.
        batch: the handler gets a list of at most so many events. With seconds, it gets fewer when so much time passed
            since the first one; otherwise after 1 second.
        retries: further attempts after the first; from the engine's ``max_attempts`` when omitted.
        backoff: upper limit of the seconds before the second attempt, doubled for each further one, and of every delay
            (60 when omitted); each delay is drawn from 0 to its limit; the
            engine says when omitted.
        timeout: seconds that a call may take.
        concurrency: concurrent calls of this handler; as many as the engine has when omitted.
        ordered_by: an expression over an event. Events with the same value are handled one after the other in order of
            arrival, and a failed one holds back only those. NULL for no order.

    Attributes:
        is_async: whether the handler is ``async def``; a plain one that returns an awaitable has failed.
        takes_messages: whether it is a :class:`MessageConsumer`.
        takes_settings: whether the handler can be called with two arguments. :class:`ConsumerOperator` calls one that
            takes a single argument with the event alone.

    Raises:
        ConfigError: an invalid argument; the error names the function.
    """

    takes_messages: ClassVar[bool] = False

    def __init__(
        self,
        func: Callable[..., Any],
        topic: str,
        cls_type: Texts = None,
        version: Texts = None,
        name: str | None = None,
        *,
        payload_version: Texts = None,
        channel: Texts = None,
        level: str | None = None,
        where: str | None = None,
        batch: int | tuple[int, float] | None = None,
        retries: int | None = None,
        backoff: float | tuple[float, float] | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
        ordered_by: str | None = None,
    ) -> None:
        self.func = func
        self.name = _read_name(func, name)
        if not callable(func):
            raise self._refuse("func", func, "expected a function")
        kernel = _kernel(func)
        if inspect.isgeneratorfunction(kernel) or inspect.isasyncgenfunction(kernel):
            raise ConfigError(f"consumer {self.name}: it has a yield, so that calling it would run nothing of it")
        self.is_async = inspect.iscoroutinefunction(kernel)
        self.takes_settings = _takes_two(func)
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"consumer {self.name}: topic {topic!r} is not a name")
        self.topic = topic
        self.conditions = Conditions(self.name, cls_type, version, payload_version, channel, level)
        self.where = self._expression("where", where, "bool")
        self.ordered_by = self._expression("ordered_by", ordered_by, "any")
        self.batch = None if batch is None else self._batch(batch)
        self.retries = None if retries is None else self._whole("retries", retries, 0, MAX_RETRIES)
        self.backoff = None if backoff is None else self._backoff(backoff)
        self.timeout = None if timeout is None else self._seconds("timeout", timeout)
        self.concurrency = None if concurrency is None else self._whole("concurrency", concurrency, 1, MAX_CONCURRENCY)

    def __repr__(self) -> str:
        return f"<Consumer {self.name} of {self.topic}>"

    @property
    def cls_type(self) -> tuple[str, ...] | None:
        """The payload types that it wants, in the order of their declaration; None for all."""
        return self.conditions.types

    @property
    def version(self) -> tuple[str, ...] | None:
        """The conditions on the facility layer's version; None for all."""
        return self.conditions.version

    @property
    def matches_its_own_way(self) -> bool:
        """Whether a subclass, or the object itself, overrides ``match_event``."""
        return getattr(self.match_event, "__func__", None) is not Consumer.match_event

    def match_event(self, event: Event | dict[str, Any]) -> bool:
        """Return whether this consumer wants an event, which is an ``Event`` or a plain dict.

        A subclass may override this; it is then called for every event of the topic.
        """
        if isinstance(event, Event):
            facts = Facts.of_event(event, head=self.conditions.reads_head)
            return self.conditions.meet(facts) and (self.where is None or self.where.matches(event))
        if not self.conditions.meet(Facts.of_dict(event)):
            return False
        if self.where is None:
            return True
        try:
            return self.where.matches(decode(msgspec.json.encode(event)))
        except (EventError, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
            return False  # not an event

    def key_of(self, event: Event) -> str | None:
        """Return the key whose events are handled in order; None without ``ordered_by``, or when the key is NULL."""
        if self.ordered_by is None:
            return None
        value = self.ordered_by.evaluate(event)
        if value is None or value.__class__ is str:
            return value
        if isinstance(value, datetime):
            return value.isoformat()
        try:
            return msgspec.json.encode(value).decode()
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
            return str(value)

    def samples(self) -> Iterable[StatSample]:
        """Return the counters that the consumer adds to the engine's metrics: none, unless a subclass overrides it."""
        return ()

    def _refuse(self, argument: str, value: object, expected: str) -> ConfigError:
        return ConfigError(f"consumer {self.name}: {argument} {value!r:.200} can't be; {expected}")

    def _expression(self, argument: str, text: object, gives: Any) -> Expression | None:
        if text is None:
            return None
        if not isinstance(text, str) or not text.strip():
            raise self._refuse(argument, text, "expected an expression such as \"payload.stream = 'users'\"")
        try:
            return Expression(text, gives=gives)
        except ConfigError as error:
            raise ConfigError(f"consumer {self.name}: {argument}: {error}") from None

    def _whole(self, argument: str, value: object, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._refuse(argument, value, f"expected a whole number from {least} to {most}")
        return value

    def _seconds(self, argument: str, value: object) -> float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not 0 < value <= MAX_SECONDS:  # type: ignore[arg-type,operator]
            raise self._refuse(argument, value, f"expected seconds, more than 0 and at most {MAX_SECONDS:g}")
        return float(value)  # type: ignore[arg-type]

    def _batch(self, value: Any) -> BatchOptions:
        size, wait = self._pair("batch", value, "expected a size, or (size, seconds to wait)", BATCH_WAIT)
        return BatchOptions(self._whole("batch", size, 1, MAX_BATCH), self._seconds("batch: wait", wait))

    def _backoff(self, value: Any) -> Backoff:
        first, longest = self._pair("backoff", value, "expected seconds, or (first, longest)", None)
        first = self._seconds("backoff", first)
        longest = max(first, LONGEST_BACKOFF) if longest is None else self._seconds("backoff: longest", longest)
        if longest < first:
            raise self._refuse("backoff", value, "expected (first, longest), the longest not below the first")
        return Backoff(first, longest)

    def _pair(self, argument: str, value: Any, expected: str, second: Any) -> tuple[Any, Any]:
        if not isinstance(value, (tuple, list)):
            return value, second
        if len(value) != 2:
            raise self._refuse(argument, value, expected)
        return value[0], value[1]


class ReceivedEvent(NamedTuple):
    """An event and the message that brought it: its exact bytes, when it was published, and how often it came."""

    event: Event
    message: Received


class MessageConsumer(Consumer):
    """A consumer whose handler delivers messages to another system and decides itself when to give up.

    - The handler gets a :class:`ReceivedEvent`, or a list of them for a batch.
    - Events of a failed batch are retried together, in one batch again: the handler finds the event that fails it.
    - The text of a ``Reject`` is the reason of the dead letter as it is, and the handler reports its failures itself:
      the engine logs none.
    - It gets also events that its own failures caused.
    """

    takes_messages = True

    @property
    def error(self) -> str:
        """Why the other system fails, in one line; "" while it works."""
        return ""

    def close(self) -> None:
        """Close the connections to the other system."""


def consumer_config(
    topic: str,
    cls_type: Texts = None,
    version: Texts = None,
    name: str | None = None,
    *,
    consumer_cls: type[Consumer] = Consumer,
    **options: Any,
) -> Callable[[Handler], Handler]:
    """Declare that a function handles events of a topic; the arguments are those of :class:`Consumer`.

    The function is unchanged and can be called as before. Several of these decorators on one function declare several
    consumers, named ``m.f``, ``m.f-2`` … from the bottom: an event that two of them want is handled twice. Put other
    decorators below this one, because a scan reads the module's final attributes.

    Args:
        consumer_cls: a subclass of ``Consumer`` to create, such as one that overrides ``match_event``. It gets the
            arguments by keyword and may accept further ones.

    Raises:
        ConfigError: an invalid argument; the error names the function.
    """

    def declare(func: Handler) -> Handler:
        below = len(getattr(func, venusian.ATTACH_ATTR, {}).get(CATEGORY, ()))
        own_name = _read_name(func, name) + (f"-{below + 1}" if below and name is None else "")
        if not (isinstance(consumer_cls, type) and issubclass(consumer_cls, Consumer)):
            raise ConfigError(f"consumer {own_name}: consumer_cls {consumer_cls!r} is not a subclass of Consumer")
        given = {"func": func, "topic": topic, "cls_type": cls_type, "version": version, "name": own_name}
        try:
            inspect.signature(consumer_cls).bind(**given, **options)
        except TypeError as error:
            raise ConfigError(f"consumer {own_name}: {error}; see help(balog.consumers.Consumer)") from None
        consumer = consumer_cls(**given, **options)  # type: ignore[arg-type]

        def register(scanner: Any, member: str, decorated: object) -> None:
            scanner.hub.add(consumer)

        venusian.attach(func, register, category=CATEGORY)
        return func

    return declare


def _read_name(func: Callable[..., Any], name: object) -> str:
    if name is not None and (not isinstance(name, str) or not name or not name.isprintable() or len(name) > 200):
        raise ConfigError(f"consumer {_dotted_name(func)}: name {name!r:.200} can't be; expected 1 to 200 characters")
    return name or _dotted_name(func)


def _dotted_name(func: Callable[..., Any]) -> str:
    name = getattr(func, "__qualname__", None) or type(func).__qualname__
    return f"{getattr(func, '__module__', None) or '?'}.{name}"


def _takes_two(func: Callable[..., Any]) -> bool:
    """Return whether a function accepts settings and event; True if its signature is unknown, or fits neither way."""
    try:
        signature = inspect.signature(func)
        signature.bind(None)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(None, None)
    except TypeError:
        return False
    return True


def _kernel(func: Any) -> Any:
    """Return the function that finally runs, inside ``functools.partial`` and callable objects."""
    while isinstance(func, functools.partial):
        func = func.func
    return func if inspect.isroutine(func) or isinstance(func, type) else type(func).__call__
