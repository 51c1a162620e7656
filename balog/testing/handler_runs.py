"""Run handlers in a test: publish events, run the real engine until the topics are empty, assert on dead letters."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from balog.event import Event, Level, encode, new_id
from balog.topics import DeadLetter, Message, Topics

if TYPE_CHECKING:
    from balog.consumers import Consumer, ConsumerHub, EngineStats
    from balog.consumers.operator import Operator

_PAUSE = 0.001  # seconds between attempts, whatever the consumer asks for
_BATCH_WAIT = 0.05  # seconds that a batch waits for more at most
_MAX_SHOWN = 10
_MAX_TRACEBACK = 4000


def publish(
    topics: Topics,
    topic: str,
    *what: Event | Mapping[str, Any] | bytes,
    channel: str = "tests",
    level: Level = "INFO",
    context: Mapping[str, Any] | None = None,
) -> list[Event]:
    """Publish to a topic: events, mappings as payloads of new events, or bytes as invalid messages.

    Messages have the event's ``run_id`` as their key, as those of the sink ``topic``.

    Args:
        channel: of the new events, like ``level`` and ``context``.

    Returns:
        The events in order, without the invalid messages.
    """
    events: list[Event] = []
    messages: list[Message] = []
    for item in what:
        if isinstance(item, bytes):
            messages.append(Message(new_id(), item))
            continue
        event = item if isinstance(item, Event) else Event.new(channel, item, level=level, context=dict(context or {}))
        run = event.header.context.get("run_id")
        events.append(event)
        messages.append(Message(event.header.id, encode(event), None if run is None else str(run)))
    topics.topic(topic).publish(messages)
    return events


def run_until_empty(
    handlers: ConsumerHub | ModuleType | str | Consumer | Callable[..., Any] | Iterable[Any],
    topics: Topics,
    *,
    settings: Mapping[str, Any] | None = None,
    operator: Operator | None = None,
    group: str = "balog",
    timeout: float = 60.0,
    **options: Any,
) -> EngineStats:
    """Run handlers with the real engine until the topics are empty, and return its stats.

    Failed events are retried as in production, but at once: delays of ``backoff`` and ``Retry`` take no time, and a
    batch does not wait for more events.

    Args:
        handlers: a hub, a package or its dotted name, consumers, functions under ``@consumer_config``, or several.
        settings: passed to the handlers, and fill placeholders in topic names.
        operator: replaces the default operator and its settings.
        timeout: seconds after which the run stops.
        options: of :class:`balog.consumers.Engine`: ``concurrency``, ``max_attempts``, ``hooks`` …

    Raises:
        AssertionError: events are left at the timeout; the message has their number in each state, and the last
            error of each handler.
        ConfigError: as raised by ``Engine.run``.
    """
    __tracebackhide__ = True
    from balog.consumers import ConsumerHub, ConsumerOperator, Engine
    from balog.consumers.ledgers.factory import MemoryLedger

    hub = ConsumerHub()
    for consumer in _hub(handlers).consumers:
        hub.add(_impatient(consumer))
    impatient = _Impatient(operator if operator is not None else ConsumerOperator(settings))
    options = {"first_delay": _PAUSE, "drain": 1.0, "ledger": MemoryLedger(), **options}
    engine = Engine(hub, topics, impatient, group, **options)
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        engine.stop()

    timer = threading.Timer(timeout, end)
    timer.start()
    try:
        counts = engine.run(until_empty=True)
    finally:
        timer.cancel()
    if is_over.is_set():
        raise AssertionError("\n".join([f"not empty after {timeout:g} s", *_left(topics, group), *impatient.errors()]))
    return counts


def assert_no_dead_letters(topics: Topics, group: str = "balog") -> None:
    """Assert that a group has no dead letters in any topic.

    Raises:
        AssertionError: each dead letter with its topic, the reason, who gave it up, and the traceback.
    """
    __tracebackhide__ = True
    lines: list[str] = []
    for name in topics.names():
        topic = topics.topic(name)
        dead = topic.group_state(group).dead
        shown = topic.dead_letters(group, _MAX_SHOWN)
        lines += [line for dead_letter in shown for line in _describe(name, dead_letter)]
        lines += [f"    … and {dead - len(shown)} more of {name}"] if dead > len(shown) else []
    if lines:
        raise AssertionError("\n".join([f"expected no dead letters of group {group}", *lines]))


def _describe(topic: str, dead_letter: DeadLetter) -> list[str]:
    who = f" by {', '.join(dead_letter.consumers)}" if dead_letter.consumers else ""
    times = "once" if dead_letter.attempts == 1 else f"{dead_letter.attempts} times"
    lines = [f"    {topic} {dead_letter.id}, delivered {times}, given up{who}: {dead_letter.reason}"]
    if dead_letter.traceback:
        text = dead_letter.traceback[-_MAX_TRACEBACK:]
        lines += [f"        {line}" for line in text.rstrip().splitlines()]
    body = dead_letter.body[:200].decode("utf-8", "replace")
    return [*lines, f"        {body}{'…' if len(dead_letter.body) > 200 else ''}"]


def _left(topics: Topics, group: str) -> list[str]:
    states = [(name, topics.topic(name).group_state(group)) for name in topics.names()]
    return [
        f"    {name}: {state.lag} never received, {state.in_flight} in flight, {state.waiting} to be tried again"
        for name, state in states
        if state.pending
    ]


def _hub(handlers: Any) -> ConsumerHub:
    """Make one hub of hubs, modules and functions.

    Raises:
        TypeError: an argument is not a handler, a package or a hub.
    """
    from balog.consumers import Consumer, ConsumerHub

    if isinstance(handlers, ConsumerHub):
        return handlers
    hub = ConsumerHub()
    for handler in handlers if isinstance(handlers, (list, tuple, set, frozenset)) else [handlers]:
        if isinstance(handler, (ModuleType, str)):
            hub.scan(handler)
        elif isinstance(handler, Consumer):
            hub.add(handler)
        elif isinstance(handler, ConsumerHub):
            for consumer in handler.consumers:
                hub.add(consumer)
        else:
            _add_function(hub, handler)
    return hub


def _add_function(hub: ConsumerHub, func: object) -> None:
    """Register a function as a scan of its module would. A scan does not find functions defined inside a test."""
    import venusian

    from balog.consumers.consumer import CATEGORY

    attached = getattr(func, venusian.ATTACH_ATTR, {}).get(CATEGORY, ())
    if not attached:
        raise TypeError(f"{func!r} is no handler: expected a function with @consumer_config, a package, or a hub")
    scanner = venusian.Scanner(hub=hub)
    for register, *_ in attached:
        register(scanner, getattr(func, "__name__", ""), func)


def _impatient(consumer: Consumer) -> Consumer:
    """Return a copy of a consumer without delays for backoff and batches."""
    from balog.common.backoff import Backoff
    from balog.consumers.consumer import BatchOptions

    quick = copy.copy(consumer)
    if consumer.backoff is not None:
        quick.backoff = Backoff(_PAUSE, _PAUSE)
    if consumer.batch is not None:
        quick.batch = BatchOptions(consumer.batch.size, min(consumer.batch.wait, _BATCH_WAIT))
    return quick


class _Impatient:
    """Wraps an operator: records the errors of handlers, and removes the delay of each ``Retry``."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._raised: dict[str, str] = {}

    def get_topic(self, consumer: Consumer) -> str:
        return self._operator.get_topic(consumer)

    def process_event(self, consumer: Consumer, event: Any) -> object:
        with self._watched(consumer):
            done = self._operator.process_event(consumer, event)
        return self._awaited(consumer, done) if inspect.isawaitable(done) else done

    async def _awaited(self, consumer: Consumer, done: Awaitable[object]) -> object:
        with self._watched(consumer):
            return await done

    @contextmanager
    def _watched(self, consumer: Consumer) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._raised[consumer.name] = f"{type(error).__name__}: {error}"
            _raise_impatient(error)

    def errors(self) -> list[str]:
        """Return a line with the last error of each consumer that raised."""
        return [f"    {name} raised {error}" for name, error in sorted(self._raised.items())]


def _raise_impatient(error: Exception) -> NoReturn:
    """Raise the error, each ``Retry`` in it without its delay."""
    from balog.consumers.outcomes import PartialFailure, Retry

    for each in error.failed.values() if isinstance(error, PartialFailure) else [error]:
        if isinstance(each, Retry):
            each.after = _PAUSE
    raise error
