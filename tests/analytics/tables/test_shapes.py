"""Whatever payloads hold is found again in the columns of their table, in whatever order they come."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

t = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from balog.analytics.tables import table_schema as evolution  # noqa: E402
from balog.analytics.tables.shapes import PayloadShape, first_schema, from_registry  # noqa: E402
from balog.analytics.tables.table_schema import RECOVERED, merge  # noqa: E402
from tests.oracles.payload_recount import Table, recount  # noqa: E402


class Grown(Table):
    """A table that keeps its rows and their payloads."""

    def __init__(self, *batches: list[Any]) -> None:
        super().__init__("thing")
        self.rows: list[dict[str, Any]] = []
        self.texts: list[str] = []
        for batch in batches:
            self.add(batch)

    def add(self, payloads: list[Any]) -> "Grown":
        texts = [item.decode() if isinstance(item, bytes) else json.dumps(item) for item in payloads]
        self.rows += [row for row, _ in self.load(texts)]
        self.texts += texts
        return self

    def types(self) -> dict[str, str]:
        return {column.name: column.dataType.simpleString() for column in self.columns}

    def recount(self) -> None:
        """Hold all rows against their payloads, in the columns that there are now."""
        for row, text in zip(self.rows, self.texts):
            recount(self.columns, row, text, "thing")


NAMES = st.sampled_from(
    ["a", "A", "b", "id", "date", "a_recovered", "cls_type", "x.y", 'q"', "é", "", "payload_recovered"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**38, 10**60]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "5", "-1.50", "007", "1e400", "0.1234567890123456789", "x", "é\u2028", "2026-01-01T00:00:00Z"]
    ),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(NAMES, VALUES, max_size=4)
BATCHES = st.lists(st.lists(PAYLOADS, max_size=4), max_size=4)


@settings(deadline=None)
@given(BATCHES)
@example([[{"a": 1, "b": [1, "x"]}], [{"a": 1.5}], [{"a": "no"}], [{"a": True, "A": {"a": 2**70}}]])
@example([[{"a": 1}], [{"a": "x"}, {"a": "5"}, {"a": "5", "b": 1}]])
@example([[{"a": {"b": 1}}], [{"a": {"b": "x", "A": 1}}, {"a": []}, {"a": {}}, {"a": [{}, None]}]])
@example([[{"a": [{"b": 1}]}], [{"a": [{"b": 1}, {"b": [True, 1]}]}]])
@example([[{"a": 1.5}], [{"a": 2**53 + 1}]])
def test_every_value_of_every_event_is_in_some_column(batches: list[list[Any]]) -> None:
    Grown(*batches).recount()


@settings(deadline=None)
@given(BATCHES)
def test_seen_twice_a_batch_changes_nothing(batches: list[list[Any]]) -> None:
    table = Grown()
    for batch in batches:
        before = table.add(batch).schema
        assert table.add(batch).schema == before


@settings(deadline=None)
@given(st.lists(PAYLOADS, max_size=6), st.randoms())
def test_shapes_are_united_in_any_order(payloads: list[Any], random: Any) -> None:
    def shape(some: list[Any]) -> PayloadShape:
        made = PayloadShape()
        for payload in some:
            made.observe(payload)
        return made

    whole, parts = shape(payloads), [shape([payload]) for payload in payloads]
    random.shuffle(parts)
    united = PayloadShape()
    for part in parts:
        united.unite(part)
    assert united == whole


@pytest.mark.parametrize(
    ("payloads", "columns"),
    [
        ([{"a": 1}, {"a": 1.5}], {"a": "double"}),
        ([{"code": "12"}], {"code": "string"}),
        ([{"at": "2026-01-01T00:00:00Z"}], {"at": "string"}),
        ([{"a": None, "b": {}, "c": [], "d": [None, {}], "e": {"f": None}}], {}),
    ],
)
def test_a_field_has_the_type_of_its_values(payloads: list[Any], columns: dict[str, str]) -> None:
    assert Grown(payloads).types() == columns


def test_numeric_text_is_a_number_where_the_column_is_one() -> None:
    table = Grown([{"value": 1.5}], [{"value": "2.50"}, {"value": "7"}])
    assert table.lines == []
    assert [row["value"] for row in table.rows] == [1.5, 2.5, 7.0]


def test_whole_numbers_that_a_double_column_would_round_are_recovered_with_all_digits() -> None:
    table = Grown([{"a": 1.5}], [{"a": 2**53 + 1}])
    assert (table.types(), table.rows[-1]) == ({"a": "double"}, {"a": None, RECOVERED: f'{{"a":{2**53 + 1}}}'})
    table.add([{"a": 2**63}]).add([{"a": 2**53 + 1}])  # from now on, the decimal column has room for both
    assert table.types() == {"a": "double", "a_recovered": "decimal(38,0)"}
    assert [row["a_recovered"] for row in table.rows[-2:]] == [Decimal(2**63), Decimal(2**53 + 1)]


def test_text_that_is_no_number_is_recovered_beside_numbers() -> None:
    table = Grown([{"a": 1}], [{"a": "x"}, {"a": "5"}, {"a": "007"}])
    assert [(row["a"], row.get("a_recovered")) for row in table.rows] == [
        (1, None),
        (None, "x"),
        (5, None),
        (None, "007"),
    ]


def test_numbers_beyond_64_bits() -> None:
    table = Grown([{"a": 2**63 - 1, "b": 2**63, "c": 10**40}])
    assert table.types() == {"a": "bigint", "b": "decimal(38,0)", "c": "decimal(38,0)"}
    assert table.rows[0]["b"] == Decimal(2**63)
    assert json.loads(table.rows[0][RECOVERED]) == {"c": 10**40}


def test_an_object_keeps_what_fits_and_gives_the_rest_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolution, "MOST_COLUMNS", 2)
    table = Grown([{"a": {"b": 1, "c": 2, "d": 3}}])
    assert table.rows[0]["a"] == {"b": 1, "c": 2}
    assert table.rows[0][RECOVERED] == '{"a":{"d":3}}'


def test_a_payload_as_deep_as_it_likes() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    shallow: Any = [b'{"a":' * 5000 + b"1" + b"}" * 5000, {"b": 1}]
    table = Grown([deep, *shallow])
    recount(table.columns, table.rows[0], table.texts[0], "thing")
    assert table.rows[1][RECOVERED] == shallow[0].decode()
    assert table.rows[2]["b"] == 1


def test_fields_named_by_what_they_are_about_stay_bounded() -> None:
    table = Grown([{"users": {f"u{number}": 1}} for number in range(1500)])
    assert evolution._leaves(table.columns[0].dataType) == evolution.MOST_COLUMNS
    table.recount()


def test_a_number_that_no_double_holds_is_kept_as_it_was_written() -> None:
    table = Grown([{"a": 1.5}, b'{"a":1e999}'])
    assert table.rows[1] == {"a": None, RECOVERED: '{"a":1e999}'}


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    assert Grown([b'{"a":1,"a":2}', b'{"a":"x","a":3}']).rows[0]["a"] == 2


def test_a_registry_makes_times_and_leaves_open_what_it_does_not_say() -> None:
    run, state = from_registry("run"), from_registry("state")
    assert run["started"].dataType == t.TimestampType()
    counts = "stream:string,records:bigint,bytes:bigint,new:bigint,updated:bigint,quarantined:bigint,problem:string"
    assert run["streams"].dataType.simpleString() == f"array<struct<{counts}>>"
    assert "state" not in run.names
    assert state.names == ["version"]
    assert from_registry("metric").simpleString() == "struct<version:string,type:string,metric:string,value:double>"
    assert from_registry("log")["exception"].dataType["frames"].dataType.elementType["file"].dataType == t.StringType()
    assert from_registry("nobody's") is None


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("2026-02-27T10:00:00Z", True),
        ("2026-02-28T10:00:00.123456+02:00", True),
        ("2026-02-29T10:00:00Z", False),
        ("2024-02-29T10:00:00Z", True),
        ("2026-01-31T23:59:59Z", True),
        ("2026-01-01T10:00:00.1234567Z", False),
        ("2026-01-01T10:00:00", False),
        ("0000-01-01T10:00:00Z", False),
        ("2026-01-01T10:00:60Z", False),
        ("2026-01-01T10:00:00Z\n", False),
    ],
)
def test_a_timestamp_column_takes_what_it_can_hold(text: str, fits: bool) -> None:
    table = Grown()
    table.schema = merge(None, from_registry("run")).schema
    table.add([{"started": text}])
    assert (table.rows[0]["started"] is not None) == fits
    assert table.rows[0].get("started_recovered") == (None if fits else text)
    if fits:
        from datetime import datetime

        assert table.rows[0]["started"] == datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_a_type_that_balog_has_no_schema_of_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    first_schema("metric")
    monkeypatch.setattr("balog.analytics.tables.shapes.find_schema", lambda *_: pytest.fail("it was looked up"))
    assert [first_schema(f"type_{number}") for number in range(3)] == [None, None, None]
