"""Rollup rows as a worker makes them, of blocks of lines and of frames."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.reading import scan as scanning
from balog.analytics.reading.scan import scan
from balog.analytics.reading.tasks import Slice
from balog.analytics.rollups import worker
from balog.analytics.rollups.worker import RollupQuery, roll_batches

Roll = Callable[..., list[dict[str, Any]]]
pairs = st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from("xyz"))
maps = st.lists(st.none() | st.lists(pairs, max_size=4))


def of_lines(write: Any, documents: list[Any]) -> list[dict[str, Any]]:
    path = write("a.jsonl", *documents)
    return [row for batch in scan([Slice(str(path))], RollupQuery()) for row in batch.to_pylist()]


def of_a_frame(documents: list[Any]) -> list[dict[str, Any]]:
    def row(document: dict[str, Any]) -> dict[str, Any]:
        header = document["header"]
        return {
            **{name: header.get(name) for name in ("id", "channel", "level")},
            **{name: header.get("context", {}).get(name) for name in ("application", "run_id")},
            "timestamp": pa.scalar(header["timestamp"]).cast(pa.timestamp("us", "UTC")).as_py(),
            "payload_json": json.dumps(document["payload"]),
            "quarantine": None,
        }

    names = ("id", "channel", "level", "application", "run_id", "payload_json")
    schema = pa.schema(
        [
            *((name, pa.string()) for name in names),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("quarantine", RollupQuery().arrow.field("quarantine").type),
        ]
    )
    batches = [pa.RecordBatch.from_pylist([row(document)], schema) for document in documents]
    return [row for batch in roll_batches(iter(batches)) for row in batch.to_pylist()]


@pytest.fixture(params=["lines", "frame"])
def roll(write: Any, request: pytest.FixtureRequest) -> Roll:
    """Gives the rollup rows of documents, both ways."""
    return lambda *documents: (
        of_lines(write, list(documents)) if request.param == "lines" else of_a_frame(list(documents))
    )


def kinds(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def test_every_event_is_in_one_row_of_events_and_in_one_of_each_kind_it_belongs_to(roll: Roll, make: Any) -> None:
    report = {"cls_type": "run", "outcome": "failed", "duration": 1.5, "exit_code": 1, "command": "tap", "records": 3,
              "bytes": 40, "streams": [{"stream": "users", "records": 3, "bytes": 40}]}  # fmt: skip
    timer = {"cls_type": "metric", "type": "timer", "metric": "m", "value": 2, "tags": {"stream": "users", "pid": 1}}
    rows = roll(make(), make(timer), make(timer), make(report, level="ERROR"), make(context={}))
    assert sum(row["events"] for row in kinds(rows, "events")) == 5
    (run,) = kinds(rows, "run")
    assert (run["events"], run["errors"], run["run"]["outcome"], run["run"]["bytes"]) == (4, 1, "failed", 40)
    assert run["run"]["streams"] == report["streams"]
    (metric,) = kinds(rows, "metric")
    assert (metric["metric"], metric["stream"], metric["count"], metric["sum"]) == ("m", "users", 2, 4.0)
    (error,) = kinds(rows, "error")
    assert (error["message"], error["events"]) == ("tap ended with exit code <n>", 1)
    # of a log line with an application and one without, of metrics, of the report
    assert len(kinds(rows, "events")) == 4


@pytest.mark.parametrize("value", ["nan", "NaN", "Infinity", "-inf", "1e999", "many", None, True, {"a": 1}, [1], ""])
def test_what_is_no_finite_number_is_not_measured_but_is_an_event(roll: Roll, make: Any, value: Any) -> None:
    rows = roll(make({"cls_type": "metric", "type": "gauge", "metric": "m", "value": value}))
    assert kinds(rows, "metric") == []
    assert [row["events"] for row in kinds(rows, "events")] == [1]


def test_a_number_in_text_is_a_number_and_a_metric_without_a_type_is_a_value(roll: Roll, make: Any) -> None:
    rows = roll(
        make({"cls_type": "metric", "metric": "m", "value": "2.5"}),
        make({"cls_type": "metrics", "values": [{"name": "m", "value": "3"}, {"name": None, "value": 1}, 7, {}]}),
        make({"cls_type": "metrics", "values": "none"}),
    )
    found = kinds(rows, "metric")
    assert {(row["type"], row["metric"]) for row in found} == {("value", "m")}
    assert sum(row["sum"] for row in found) == 5.5


@pytest.mark.parametrize("tags", [None, "none", [], {"stream": {"a": 1}}, {"stream": None, "status": 5}])
def test_tags_of_another_type_are_no_reason_to_lose_the_value(roll: Roll, make: Any, tags: Any) -> None:
    (row,) = kinds(
        roll(make({"cls_type": "metric", "type": "counter", "metric": "m", "value": 1, "tags": tags})), "metric"
    )
    assert (row["sum"], row["sketch"]) == (1.0, None)


def test_keys_are_cut_so_that_no_event_makes_a_row_large(roll: Roll, make: Any) -> None:
    long = "x" * 100_000
    document = make(
        {"cls_type": "metric", "type": long, "metric": long, "value": 1, "message": long, "tags": {"stream": long}},
        level="ERROR",
        context={"run_id": long, "application": long},
    )
    for row in roll(document):
        assert all(len(value) <= 1000 for value in row.values() if isinstance(value, str))
        assert len(json.dumps(row["example"], default=str)) < 2500


def test_many_names_of_metrics_are_as_many_rows(roll: Roll, make: Any) -> None:
    rows = roll(
        *(
            make({"cls_type": "metric", "type": "gauge", "metric": f"m{number}", "value": number})
            for number in range(3000)
        )
    )
    assert len(kinds(rows, "metric")) == 3000
    assert all(len(row["sketch"]) == 16 for row in kinds(rows, "metric"))


def test_before_1970_an_hour_begins_before_its_events(roll: Roll, make: Any) -> None:
    (row,) = kinds(roll(make(timestamp="1969-12-31T23:59:59.999999Z")), "events")
    assert (row["hour"].isoformat(), row["events"]) == ("1969-12-31T23:00:00+00:00", 1)


def test_a_payload_of_a_frame_that_is_no_json_is_an_event_of_no_type(
    monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setattr(json, "dumps", lambda value: "{ broken")
    (row,) = of_a_frame([make(context={})])
    assert (row["kind"], row["events"], row["cls_type"]) == ("events", 1, None)


def test_a_frame_is_rolled_some_events_at_a_time(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setattr(worker, "_MOST_ROWS", 4)
    rows = of_a_frame([make(context={}) for _ in range(10)])
    assert [row["events"] for row in rows] == [4, 4, 2]


@pytest.mark.parametrize(("most", "rows"), [(500, 1), (2, 2), (1, 3)])
def test_the_blocks_of_a_task_are_rolled_up_together_as_many_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch, write: Any, make: Any, most: int, rows: int
) -> None:
    monkeypatch.setattr(scanning, "_SMALL", 0)
    monkeypatch.setattr(scanning, "_MOST_DIGESTS", most)
    timer = {"cls_type": "metric", "type": "timer", "metric": "m"}
    paths = [write(f"{name}.jsonl", make(timer | {"value": value})) for name, value in zip("abc", (3, 1, 2))]
    batches = scan([Slice(str(path)) for path in paths], RollupQuery())
    found = [row for batch in batches for row in batch.to_pylist()]
    assert [len(kinds(found, kind)) for kind in ("events", "metric", "run")] == [rows] * 3
    assert sum(row["sum"] for row in kinds(found, "metric")) == 6
    assert {row["count"] for row in kinds(found, "metric")} == {500: {3}, 2: {2, 1}, 1: {1}}[most]


@pytest.mark.parametrize("kind", [5, 1.5, True, None, {"a": 1}, ["metric"], ...])
def test_a_cls_type_that_is_no_text_is_no_type(roll: Roll, make: Any, kind: Any) -> None:
    fields = {"type": "timer", "metric": "m", "value": 1.5, "outcome": "failed", "values": [{"name": "n", "value": 1}]}
    payload = fields if kind is ... else {"cls_type": kind, **fields}
    rows = roll(make(payload, level="ERROR"))
    assert {row["kind"] for row in rows} == {"events", "run", "error"}
    assert [row["cls_type"] for row in kinds(rows, "events")] == [None]
    assert [row["run"] for row in kinds(rows, "run")] == [None]
    assert "metric" not in str(kinds(rows, "error")[0]["message"])


def test_a_cls_type_is_read_as_json_text(roll: Roll, make: Any) -> None:
    names = ["metric", "5", "true", "null", "{}", 'a"b', "\\", "日志", "\n", ""]
    rows = roll(*(make({"cls_type": name}) for name in names))
    assert sorted(row["cls_type"] for row in kinds(rows, "events")) == sorted(names)


@settings(deadline=None)
@given(maps, st.integers(0, 5), st.integers(0, 5))
def test_a_key_is_map_values_in_every_map_also_of_a_slice(data: list[Any], skip: int, most: int) -> None:
    whole = pa.array(data, pa.map_(pa.string(), pa.string()))
    for some in (whole, whole.slice(min(skip, len(whole)), most)):
        expected = [next((value for key, value in row or [] if key == "a"), None) for row in some.to_pylist()]
        assert worker._map_values(some, "a").to_pylist() == expected
