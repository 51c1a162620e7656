"""The same predicate over the same rows, here and in DuckDB."""

import itertools
from collections.abc import Iterator
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predicates import NUMBERS, STRINGS, Predicates

from balog.filters import Expression

COLUMNS = ["s", "t", "x", "y", "p", "q"]


def make_rows() -> list[dict[str, object]]:
    random = Random(7)
    texts, numbers, bools = [*STRINGS, None, None], [*NUMBERS, None, None], [True, False, None]
    picks = [texts, texts, numbers, numbers, bools, bools]
    rows = [{name: random.choice(values) for name, values in zip(COLUMNS, picks)} for _ in range(60)]
    return rows + [dict(zip(COLUMNS, (None,) * 4 + pair)) for pair in itertools.product(bools, bools)]


ROWS = make_rows()


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, theirs in (("startswith", "starts_with"), ("endswith", "ends_with")):
            connection.execute(f"CREATE MACRO {name}(text, part) AS {theirs}(text, part)")
        connection.execute("CREATE TABLE t (i INT, s TEXT, t TEXT, x DOUBLE, y DOUBLE, p BOOLEAN, q BOOLEAN)")
        rows = [[i, *row.values()] for i, row in enumerate(ROWS)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        yield connection


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_predicate_chooses_the_rows_that_duckdb_chooses(database: duckdb.DuckDBPyConnection, random: Random) -> None:
    text = Predicates(random, ["s", "t"], ["x", "y"], ["p", "q"]).condition(4)
    theirs = [value for (value,) in database.execute(f"SELECT ({text}) FROM t ORDER BY i").fetchall()]
    ours = Expression(text, "row")
    assert [ours.evaluate(row) for row in ROWS] == theirs, text
    assert [ours.matches(row) for row in ROWS] == [value is True for value in theirs], text
