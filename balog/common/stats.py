"""Counters and gauges of a component, in the one form that every process exports.

A component keeps its numbers in a subclass of ``Stats``, with a help text for each. As ``StatSample``\\ s they become
``metric`` events (the broker, the sidecar) or families of Prometheus (consumers, the event service)::

    class PipeStats(Stats):
        component: ClassVar[str] = "pipe"
        lines: Annotated[int, counter("Lines that were read.")] = 0

    stats.lines += 1
    list(stats.samples({"stage": "first"}))  # pipe_lines; balog_pipe_lines_total for Prometheus
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

_Own = TypeVar("_Own", bound="Stats")


class _Declared(NamedTuple):
    kind: Literal["counter", "gauge"]
    help: str


class StatSample(NamedTuple):
    """The value of one counter or gauge at one time.

    Attributes:
        name: the component and the field, such as ``sink_delivered``: the name of its ``metric`` events.
        kind: ``counter``, which only grows, or ``gauge``, the level now.
        help: one sentence.
        value: of a counter, the total since the start.
        labels: what distinguishes this component from others of its kind, such as the name of the sink.
    """

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    value: float
    labels: Mapping[str, str]

    @property
    def family(self) -> str:
        """The metric's name for Prometheus, without the suffix ``_total`` of a counter."""
        return f"balog_{self.name}"


def counter(help: str) -> _Declared:
    """Declare a counter: ``received: Annotated[int, counter("Messages that arrived.")] = 0``."""
    return _Declared("counter", help)


def gauge(help: str) -> _Declared:
    """Declare a gauge, as ``counter`` does a counter."""
    return _Declared("gauge", help)


class Stats(Struct):
    """Base of the numbers of a component. Fields declared by ``counter`` and ``gauge`` are exported, others are not.

    Attributes:
        component: the first part of the metrics' names.
    """

    component: ClassVar[str] = ""

    def samples(self, labels: Mapping[str, str] | None = None) -> Iterator[StatSample]:
        """Yield the value of each declared field that is not None."""
        for field, name, declared in declared_metrics(type(self)):
            value = getattr(self, field)
            if value is not None:
                yield StatSample(name, declared.kind, declared.help, float(value), labels or {})

    def add(self: _Own, other: _Own) -> None:
        """Add the numbers of another component of this kind; of bools, whether either is True."""
        for field, _, _ in declared_metrics(type(self)):
            mine, theirs = getattr(self, field), getattr(other, field)
            setattr(self, field, mine or theirs if isinstance(mine, bool) else mine + theirs)


@lru_cache
def declared_metrics(kind: type[Stats]) -> tuple[tuple[str, str, _Declared], ...]:
    """Return each declared field of a class, the name of its metric, and its declaration."""
    metrics = []
    for field, hint in get_type_hints(kind, include_extras=True).items():
        declared = get_args(hint)[-1] if get_origin(hint) is Annotated else None
        if isinstance(declared, _Declared):
            metrics.append((field, f"{kind.component}_{field}", declared))
    return tuple(metrics)
