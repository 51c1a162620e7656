import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.embedded.raw_tables import QueryTables
from balog.analytics.embedded.statement import ask
from balog.analytics.embedded.values import SparkNeeded
from balog.analytics.querying.policy import check
from balog.analytics.querying.sources import open_source
from balog.errors import BalogError, ConfigError


def answer(sources: list[str], sql: str) -> list[Any]:
    checked = check(sql, [], sources)
    raw = [open_source(path, sources) for path in checked.paths]
    with QueryTables(None, {source.name: source.options for source in raw}, checked.words) as tables:
        with ask(tables, checked.query).rows() as rows:
            return [list(json.loads(row).values()) for row in rows]


def test_raw_events_are_counted_as_plain_python_counts_them(root: Path, counted: dict[str, Any]) -> None:
    rows = answer(
        [str(root)], f"SELECT channel, level, count(*) AS n FROM balog.`{root}` WHERE id IS NOT NULL GROUP BY ALL"
    )
    assert Counter({(channel, level): count for channel, level, count in rows}) == counted["channels"]
    bad = f"SELECT count(*) AS n, count(DISTINCT quarantine.raw) AS r FROM balog.`{root}` WHERE quarantine IS NOT NULL"
    assert answer([str(root)], bad) == [[counted["bad"], counted["bad"]]]


def test_forms_of_one_folder_are_joined_with_a_file_of_it(tmp_path: Path, make: Callable[..., Any]) -> None:
    events = [make({"cls_type": "log", "message": f"n {number}", "n": number}) for number in range(6)]
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "a.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events[:3]))
    sqs = {"Messages": [{"MessageId": "m", "Body": json.dumps(event)} for event in events[3:]]}
    (dumps / "b.json.gz").write_bytes(gzip.compress(json.dumps(sqs).encode()))
    sql = (
        f"SELECT a.id, get_json_object(a.payload_json, '$.n') AS n, b.id IS NULL AS is_other FROM balog.`{dumps}` a "
        f"LEFT JOIN balog.`{dumps}/a.jsonl` b ON a.id = b.id ORDER BY n"
    )
    assert answer([str(dumps)], sql) == [
        [event["header"]["id"], str(number), number >= 3] for number, event in enumerate(events)
    ]


def test_only_the_columns_of_the_statement_are_read_and_their_files_removed(root: Path) -> None:
    import pyarrow.parquet as pq

    sql = f"SELECT count(*) AS n FROM balog.`{root}` WHERE level = 'ERROR'"
    checked = check(sql, [], [str(root)])
    source = open_source(str(root), [str(root)])
    with QueryTables(None, {source.name: source.options}, checked.words) as tables:
        files = tables.files(source.name)
        assert files == tables.files(source.name)
        assert {tuple(pq.read_schema(file).names) for file in files} == {("level",)}
        assert tables.size([source.name]) > sum(file.size for file in source.files)
    assert not any(Path(file).exists() for file in files)


def test_what_is_left_to_spark_or_wrong_is_one_line(root: Path) -> None:
    with pytest.raises(SparkNeeded, match="payload_json is its text"):
        answer([str(root)], f"SELECT payload FROM balog.`{root}`")
    with pytest.raises(ConfigError, match="no column 'lvel', line 1, column 8; did you mean 'level'"):
        answer([str(root)], f"SELECT lvel FROM balog.`{root}`")
    topic = "local:nowhere#sync"
    with pytest.raises(SparkNeeded, match="the source is a topic"):
        answer([topic], f"SELECT id FROM balog.`{topic}`")
    with pytest.raises(ConfigError, match="no such file"):
        answer([str(root)], f"SELECT id FROM balog.`{root}/nothing.jsonl`")


def test_a_full_disk_is_an_error_that_ends_the_other_tasks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise BalogError("the disk is full")

    monkeypatch.setattr("balog.analytics.progress.EventMeter.add", full)
    with pytest.raises(BalogError, match="the disk is full"):
        answer([str(root)], f"SELECT id FROM balog.`{root}`")
