import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.embedded.database import ask
from balog.analytics.embedded.raw_tables import QueryTables, raw_paths
from balog.analytics.querying.sources import open_source
from balog.common.errors import BalogError, ConfigError


def answer(sources: list[str], sql: str) -> list[Any]:
    raw = [open_source(path, sources) for path in raw_paths(sql)]
    with QueryTables(None, {source.name: source.options for source in raw}, sql) as tables, ask(tables, sql) as found:
        return [list(json.loads(row).values()) for row in found.rows()]


def test_raw_events_are_counted_as_plain_python_counts_them(root: Path, counted: dict[str, Any]) -> None:
    rows = answer(
        [str(root)], f'SELECT channel, level, count(*) AS n FROM balog."{root}" WHERE id IS NOT NULL GROUP BY ALL'
    )
    assert Counter({(channel, level): count for channel, level, count in rows}) == counted["channels"]
    bad = f'SELECT count(*) AS n, count(DISTINCT quarantine.raw) AS r FROM balog."{root}" WHERE quarantine IS NOT NULL'
    assert answer([str(root)], bad) == [[counted["bad"], counted["bad"]]]


def test_forms_of_one_folder_are_joined_with_a_file_of_it(tmp_path: Path, make: Callable[..., Any]) -> None:
    events = [make({"cls_type": "log", "message": f"n {number}", "n": number}) for number in range(6)]
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "a.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events[:3]))
    sqs = {"Messages": [{"MessageId": "m", "Body": json.dumps(event)} for event in events[3:]]}
    (dumps / "b.json.gz").write_bytes(gzip.compress(json.dumps(sqs).encode()))
    sql = (
        f"SELECT a.id, a.payload_json->>'$.n' AS n, b.id IS NULL AS is_other FROM balog.\"{dumps}\" a "
        f'LEFT JOIN balog."{dumps}/a.jsonl" b ON a.id = b.id ORDER BY n'
    )
    assert answer([str(dumps)], sql) == [
        [event["header"]["id"], str(number), number >= 3] for number, event in enumerate(events)
    ]


def test_only_the_columns_of_the_statement_are_read_and_their_files_removed(root: Path) -> None:
    import pyarrow.parquet as pq

    sql = f"SELECT count(*) AS n FROM balog.\"{root}\" WHERE level = 'ERROR'"
    source = open_source(str(root), [str(root)])
    with QueryTables(None, {source.name: source.options}, sql) as tables:
        files = tables.files(source.name)
        assert files == tables.files(source.name)
        assert {tuple(pq.read_schema(file).names) for file in files} == {("level",)}
    assert not any(Path(file).exists() for file in files)


def test_a_statement_without_names_of_columns_reads_all_of_them(root: Path) -> None:
    shown = answer([str(root)], f'SELECT * FROM balog."{root}" WHERE id IS NOT NULL ORDER BY id')
    assert (
        answer([str(root)], f'FROM balog."{root}" SELECT COLUMNS(lambda c: true) WHERE id IS NOT NULL ORDER BY id')
        == shown
    )
    assert answer([str(root)], f'FROM balog."{root}" WHERE id IS NOT NULL ORDER BY id') == shown
    assert all(row[-2] for row in shown)  # the payload


def test_a_column_that_was_not_read_is_an_error_and_not_null(root: Path) -> None:
    with pytest.raises(ConfigError, match="raw events are read by the names of their columns"):
        answer([str(root)], f'SELECT DISTINCT a FROM balog."{root}" a')


def test_a_wrong_source_or_name_is_one_line(root: Path) -> None:
    with pytest.raises(ConfigError, match=r'"lvel" not found.*"level"'):
        answer([str(root)], f'SELECT lvel FROM balog."{root}"')
    topic = "local:nowhere#sync"
    with pytest.raises(ConfigError, match="topics are read by Spark; give --engine spark"):
        answer([topic], f'SELECT id FROM balog."{topic}"')
    with pytest.raises(ConfigError, match="no such file"):
        answer([str(root)], f'SELECT id FROM balog."{root}/nothing.jsonl"')


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ('SELECT 1 FROM balog."a b" JOIN Balog . dumps USING (id), "balog".c', ["a b", "dumps", "c"]),
        ('SELECT 1 FROM balog."x""y" a JOIN balog."x""y" b USING (id)', ['x"y']),
        ("SELECT 'balog.x', 'it''s balog.\"y\"' -- balog.z\nFROM log", []),
    ],
)
def test_the_sources_that_a_statement_names(sql: str, paths: list[str]) -> None:
    assert raw_paths(sql) == paths


def test_a_full_disk_is_an_error_that_ends_the_other_tasks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise BalogError("the disk is full")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    with pytest.raises(BalogError, match="the disk is full"):
        answer([str(root)], f'SELECT id FROM balog."{root}"')
