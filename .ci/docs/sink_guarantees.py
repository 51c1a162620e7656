"""The table of the sinks' guarantees, from their config classes."""

from __future__ import annotations

import tables

from balog.sinks.base import SINKS
from balog.sinks.guarantee import SinkGuarantee


def of_sink(name: str) -> str:
    """Return the table of one sink."""
    return _table([(name, each) for each in SINKS.load(name).guarantees])


def of_all() -> str:
    """Return the table of all built-in sinks."""
    return _table([(name, each) for name in sorted(SINKS.builtin) for each in SINKS.load(name).guarantees])


def _table(guarantees: list[tuple[str, SinkGuarantee]]) -> str:
    heads = ("sink", "extra", "delivery", "safe once", "a repeated event", "one request carries", "never retried")
    rows = [
        (
            tables.code(name) + (f", {tables.code(each.option)}" if each.option else ""),
            tables.code(each.extra) if each.extra else "–",
            each.delivery,
            each.safe_once,
            each.repeats or "is there twice",
            each.request,
            each.not_retried or "–",
        )
        for name, each in guarantees
    ]
    return tables.table(heads, rows)
