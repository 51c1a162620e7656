import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.embedded.statement import ask as ask_embedded
from balog.analytics.embedded.stored_tables import StoredTables
from balog.analytics.embedded.values import SparkNeeded, simple_type
from balog.analytics.querying.output import write_text
from balog.analytics.querying.policy import check
from balog.analytics.querying.rows import write_rows
from balog.analytics.querying.statement import ask as ask_spark
from balog.analytics.tables import open_store, open_tables
from balog.analytics.tables.loader import load

pytestmark = pytest.mark.spark


def statements(name: str) -> list[str]:
    """The lines of a file of statements, without its first, which is a comment."""
    return (Path(__file__).with_name("statements") / name).read_text().splitlines()[1:]


EXPRESSIONS = statements("expressions.sql")
QUERIES = statements("queries.sql")
LEFT_TO_SPARK = statements("left_to_spark.sql")

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


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contract")
    lines = ["{ broken"]
    for number, payload in enumerate(PAYLOADS * 2):
        context = {"application": "tap-x", "run_id": f"r{number % 3}"}
        header = {
            "id": f"LG{number:022d}",
            "channel": f"x.{number % 2}",
            "timestamp": f"2026-11-{19 + number % 3}T0{number % 9}:59:{number:02d}.{number * 1000:06d}Z",
            "level": ("INFO", "ERROR", "DEBUG")[number % 3],
            "composition": False,
            "context": context,
        }
        lines.append(json.dumps({"schema": "1.0.0", "header": header, "payload": {"cls_type": "probe", **payload}}))
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    store = open_store(spark, str(folder / "tables"))
    with store.writing():
        load(spark, store, [str(folder / "a.jsonl")])
    return folder / "tables"


def on_spark(spark: Any, place: Path, sql: str) -> tuple[list[str], list[str], str]:
    frame = ask_spark(spark, open_tables(spark, str(place)), sql)
    out = io.StringIO()
    write_text(frame, "csv", out, None)
    return frame.columns, [field.dataType.simpleString() for field in frame.schema.fields], out.getvalue()


def embedded(place: Path, sql: str) -> tuple[list[str], list[str], str]:
    tables = StoredTables(str(place))
    question = ask_embedded(tables, check(sql, tables.names()))
    out = io.StringIO()
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
