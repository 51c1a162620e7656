"""Rows of random legitimate sources, with repeats, toggles and equal pages: all of them arrive, in their order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from balog.tap import Tap
from balog.tap.patterns import by_cursor, by_offset, by_page, pages
from tests.oracles.effort import seeds
from tests.tap.syncs import sync

_RUNS = 150


def _rows(random: random.Random) -> list[dict[str, Any]]:
    """Return rows whose likeness a guard may take for a circle: toggles, repeats, cycles behind a beginning."""
    ids, names = random.randint(1, 4), ["on", "off", None, ""][: random.randint(1, 4)]

    def row() -> dict[str, Any]:
        return {"id": random.randint(1, ids), "name": random.choice(names)}

    rows = [row() for _ in range(random.choice([0, 1, 7, 50]))]
    while len(rows) < 2000 and random.random() < 0.9:
        cycle = [row() for _ in range(random.choice([1, 1, 2, 2, 3, 8, 40]))]
        rows += [dict(each) for _ in range(random.choice([1, 2, 25, 300])) for each in cycle]
    return rows


def _given(random: random.Random, rows: list[dict[str, Any]]) -> Iterator[Any]:
    """Give the rows as a tap might: one by one, in lists of any size, by this toolkit's ``pages``."""
    size = random.randint(1, 50)
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    kind = random.choice(["single", "lists", "offset", "page", "cursor", "scroll"])
    if kind == "single":
        yield from rows
    elif kind == "lists":
        yield from parts
    elif kind == "offset":
        yield from pages(lambda at: rows[at : at + size], by_offset(size), first=0)
    elif kind == "page":
        yield from pages(lambda number: [*parts, []][number - 1], by_page(), first=1)
    elif kind == "cursor":
        yield from pages(
            lambda at: {"rows": rows[at : at + size], "next": at + size if at + size < len(rows) else None},
            by_cursor("next"),
            first=0,
            items="rows",
        )
    else:  # one position for all pages, as a scroll has it
        rest = iter([*parts, []])

        def scroll(_: Any) -> dict[str, Any]:
            part = next(rest)
            return {"rows": part, "next": "scroll" if part else None}

        yield from pages(scroll, by_cursor("next"), items="rows", may_repeat=True)


@pytest.mark.parametrize("seed", seeds(1))
def test_all_rows_arrive_in_their_order(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(_RUNS):
        rows = _rows(chance)
        tap = Tap("tap-cool")
        keys = ["id"] if chance.random() < 0.8 else []
        method: Any = chance.choice(["FULL_TABLE", "LOG_BASED", "INCREMENTAL"])
        replication_key = "id" if method == "INCREMENTAL" else None
        tap.stream("rows", key_properties=keys, replication_method=method, replication_key=replication_key)(
            lambda: _given(chance, rows)  # noqa: B023
        )
        tap.stream("next")(lambda: [{"id": 1}])

        ran = sync(tap)

        assert (ran.code, ran.failures) == (0, [])
        assert ran.records("rows") == rows
        assert ran.ids("next") == [1]
