import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.embedded.raw_tables import QueryTables
from balog.analytics.embedded.statement import ask as ask_embedded
from balog.analytics.embedded.stored_tables import StoredTables
from balog.analytics.embedded.values import SparkNeeded, simple_type
from balog.analytics.querying.output import write_text
from balog.analytics.querying.policy import check
from balog.analytics.querying.rows import write_rows
from balog.analytics.querying.sources import open_source
from balog.analytics.querying.statement import ask as ask_spark
from balog.analytics.tables import open_store, open_tables
from balog.analytics.tables.loader import LoadOptions, load
from balog.errors import ConfigError

pytestmark = pytest.mark.spark


def statements(name: str) -> list[str]:
    """The lines of a file of statements, without its first, which is a comment."""
    return (Path(__file__).with_name("statements") / name).read_text().splitlines()[1:]


EXPRESSIONS = statements("expressions.sql")
QUERIES = [
    sql for name in ("queries", "incidents", "values", "raw_queries", "evolved") for sql in statements(f"{name}.sql")
]
LEFT_TO_SPARK = statements("left_to_spark.sql")
HOSTILE = statements("hostile.sql")

_INNER = {"a": 'it\'s "é" \\ \n\u0007'}
PAYLOADS: list[dict[str, Any]] = [
    {
        "n": 1,
        "x": 0.5,
        "text": "abc",
        "word": "Ab",
        "flag": True,
        "items": [3, 1],
        "part": {"a": "p", "inner": {"b": 1}},
    },
    {"n": 2, "x": 2.675, "text": "a c", "word": "abc", "flag": False, "items": [2], "part": {"inner": {"b": -1}}},
    {"n": 3, "x": -1.25, "text": " b12 ", "word": "zz", "flag": True, "items": [5, None], "part": {"a": "q"}},
    {"n": None, "x": 1e10, "text": "", "word": "abc", "flag": None, "items": [9]},
    {"n": -7, "x": 1e-5, "text": None, "word": "x", "items": [0], "part": _INNER},
    {"n": 3_000_000_000, "x": 123456789.125, "text": "日本 e\u0301", "word": "ABAB", "flag": True, "items": [7, 8, 9]},
    {"n": 3, "x": -0.0, "text": "abc", "word": "q", "flag": False, "items": [1]},
]


LOGS: list[tuple[str, str, dict[str, Any]]] = [
    ("ERROR", "tap_shop", {"message": "orders: timeout after 30 s", "error": {"type": "TimeoutError", "retries": 3}}),
    ("INFO", "tap_shop", {"message": "orders: 1200 rows", "stream": "orders", "rows": 1200, "took": 1.25}),
    ("ERROR", "tap_bank", {"message": "Konto gesperrt: Zürich – ошибка ☃ 日本", "error": {"type": "HTTPError"}}),
    ("INFO", "tap_bank", {"message": "accounts: 7 rows", "stream": "accounts", "rows": 7, "took": 0.5}),
    ("WARNING", "target", {"message": "it's late; 100 % full", "rows": None, "took": None, "tags": ["a", "é", None]}),
    ("INFO", "target", {"message": "", "stream": "orders", "rows": 1199, "took": 2.0, "tags": []}),
]


def documents() -> Iterator[dict[str, Any]]:
    """The events of the tables: probes, log lines and metrics; there are no runs."""
    payloads = [("probe", "tap-x", ("INFO", "ERROR", "DEBUG")[n % 3], one) for n, one in enumerate(PAYLOADS * 2)]
    payloads += [("log", application, level, one) for level, application, one in LOGS * 2]
    for number in range(8):
        metric = {"metric": "http_request_duration", "type": "timer", "value": 0.1 * number, "tags": {"endpoint": "/o"}}
        counter = {"metric": "record_count", "type": "counter", "value": number, "tags": {"stream": "orders"}}
        payloads += [("metric", "tap_shop", "INFO", one) for one in (metric, counter)]
    for number, (kind, application, level, payload) in enumerate(payloads):
        header = {
            "id": f"LG{number:022d}",
            "channel": f"x.{number % 2}" if kind == "probe" else f"{application}.{kind}",
            "timestamp": f"2026-11-{19 + number % 3}T0{number % 9}:59:{number:02d}.{number * 1000:06d}Z",
            "level": level,
            "composition": False,
            "context": {"application": application, "run_id": f"r{number % 3}"},
        }
        yield {"schema": "0.1.0", "header": header, "payload": {"cls_type": kind, **payload}}


EVOLVED: list[list[dict[str, Any]]] = [
    [{"buyer": {"name": "x"}, "null_first": None, "items": [{"k": 1}, None], "lists": [1, 2]}, {}],
    [
        {
            "buyer": {"name": "y", "address": {"city": "c"}},
            "absent_first": {"a": {"b": 1}},
            "null_first": {"n": {"m": 1}},
        }
    ],
    [{"buyer": {"address": {"geo": {"lat": 0.5}}}, "items": [{"k": 2, "at": {"x": [{"z": 1}]}}], "lists": {"one": 1}}],
    [{"buyer": None, "absent_first": {"a": {"b": 2, "c": [{"d": {"e": "f"}}]}}, "lists": [3], "items": []}, {}],
]
"""The payloads of the type ``evolved``, load by load: objects in objects and in lists gain objects."""


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contract")
    (folder / "raw").mkdir()
    (folder / "evolved").mkdir()
    (folder / "raw" / "a.jsonl").write_text("\n".join(["{ broken", *map(json.dumps, documents()), ""]))
    store = open_store(spark, str(folder / "tables"))
    for number, payloads in enumerate(EVOLVED):
        (folder / "evolved" / f"{number}.jsonl").write_text("".join(evolved(number, payloads)))
    with store.writing():
        load(spark, store, [str(folder / "raw")])
        load(spark, store, [str(folder / "evolved")], LoadOptions(batch_bytes=1))  # one commit a file
    return folder / "tables"


def evolved(number: int, payloads: list[dict[str, Any]]) -> Iterator[str]:
    for row, payload in enumerate(payloads):
        header = {
            "id": f"LGe{number}{row:020d}",
            "channel": "evolved",
            "timestamp": f"2026-11-2{number}T07:00:00Z",
            "level": "DEBUG",
            "composition": False,
            "context": {"application": "evolved"},
        }
        document = {"schema": "1.0.0", "header": header, "payload": {"cls_type": "evolved", **payload}}
        yield json.dumps(document) + "\n"


def on_spark(spark: Any, place: Path, sql: str) -> tuple[list[str], list[str], str]:
    frame = ask_spark(spark, open_tables(spark, str(place)), sql, [str(place.parent / "raw")])
    out = io.StringIO()
    write_text(frame, "csv", out, None)
    return frame.columns, [field.dataType.simpleString() for field in frame.schema.fields], out.getvalue()


def embedded(place: Path, sql: str) -> tuple[list[str], list[str], str]:
    stored, sources = StoredTables(str(place)), [str(place.parent / "raw")]
    checked = check(sql, stored.names(), sources)
    raw = [open_source(path, sources) for path in checked.paths]
    out = io.StringIO()
    with QueryTables(stored, {source.name: source.options for source in raw}, checked.words) as tables:
        question = ask_embedded(tables, checked.query)
        with question.rows() as rows:
            write_rows(question.names, rows, "csv", out, None)
    return question.names, [simple_type(kind) for kind in question.kinds], out.getvalue()


def parsed(text: str, is_ordered: bool) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text)))
    return rows if is_ordered else sorted(rows)


def alike(one: str, other: str) -> bool:
    """Whether two cells are the same; sums of floating point numbers depend on the order of the rows."""
    if one == other:
        return True
    try:
        return "." in one and math.isclose(float(one), float(other), rel_tol=1e-12)
    except ValueError:
        return False


def assert_alike(rows: list[list[str]], wanted: list[list[str]]) -> None:
    assert len(rows) == len(wanted)
    for row, wanted_row in zip(rows, wanted):
        assert all(map(alike, row, wanted_row)), (row, wanted_row)


@pytest.fixture(scope="module")
def columns(spark: Any, place: Path) -> dict[str, tuple[str, list[list[str]]]]:
    """What Spark answers for each expression, many in one statement: its type, and its values in the order of ids."""
    found = {}
    for start in range(0, len(EXPRESSIONS), 50):
        some = EXPRESSIONS[start : start + 50]
        shown = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(some))
        _, kinds, text = on_spark(spark, place, f"SELECT {shown} FROM probe ORDER BY id")
        values = zip(*parsed(text, True)[1:])
        found.update({one: (kind, [[value] for value in each]) for one, kind, each in zip(some, kinds, values)})
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_has_the_same_type_and_values_on_both_engines(
    columns: dict[str, tuple[str, list[list[str]]]], place: Path, expression: str
) -> None:
    _, [kind], text = embedded(place, f"SELECT {expression} AS it FROM probe ORDER BY id")
    wanted_kind, wanted = columns[expression]
    assert_alike(parsed(text, True)[1:], wanted)
    assert kind == wanted_kind


@pytest.mark.parametrize("sql", QUERIES)
def test_a_statement_has_the_same_columns_types_and_rows_on_both_engines(spark: Any, place: Path, sql: str) -> None:
    sql = sql.replace("RAW", str(place.parent / "raw"))
    names, kinds, text = embedded(place, sql)
    wanted_names, wanted_kinds, wanted = on_spark(spark, place, sql)
    assert names == wanted_names
    assert_alike(parsed(text, "ORDER BY" in sql), parsed(wanted, "ORDER BY" in sql))
    assert kinds == wanted_kinds


@pytest.mark.parametrize("sql", LEFT_TO_SPARK)
def test_other_statements_name_the_engine_that_answers_them(place: Path, sql: str) -> None:
    with pytest.raises(SparkNeeded, match=r"--engine spark$") as refused:
        embedded(place, sql)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_reaches_beyond_the_tables_is_refused_by_both_engines(spark: Any, place: Path, sql: str) -> None:
    before = sorted(place.parent.rglob("*"))
    sql = sql.replace("RAW", str(place.parent / "raw"))
    for answer in (lambda: embedded(place, sql), lambda: on_spark(spark, place, sql)):
        with pytest.raises(ConfigError) as refused:
            answer()
        assert "\n" not in str(refused.value)
        assert "root:" not in str(refused.value)
    assert sorted(place.parent.rglob("*")) == before


def test_at_least_150_statements_are_compared() -> None:
    assert len(set(QUERIES)) == len(QUERIES) >= 150


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT zzzz FROM probe", "no column 'zzzz', line 1, column 8; there are "),
        ("SELECT lvl,\n  id FROM events", "no column 'lvl', line 1, column 8; did you mean 'level'?"),
        ("SELECT p.txt FROM probe p", "no column 'p.txt', line 1, column 8; did you mean 'text'?"),
        ("SELECT id FROM events WHERE\n lvl", "no column 'lvl', line 2, column 2; did you mean 'level'?"),
        ("SELECT part.iner FROM probe", "no column 'part.iner', line 1, column 8; did you mean 'part.inner'?"),
        ("SELECT part.inner.bb FROM probe", "no column 'part.inner.bb', line 1, column 8; did you mean 'part.inner.b'"),
        ("SELECT innr FROM probe", "no column 'innr', line 1, column 8; did you mean 'part.inner'?"),
        ("SELECT e.wrd FROM events e JOIN probe p ON e.id = p.id", "did you mean 'word'?"),
        ("SELECT id FROM events WHERE id IN (SELECT wrd FROM probe)", "did you mean 'word'?"),
        ("SELECT count(*) AS total FROM probe ORDER BY totl", "did you mean 'total'?"),
        ("SELECT quarantne.raw FROM balog.`RAW`", "did you mean 'quarantine.raw'?"),
        ("SELECT payload_jsn FROM balog.`RAW`", "did you mean 'payload_json'?"),
    ],
)
def test_a_misspelt_column_is_the_nearest_of_all_on_both_engines(spark: Any, place: Path, sql: str, near: str) -> None:
    sql = sql.replace("RAW", str(place.parent / "raw"))
    messages = []
    for run in (lambda: embedded(place, sql), lambda: on_spark(spark, place, sql)):
        with pytest.raises(ConfigError) as refused:
            run()
        messages.append(str(refused.value))
    assert near in messages[0]
    assert messages[1].partition("; there are")[0] == messages[0].partition("; there are")[0]
