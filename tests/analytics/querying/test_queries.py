import csv
import io
import json
import re
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.errors import PySparkException

from balog.analytics.querying.spark_statement import ask, explain_failure, write_text
from balog.common.errors import ConfigError

pytestmark = pytest.mark.spark


class Small:
    """Two tables in memory, as a store of tables gives them."""

    def __init__(self, spark: Any) -> None:
        rows = """(1, 'a', 1.5D, TIMESTAMP '2026-11-20 07:00:00.25'), (2, NULL, double('NaN'), NULL),
                  (3, '<b>[red]', -1D, NULL)"""
        self._frames = {
            "events": spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, name, value, moment)"),
            "typed": spark.sql(
                "SELECT parse_json('{\"a\": [1, null]}') AS v, map('k', 1) AS m, array(named_struct('x', X'00ff'))"
                " AS s, 9223372036854775807L AS big, 1.10BD AS money, NULL AS nothing, DATE '2026-11-20' AS day"
            ),
        }

    def names(self) -> list[str]:
        return list(self._frames)

    def frame(self, name: str) -> Any:
        return self._frames[name]


@pytest.fixture(scope="module")
def tables(spark: Any) -> Any:
    return Small(spark)


def text(spark: Any, tables: Any, sql: str, form: str, limit: int | None = None) -> str:
    out = io.StringIO()
    write_text(ask(spark, tables, sql), form, out, limit)
    return out.getvalue()


def test_json_lines_hold_each_type_as_json_knows_it(spark: Any, tables: Any) -> None:
    row = json.loads(text(spark, tables, "SELECT * FROM typed", "jsonl"), parse_float=str)
    assert row == {
        "v": {"a": [1, None]},
        "m": {"k": 1},
        "s": [{"x": "AP8="}],
        "big": 9223372036854775807,
        "money": "1.10",
        "nothing": None,
        "day": "2026-11-20",
    }


def test_times_are_in_utc(spark: Any, tables: Any) -> None:
    lines = text(spark, tables, "SELECT id, moment FROM events WHERE id < 3 ORDER BY id", "jsonl").splitlines()
    assert [json.loads(line)["moment"] for line in lines] == ["2026-11-20T07:00:00.250000Z", None]


def test_csv_has_a_head_and_takes_columns_of_one_name(spark: Any, tables: Any) -> None:
    rows = list(csv.reader(io.StringIO(text(spark, tables, "SELECT id, name, name FROM events ORDER BY id", "csv"))))
    assert rows == [["id", "name", "name"], ["1", "a", "a"], ["2", "", ""], ["3", "<b>[red]", "<b>[red]"]]


def test_a_table_shows_texts_as_they_are_and_the_limit_says_that_there_is_more(spark: Any, tables: Any) -> None:
    out = io.StringIO()
    assert write_text(ask(spark, tables, "SELECT * FROM events ORDER BY id"), "table", out, 3) == (3, False)
    assert "[red]" in out.getvalue()
    assert write_text(ask(spark, tables, "SELECT * FROM events"), "table", io.StringIO(), 2) == (2, True)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT id,\n  nme FROM events", r"nme.*`name`.*, line 2, column 3"),
        ("SELECT nofunction(1)", "nofunction.*line 1, column 8"),
        ("SELECT id FROM events GROUP BY name", "id"),
        ("SELECT sum(name, 1) FROM events", "line 1, column 19"),
    ],
)
def test_what_spark_does_not_understand_is_one_line_with_the_place(
    spark: Any, tables: Any, sql: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        ask(spark, tables, sql)
    assert "\n" not in str(refused.value)
    assert "SQLSTATE" not in str(refused.value)


FAILING = {
    "SELECT id, array(1)[id] FROM events": "The index 1 is out of bounds. The array has 1 elements, line 1, column 12",
    "SELECT\n CAST(concat(name, 'x') AS INT) FROM events": 'cannot be cast to "INT".*, line 2, column 2',
    "SELECT 1 / (id - id) FROM events": "Division by zero, line 1, column 8",
    "SELECT 9223372036854775807L + id FROM events": "overflow, line 1, column 8",
    "SELECT CAST(id AS DECIMAL(38, 0)) * 99999999999999999999999999999999999999 FROM events": "cannot be represented",
    "SELECT (SELECT id FROM events) FROM events": "More than one row returned by a subquery",
    "SELECT raise_error('no\nway') FROM events": "no way",
}


@pytest.mark.parametrize("form", ["table", "csv"])
def test_an_error_of_a_row_is_one_line_with_the_place(
    spark: Any, tables: Any, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for sql, reason in FAILING.items():
        with pytest.raises(PySparkException) as failed:
            text(spark, tables, sql, form)
        line = explain_failure(failed.value)
        assert re.search(reason, line), (sql, line)
        assert not re.search(r"\n|Exception|SQLSTATE|try_", line)
    assert "Exception" not in capfd.readouterr().err


def test_nothing_of_the_environment_is_put_into_a_statement(spark: Any, tables: Any) -> None:
    asked = "'${env:PATH} ${spark.app.name} ${system:user.home}'"
    assert json.loads(text(spark, tables, f"SELECT {asked} AS x", "jsonl")) == {"x": asked.strip("'")}


def test_json_wants_each_column_to_have_a_name_of_its_own(spark: Any, tables: Any) -> None:
    with pytest.raises(ConfigError, match="two columns are called 'id'"):
        text(spark, tables, "SELECT id, id FROM events", "jsonl")


def test_show_tables_lists_these_tables_and_no_view_of_others(spark: Any, tables: Any) -> None:
    spark.range(1).createOrReplaceTempView("somebody_elses")
    shown = text(spark, tables, "SHOW TABLES", "jsonl")
    assert {json.loads(line)["tableName"] for line in shown.splitlines()} == {"events", "typed"}


def test_many_rows_stream_out_in_order(spark: Any, tables: Any) -> None:
    found = text(spark, tables, "SELECT id FROM range(30000) ORDER BY id DESC", "csv")
    assert [int(line) for line in found.splitlines()[1:]] == list(range(29999, -1, -1))
