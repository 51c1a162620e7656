import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sqlglot")

from balog.analytics.querying.spark_allowed_statements import check
from balog.common.errors import ConfigError

TABLES = ["events", "metric", "rollup_events"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT * FROM Events",
        "SELECT count(*) FROM events e JOIN metric m ON e.id = m.id LEFT JOIN `rollup_events` USING (channel)",
        "WITH a AS (SELECT * FROM events), b AS (SELECT * FROM a) SELECT * FROM b UNION ALL SELECT * FROM a",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        "FROM events SELECT id",
        "FROM events |> WHERE level = 'ERROR' |> SELECT id",
        "VALUES (1), (2)",
        "SELECT x FROM events LATERAL VIEW explode(map_keys(context)) t AS x",
        "SELECT * FROM range(10)",
        "SELECT transform(array(1), x -> x + 1)",
        "SHOW TABLES",
        "DESCRIBE events",
        "SELECT 'DROP TABLE events; --'",
        "SELECT 10L, 0.5D + 2.50BD",
    ],
)
def test_what_only_reads_the_tables_passes_as_it_is(sql: str) -> None:
    assert check(sql, TABLES).text == sql


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO events SELECT 1", "INSERT"),
        ("WITH a AS (SELECT 1) INSERT INTO events SELECT * FROM a", "INSERT"),
        ("FROM events INSERT INTO metric SELECT *", "INSERT"),
        ("SELECT * FROM (FROM events INSERT INTO metric SELECT *)", "INSERT"),
        ("CREATE TABLE x AS SELECT 1", "CREATE"),
        ("DROP TABLE events", "DROP"),
        ("EXPLAIN DROP TABLE events", "not a query"),
        ("MERGE INTO events USING metric ON true WHEN MATCHED THEN DELETE", "MERGE"),
        ("SET spark.sql.ansi.enabled=false", "SET"),
        ("ADD JAR 'x.jar'", "ADD JAR"),
        ("CACHE TABLE events", "CACHE"),
        ("REFRESH TABLE events", "REFRESH"),
        ("EXECUTE IMMEDIATE 'DROP TABLE events'", "EXECUTE"),
        ("SELECT 1; DROP TABLE events", "2 statements"),
        ("SHOW TABLES; DROP TABLE events", "2 statements"),
        ("SHOW FUNCTIONS", "SHOW"),
        ("SELECT * FROM csv.`/etc/passwd`", "/etc/passwd"),
        ("SELECT * FROM `csv`.`/etc/passwd`", "/etc/passwd"),
        ("SELECT * FROM `csv./etc/passwd`", "no table"),
        ("SELECT * FROM spark_catalog.default.events", "place before it"),
        ("SELECT * FROM IDENTIFIER('csv.' || '`/etc/passwd`')", "identifier"),
        ("SELECT * FROM read_files('/etc')", "read_files"),
        ("SELECT TRANSFORM(id) USING 'cat' FROM events", "TRANSFORM"),
        ("SELECT MAP(id) USING 'cat' FROM events", "cannot be understood"),
        ("SELECT java_method('java.lang.System', 'exit', 1)", "java_method"),
        ("SELECT `reflect`('java.lang.System', 'exit', 1)", "reflect"),
        ("SELECT system.builtin.try_reflect('a', 'b')", "try_reflect"),
        ("DESCRIBE QUERY SELECT java_method('a', 'b')", "SQL: "),
        ("WITH s AS (SELECT * FROM s) SELECT * FROM s", "no table 's'"),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x), x", "no table 'x'"),
        ("SELECT EXISTS(SELECT 1 FROM secrets)", "no table 'secrets'"),
        ("SHOW COLUMNS IN secrets", "SHOW"),
        ("DESCRIBE secrets", "no table 'secrets'"),
        ("SELECT /*+ BROADCAST(events) */ 1", "hints"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "nested too deep"),
        ("SELECT " + "1," * 600_000 + "1", "at most"),
        ("", "no statement"),
        ("-- nothing", "no statement"),
        ("SELECT 'a", "does not end"),
    ],
)
def test_what_does_more_than_read_the_tables_is_refused_in_one_line(sql: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^SQL: ") as refused:
        check(sql, TABLES)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_place_of_a_mistake_and_a_near_name_are_told() -> None:
    with pytest.raises(ConfigError, match=r"no table 'evnts', line 2, column 6; did you mean 'events'\?"):
        check("SELECT id\nFROM evnts", TABLES)
    with pytest.raises(ConfigError, match="cannot be understood"):
        check("SELECT id\nFROM\n", TABLES)


WORDS = ["SELECT", "*", "FROM", "events", "WHERE", "(", ")", "glob(", "'x'", "`", "'", "\n", "AND", "a", "=", ",",
         "CASE", "WHEN", "1", "/*", "*/", "JOIN", "ORDER", "BY", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=12))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_a_wrong_statement_is_one_line_without_words_of_the_parser(words: list[str]) -> None:
    sql = " ".join(words)
    try:
        check(sql, TABLES)
    except ConfigError as error:
        line = str(error)
        assert "\n" not in line
        assert not re.search(r"sqlglot|<class|Token|SENTINEL|Required keyword", line)
        if place := re.search(r"line (-?\d+), column (-?\d+)", line):
            lines = sql.split("\n")
            assert 1 <= int(place[1]) <= len(lines)
            assert 1 <= int(place[2]) <= len(lines[int(place[1]) - 1]) + 1


def test_comments_are_blanked_so_that_spark_reads_what_was_checked() -> None:
    # Spark goes on with a comment behind a backslash, other parsers end it with the line
    hidden = "SELECT 1 -- \\\n /* \n , java_method('x', 'y') -- */"
    assert check(hidden, TABLES).text.split() == ["SELECT", "1"]
    assert check("SELECT /* one */ 1, -- two\n 2", TABLES).text == "SELECT           1,       \n 2"


def test_tables_that_are_not_known_yet_are_not_asked_for() -> None:
    assert check("SELECT * FROM whatever").text == "SELECT * FROM whatever"
