"""Errors of statements name the mistake, its position and a remedy that helps."""

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed")

from balog.analytics.embedded.queries import translate
from balog.analytics.embedded.statement import ask
from balog.errors import ConfigError

COLUMNS = {"id": "string", "level": "string", "timestamp": "timestamp"}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT weekday(timestamp) AS x FROM log",
            "no function weekday, line 1, column 8; run it with --engine spark",
        ),
        ("SELECT array_contains(array(1), 1) AS x FROM log", "no function array_contains, line 1, column 8;"),
        ("SELECT\n lenght(id) AS x FROM log", "no function lenght (did you mean 'length'?), line 2, column 2;"),
        (
            "SELECT timestamp - timestamp AS x FROM log",
            "timestamp - timestamp reads the types whole, double, decimal, not",
        ),
        ("SELECT id FROM log JOIN run ON log.id = id", "'id' is in several tables, line 1, column 41; put the table's"),
    ],
)
def test_a_name_or_type_that_does_not_fit_has_its_position(sql: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        translate(sql, {"log": dict(COLUMNS), "run": dict(COLUMNS)})
    assert said in str(refused.value)


class EmptyTables:
    """A table without files."""

    def names(self) -> list[str]:
        return ["log"]

    def columns(self, name: str) -> dict:
        return dict(COLUMNS)

    def size(self, names: list[str]) -> int:
        return 0

    def files(self, name: str) -> list[str]:
        return []


def test_a_column_outside_of_group_by_is_no_matter_of_the_engine() -> None:
    question = ask(EmptyTables(), "SELECT level, id FROM log GROUP BY level")
    with pytest.raises(
        ConfigError, match=r"^SQL: the column 'id' is neither in GROUP BY nor in an aggregate"
    ) as refused:
        with question.rows() as rows:
            list(rows)
    assert "--engine" not in str(refused.value)
