"""Loads into a folder of Parquet files, as the library runs them; the files are asked by DuckDB."""

import errno
import json
import os
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from balog.analytics.tables import TableError, builder, is_tables, loader, open_store, open_tables
from balog.analytics.tables import shapes as shapes_module
from balog.analytics.tables.builder import MOST_TYPES, SeenType, grow
from balog.analytics.tables.column_conversion import Columns
from balog.analytics.tables.loader import LoadOptions, preview
from balog.analytics.tables.stage import DayFiles
from balog.analytics.tables.store import RowError, table_name
from balog.analytics.tables.verification import rows_to_compare
from balog.analytics.tables.worker_rows import decode_files, report_errors
from tests.analytics.tables.conftest import event
from tests.loaded_tables import load_tables

pytestmark = pytest.mark.spark

Load = Callable[..., Any]


@pytest.fixture
def load(spark: Any, place: Path) -> Load:
    """Loads paths into ``place`` by a store that was just opened."""
    return lambda *paths, **options: load_tables(spark, place, paths, **options)


def test_a_load_makes_events_a_table_for_each_payload_type_quarantine_and_rollups(
    load: Load, place: Path, dump: Any, rows: Any, spark: Any
) -> None:
    summary = load(dump("a.jsonl", *range(30), lines=("{ broken",)))
    assert len(rows(place, "events")) == 30
    assert {name: count for name, count in summary.rows.items() if not name.startswith("rollup")} == {
        "events": 30, "log": 10, "metric": 10, "order": 10, "quarantine": 1,
    }  # fmt: skip
    assert rows(place, "order", "number, item.name, item.count, date")[:2] == [
        (2, "n2", 2, date(2026, 11, 20)),
        (5, "n5", 0, date(2026, 11, 20)),
    ]
    [(file, offset, reason, raw)] = rows(place, "quarantine", 'file, "offset", reason, raw')
    assert (file, raw) == (str(place.parent / "dumps" / "a.jsonl"), "{ broken")
    assert offset > 0
    assert reason
    assert sum(row[0] for row in rows(place, "rollup_events", "events")) == 30
    assert rows(place, "rollup_quarantine", "lines") == [(1,)]
    said = event(7)
    columns = 'id, channel, "timestamp", "level", "schema", composition, context, cls_type, payload_json, date'
    [row] = [row for row in rows(place, "events", columns) if row[0] == said["header"]["id"]]
    moment = datetime(2026, 11, 20, 7, 46, 12, 7, timezone.utc)
    assert row[1:6] == ("tap_x.log", moment, "INFO", "0.1.0", False)
    assert (row[6], row[7]) == (said["header"]["context"], "metric")
    assert (json.loads(row[8]), row[9]) == (said["payload"], date(2026, 11, 20))


def test_a_file_is_read_again_when_it_grew_and_gives_its_new_events_only(
    load: Load, place: Path, dump: Any, rows: Any
) -> None:
    path = dump("a.jsonl", *range(6), lines=("{ broken",))
    load(path)
    known = load(path)
    assert (known.files, known.known, known.rows["events"]) == (0, 1, 0)
    again = load(dump("a.jsonl", *range(6), lines=("{ broken", json.dumps({"x": 1}))))
    assert (again.duplicates, again.rows["events"], again.rows["quarantine"]) == (6, 0, 1)
    third = load(dump("a.jsonl", *range(9)))
    assert (third.duplicates, third.rows["events"]) == (6, 3)
    assert [row[0] for row in rows(place, "events", "id")] == [f"LG{number:022d}" for number in range(9)]


def test_duplicates_within_a_batch_and_between_batches_are_one_event(
    load: Load, place: Path, dump: Any, rows: Any
) -> None:
    paths = [dump("a.jsonl", *range(20)), dump("b.jsonl", *range(10, 30), *range(10, 15)), dump("c.jsonl", *range(40))]
    together = load(*paths[:2])
    assert together.duplicates == 15
    apart = load(*paths, batch_bytes=1)
    assert (apart.duplicates, apart.rows["events"]) == (30, 10)
    assert len(rows(place, "events")) == len({row[0] for row in rows(place, "events", "id")}) == 40
    typed = [row for name in ("log", "metric", "order") for row in rows(place, name, "id")]
    assert len(typed) == len(set(typed)) == 40
    assert sum(row[0] for row in rows(place, "rollup_events", "events")) == 40


def test_what_many_tasks_read_of_one_day_becomes_one_file(
    load: Load, place: Path, dump: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from balog.analytics.reading import tasks

    monkeypatch.setattr(tasks, "_SMALLEST_TASK", 1)
    days = ("2026-11-20", "2026-11-21")
    paths = [
        dump(f"{number}.jsonl", *range(number * 20, number * 20 + 25), day=days[number % 2]) for number in range(12)
    ]
    lines = [json.loads(line)["header"] for path in paths for line in path.read_text().splitlines()]
    summary = load(*paths, reader={"parallel": "6"})
    [log] = (place / "_balog" / "log").glob("*.json")
    added = json.loads(log.read_text())["tables"]["events"]["added"]
    assert len(added) == len(list(place.glob("events/*/*.parquet"))) == len(days)
    assert not list(place.glob("_balog/staging/*"))
    assert summary.rows["events"] == len({header["id"] for header in lines}) == len(rows(place, "events"))
    assert {row[0] for row in rows(place, "events", "id")} == {header["id"] for header in lines}
    typed = [row for name in ("log", "metric", "order") for row in rows(place, name, "id")]
    assert len(typed) == len(set(typed)) == summary.rows["events"]
    for file in place.glob("events/*/*.parquet"):
        times = pq.read_table(file, partitioning=None)["timestamp"].to_pylist()
        assert times == sorted(times)


def test_few_files_of_a_day_stay_as_they_were_written(
    load: Load, place: Path, dump: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from balog.analytics.reading import tasks

    monkeypatch.setattr(tasks, "_SMALLEST_TASK", 1)
    load(
        *(dump(f"{number}.jsonl", *range(number * 10, number * 10 + 10)) for number in range(4)),
        reader={"parallel": "4"},
    )
    assert len(list(place.glob("events/*/*.parquet"))) == 4


@pytest.mark.parametrize(("cores", "given", "most"), [(2, None, 2 << 30), (64, None, 8 << 30), (64, 1000, 1000)])
def test_a_commit_is_larger_where_there_are_more_cores(cores: int, given: int | None, most: int) -> None:
    planned = LoadOptions(batch_bytes=given).planned(cores)
    assert (planned.batch_bytes, planned.reader) == (most, {"parallel": str(cores)})
    assert LoadOptions(reader={"parallel": "3"}).planned(cores).reader == {"parallel": "3"}


def test_an_id_within_the_window_is_one_event_also_where_its_timestamps_differ(
    load: Load, place: Path, dump: Any, rows: Any
) -> None:
    def at(moment: str) -> str:
        made = event(1)
        made["header"]["timestamp"] = moment
        return json.dumps(made)

    load(dump("a.jsonl", lines=(at("2026-11-20T23:59:59Z"),)))
    again = load(dump("b.jsonl", lines=(at("2026-11-21T00:30:00Z"), at("2026-11-21T00:31:00Z"))))
    assert (again.duplicates, again.rows["events"]) == (2, 0)


def test_the_first_and_the_last_moment_that_there_is_come_once(load: Load, dump: Any) -> None:
    odd = [event(1), event(3)]
    for one, moment in zip(odd, ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")):
        one["header"]["timestamp"] = moment
    lines = tuple(map(json.dumps, odd))
    assert load(dump("a.jsonl", 2, lines=lines)).rows["events"] == 3
    assert load(dump("b.jsonl", 2, lines=lines)).duplicates == 3


def test_lines_that_say_no_time_come_once_though_their_file_is_changed_later_and_copied(
    load: Load, place: Path, tmp_path: Path, rows: Any
) -> None:
    day = 86_400
    for number, folder in enumerate(("captures", "captures", "copies")):
        path = tmp_path / folder / "app.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"INFO line {line}\n" for line in range(3 + number)))
        os.utime(path, (1_790_000_000 + number * day, 1_790_000_000 + number * day))
        load(path, reader={"form": "stderr"})
    messages = [json.loads(row[0])["message"] for row in rows(place, "events", "payload_json")]
    assert sorted(messages) == [f"line {line}" for line in range(5)]


def test_late_and_future_events_land_in_their_day(load: Load, place: Path, dump: Any, rows: Any) -> None:
    load(dump("a.jsonl", 1))
    load(dump("late.jsonl", 4, day="2026-03-01"), dump("future.jsonl", 5, day="2097-01-01"))
    days = [row[0].isoformat() for row in rows(place, "events", "date")]
    assert days == ["2026-03-01", "2026-11-20", "2097-01-01"]
    assert (place / "events" / "date=2097-01-01").is_dir()


def test_new_fields_become_columns_and_are_told(load: Load, place: Path, dump: Any, rows: Any) -> None:
    load(dump("a.jsonl", 2))
    more = event(5)
    more["payload"] |= {"colour": "red", "number": "many"}
    summary = load(dump("b.jsonl", lines=(json.dumps(more),)))
    assert any("colour" in line for line in summary.lines)
    assert rows(place, "order", "colour, number") == [("red", None), (None, 2)]
    assert any("many" in str(row) for row in rows(place, "order"))


def test_an_empty_folder_loads_nothing(load: Load, place: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert load(tmp_path / "nothing").files == 0
    assert not list(place.glob("events/*"))


def test_an_expired_day_is_gone_and_its_events_are_not_loaded_again(
    load: Load, place: Path, dump: Any, rows: Any, spark: Any
) -> None:
    old = dump("old.jsonl", *range(3), day="2026-01-01")
    load(old, dump("new.jsonl", *range(3, 6)))
    store = open_store(spark, str(place))
    with store.writing():
        would = store.expire(date(2026, 6, 1), dry_run=True)
        assert len(rows(place, "events")) == 6
        assert store.expire(date(2026, 6, 1)) == would
    assert any(line.startswith("events: 2026-01-01: 3 rows") for line in would)
    assert len(rows(place, "events")) == len(rows(place, "events", "id")) == 3
    assert not (place / "events" / "date=2026-01-01").exists()
    old.write_text(old.read_text() + "\n")
    again = load(old)
    assert (again.too_old, again.rows["events"]) == (3, 0)


def test_compaction_makes_one_sorted_file_of_a_day_and_one_row_of_a_rollups_key(
    load: Load, place: Path, dump: Any, rows: Any, spark: Any
) -> None:
    for name, numbers in (("a", range(0, 40, 2)), ("b", range(1, 40, 2))):
        load(dump(f"{name}.jsonl", *numbers))
    tables = ("events", "log", "metric", "order")
    before = {name: rows(place, name) for name in tables}
    store = open_store(spark, str(place))
    with store.writing():
        lines = store.compact()
        assert store.compact() == []
    assert "events: 2 files became 1" in lines
    assert {name: rows(place, name) for name in tables} == before
    assert len(list(place.glob("events/*/*"))) == 1
    keys = rows(place, "rollup_events", 'hour, channel, "level", cls_type, application')
    assert len(keys) == len(set(keys))
    assert sum(row[0] for row in rows(place, "rollup_events", "events")) == 40
    [path] = place.glob("events/*/*.parquet")
    times = pq.ParquetFile(path).read(["timestamp"]).column(0).to_pylist()
    assert times == sorted(times)
    assert store.frame("events").count() == 40
    assert load(dump("a.jsonl", *range(40))).duplicates == 40


def test_a_folder_may_have_any_name_and_be_a_url(load: Load, dump: Any, spark: Any, tmp_path: Path) -> None:
    odd = "a[1]{x,y} what?*\\"
    url = (tmp_path / odd).as_uri()
    for name in ("a.jsonl", "b.jsonl"):
        load_tables(spark, url, [dump(name, 1, 2)])
    assert open_tables(spark, url).frame("events").count() == 2
    assert open_tables(spark, str(tmp_path / odd)).frame("metric").count() == 1


def test_a_disk_that_is_full_in_a_worker_is_one_line_and_no_batch(
    load: Load, place: Path, dump: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:  # workers get it by value
        def run(self, _: Any) -> Any:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("balog.analytics.tables.loader.stage_of", lambda *_: Full())
        with pytest.raises(TableError, match="No space left on device; what was committed before is there"):
            load(dump("b.jsonl", 2))
    assert load(dump("b.jsonl", 2)).rows["events"] == 1


def test_tables_are_asked_by_name_with_their_rollups(load: Load, place: Path, dump: Any, spark: Any) -> None:
    assert not is_tables(str(place))
    with pytest.raises(TableError, match="balog load"):
        open_tables(spark, str(place))
    load(dump("a.jsonl", *range(24)))
    assert is_tables(str(place))
    tables = open_tables(spark, str(place))
    assert {"events", "log", "metric", "order", "rollup_events", "rollup_runs"} <= set(tables.names())
    assert tables.frame("events").columns[-1] == "date"
    noon = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
    assert tables.frame("events", since=noon).where("timestamp >= '2026-11-20T12:00:00Z'").count() == 12
    assert sum(row.events for row in tables.rollups(since=noon).events.collect()) == 12
    with pytest.raises(TableError, match="no table nothing"):
        tables.frame("nothing")


def test_a_plan_tells_how_tables_would_grow_and_writes_nothing(place: Path, dump: Any, spark: Any) -> None:
    planned = preview(spark, open_store(spark, str(place)), [str(dump("a.jsonl", *range(6)))], LoadOptions())
    assert (planned.files, planned.batches) == (1, 1)
    assert any(line.startswith("order: new table") for line in planned.lines)
    assert not place.exists()


@pytest.fixture
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the tasks of workers in this process, where a test can replace what they call."""
    import pyarrow as pa

    def run_here(spark: Any, tasks: int, run: Callable[[int], Any]) -> Any:
        each = report_errors(run)
        batches = [batch for number in range(tasks) for batch in each(number)]
        return decode_files(pa.Table.from_batches(batches)) if batches else iter(())

    monkeypatch.setattr(builder, "run_tasks", run_here)
    monkeypatch.setattr(loader, "run_tasks", run_here)


@pytest.mark.usefixtures("workers_here")
def test_a_value_in_another_column_stops_the_commit_and_its_event_is_named(
    load: Load, place: Path, dump: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dump("a.jsonl", *range(60))
    arrays = Columns.arrays

    def swapped(self: Columns, texts: list[bytes]) -> Any:
        made = arrays(self, texts)
        if "number" in made:
            made["number"] = made["number"].take(list(reversed(range(len(texts)))))
        return made

    monkeypatch.setattr(Columns, "arrays", swapped)
    with pytest.raises(RowError) as caught:
        load(path)
    error = caught.value
    assert (error.table, error.field) == ("order", "number")
    assert str(error).startswith(f"table order, field number, event {error.event}: ")
    assert error.event in path.read_text()
    assert not (place / "events").exists()


@pytest.mark.usefixtures("workers_here")
def test_an_event_that_fails_a_worker_is_named(
    load: Load, place: Path, dump: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dump("a.jsonl", *range(60))
    arrays = Columns.arrays

    def fragile(self: Columns, texts: list[bytes]) -> Any:
        if any(b'"number":41' in text.replace(b" ", b"") for text in texts):
            raise TypeError("no such luck")
        return arrays(self, texts)

    monkeypatch.setattr(Columns, "arrays", fragile)
    with pytest.raises(Exception, match=rf"table order, .*, event LG{41:022d}: TypeError: no such luck"):
        load(path)
    assert not (place / "events").exists()


def test_rows_are_compared_after_columns_changed_and_then_one_in_ten_thousand() -> None:
    assert rows_to_compare(0, 300, is_new=True) == list(range(200))
    assert rows_to_compare(190, 20_000, is_new=True) == [*range(10), 9_810, 19_810]
    assert rows_to_compare(0, 20_001, is_new=False) == [0, 10_000, 20_000]
    assert rows_to_compare(1, 9_999, is_new=False) == []


@pytest.mark.usefixtures("workers_here")
@pytest.mark.parametrize(("place_of_loss", "what"), [("stage", "lines"), ("derivation", "rows of payload types")])
def test_a_row_that_is_lost_on_the_way_stops_the_commit(
    load: Load, place: Path, dump: Any, monkeypatch: pytest.MonkeyPatch, place_of_loss: str, what: str
) -> None:
    add = DayFiles.add

    def lossy(self: DayFiles, table: Any) -> None:
        is_here = self._table == ("events" if place_of_loss == "stage" else "order")
        add(self, table.slice(1) if is_here else table)

    monkeypatch.setattr(DayFiles, "add", lossy)
    with pytest.raises(TableError, match=f"{what} came in, and "):
        load(dump("a.jsonl", *range(60)))
    assert not (place / "events").exists()


def test_types_that_differ_only_in_what_a_table_s_name_cannot_have_have_tables_of_their_own() -> None:
    types = [
        "日志",
        "счёт",
        "weird type!",
        "weird-type?",
        "Sale",
        "sale",
        "_sale",
        "events",
        "rollup_x",
        "2fa",
        "",
        "\n",
    ]
    types += ["x" * 100, "x" * 101, "x" * 102, table_name("Sale"), table_name(table_name("Sale"))]
    names = [table_name(one) for one in types]
    assert len(set(names)) == len(types)
    assert all(name.isascii() and name[0].isalpha() and name.replace("_", "").isalnum() for name in names)
    assert (table_name("sale"), names[:2]) == ("sale", ["type_7dbac1c20f23", "type_abb9751a9b7d"])


def test_types_with_the_most_events_get_the_tables_and_a_line_says_what_got_none() -> None:
    class TableStore:
        tables = ("events", "quarantine", "rollup_events", "tiny")

        def names(self) -> tuple[str, ...]:
            return self.tables

        def schema(self, name: str) -> Any:
            return None

    seen = {f"a{number:04d}": SeenType(1, t.StructType()) for number in range(400)}
    seen |= {
        "zebra": SeenType(10**6, t.StructType()),
        "tiny": SeenType(1, t.StructType()),
        "Zebra": SeenType(5, t.StructType()),
    }
    kinds, lines = grow(TableStore(), seen, others=7)  # type: ignore[arg-type]
    made = [kind.cls_type for kind in kinds]
    assert len(made) == MOST_TYPES
    assert {"zebra", "Zebra", "tiny", "a0000", "a0296"} < set(made)
    assert "a0297" not in made
    assert any(line.endswith("columns (for the payload type 'Zebra')") for line in lines)
    assert lines[-1] == (
        "no table of its own, since there are 300: 103 payload types, 110 events, which are in the table events: "
        + ", ".join(f"'a{number:04d}' (1 events)" for number in range(297, 307))
        + ", …"
    )


def test_a_worker_looks_at_the_first_types_and_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(shapes_module, "_MOST_TYPES", 3)
    monkeypatch.setattr(shapes_module, "_MOST_COUNTED", 6)
    shapes = shapes_module.Shapes({})
    for some in (["a", "b", "c"], ["late"] * 4, ["a", None, "d", "e"], ["f", "g", "g"], ["late"]):
        texts = ['{"n":1}' for _ in some]
        shapes.observe(pa.table({"cls_type": pa.array(some, pa.string()), "payload_json": texts}))
    seen = {name: (rows, bool(json.loads(shape))) for name, rows, shape in shapes.seen()}
    assert {name: rows for name, (rows, _) in seen.items()} == {"a": 2, "b": 1, "c": 1, "late": 5, "d": 1, "e": 1}
    assert [name for name, (_, known) in seen.items() if known] == ["a", "b", "c"]
    assert shapes.unseen == 3


def test_a_cls_type_that_is_no_text_names_no_table_and_digits_arrive_as_they_were_written(
    load: Load, place: Path, dump: Any, rows: Any
) -> None:
    given = ['{"cls_type":5,"n":1}', '{"cls_type":{"a":1}}', '{"cls_type":["x"]}', '{"cls_type":true}', '{"n":1}']
    given += ['{"cls_type":"exact","n":0.12345678901234567890123,"m":1}', '{"cls_type":"exact","n":1e-400,"m":2}']
    lines = []
    for number, payload in enumerate(given):
        made = json.dumps({**event(number), "payload": "?"})
        lines.append(made.replace('"?"', payload))
    summary = load(dump("a.jsonl", lines=tuple(lines)))
    assert {name for name in summary.rows if not name.startswith("rollup")} == {"events", "exact", "quarantine"}
    assert sorted(rows(place, "events", "payload_json")) == sorted((payload,) for payload in given)
    assert rows(place, "events", "count(cls_type), count(*)") == [(2, 7)]
    assert rows(place, "exact", "m, n, payload_recovered") == [
        (1, 0.12345678901234568, '{"n":0.12345678901234567890123}'),
        (2, None, '{"n":1e-400}'),
    ]
