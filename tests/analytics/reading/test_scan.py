import gzip
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from pyspark.sql import types as t

from balog.analytics.reading import scan as scanning
from balog.analytics.reading.blocks import Block, packing
from balog.analytics.reading.parser import Parser
from balog.analytics.reading.scan import EventQuery, Query, scan
from balog.analytics.reading.spark_types import DEFAULT, QUARANTINE, project_spark
from balog.analytics.reading.tasks import Slice
from balog.analytics.reading.validation import NormalizedLines, normalize
from balog.analytics.rollups.worker import RollupQuery
from balog.common.errors import ConfigError


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


S, D, B = t.StringType(), t.DoubleType(), t.LongType()
TEXT = t.StructType([*(f for f in DEFAULT if f.name != "payload"), t.StructField("payload", S)])
TYPED = struct(
    payload=struct(type=S, metric=S, value=D, tags=struct(stream=S, pid=B), list=t.ArrayType(B)),
    payload_json=S,
    cls_type=S,
    context=struct(run_id=S, process=S),
    quarantine=QUARANTINE,
)
EVENTS = struct(
    channel=S,
    timestamp=t.TimestampType(),
    level=S,
    context=struct(application=S, run_id=S),
    payload=struct(
        cls_type=S,
        type=S,
        metric=S,
        value=D,
        exit_code=t.IntegerType(),
        records=B,
        values=t.ArrayType(struct(name=S, value=D)),
    ),
    quarantine=QUARANTINE,
)


def rows(path: Path, schema: t.StructType = TEXT) -> list[dict[str, Any]]:
    return asked(path, EventQuery(project_spark(schema)))


def asked(path: Path, query: Query) -> list[dict[str, Any]]:
    batches = list(scan([Slice(str(path))], query))
    assert all(batch.schema.equals(query.arrow, check_metadata=True) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs something with every block read line by line."""

    def slowly(work: Any, *args: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(scanning, "count_events", lambda data: None)
            return work(*args)

    return slowly


def test_an_event_comes_out_in_the_default_columns(make: Any, write: Any) -> None:
    context = {"application": "tap-x", "process": 17, "ok": True, "none": None, "deep": {"a": [1, "x"]}, "half": 0.5}
    document = make({"cls_type": "log", "message": "é"}, context=context)
    (row,) = rows(write("a.jsonl", document))
    assert row == {
        "id": document["header"]["id"],
        "channel": "tap_x.log",
        "timestamp": datetime.fromisoformat(document["header"]["timestamp"].replace("Z", "+00:00")),
        "level": "INFO",
        "schema": "0.1.0",
        "composition": False,
        "context": [
            ("application", "tap-x"), ("process", "17"), ("ok", "true"), ("none", None),
            ("deep", '{"a":[1,"x"]}'), ("half", "0.5"),
        ],
        "cls_type": "log",
        "quarantine": None,
        "payload": '{"cls_type":"log","message":"é"}',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-20T07:46:12.123456Z", "2026-11-20T07:46:12.123456"),
        ("2026-11-20T07:46:12Z", "2026-11-20T07:46:12"),
        ("2026-11-20t07:46:12.5z", "2026-11-20T07:46:12.5"),
        ("2026-11-20T07:46:12.123456+00:00", "2026-11-20T07:46:12.123456"),
        ("2026-11-20T07:46:12+05:30", "2026-11-20T02:16:12"),
        ("2026-11-20 23:46:12.000001-08:00", "2026-11-21T07:46:12.000001"),
        ("2026-11-20T07:46:12.123456789Z", "2026-11-20T07:46:12.123456"),
        ("0002-01-01T00:00:00Z", "0002-01-01T00:00:00"),
    ],
)
def test_a_time_is_in_utc_however_it_was_written(make: Any, write: Any, slowly: Any, written: str, meant: str) -> None:
    path = write("a.jsonl", make({"cls_type": "run", "outcome": "failed"}, timestamp=written))
    seconds, _, fraction = meant.partition(".")
    expected = datetime.fromisoformat(f"{seconds}.{fraction or '0':0<6}+00:00")
    for work in (rows, lambda path: slowly(rows, path)):
        assert work(path)[0]["timestamp"] == expected
    found = {row["kind"]: row for row in asked(path, RollupQuery())}
    assert (found["events"]["first"], found["run"]["last"], found["run"]["run"]["at"]) == (expected,) * 3
    assert {row["hour"] for row in found.values()} == {expected.replace(minute=0, second=0, microsecond=0)}


def test_facility_0_0_1_is_read(write: Any) -> None:
    sample = Path(__file__).parents[2] / "data" / "event-0.0.1.json"
    document = json.loads(sample.read_bytes())
    del document["header"]["context"]
    (row,) = rows(write("a.jsonl", document))
    assert (row["level"], row["context"], row["schema"], row["cls_type"]) == (None, [], "0.0.1", "metrics")
    assert row["timestamp"] == datetime(2014, 10, 7, 15, 6, 51, 641083, timezone.utc)
    values = asked(write("b.jsonl", document), RollupQuery())
    measured = {row["metric"]: (row["count"], row["sum"]) for row in values if row["kind"] == "metric"}
    assert measured == {"foo": (1, 1234.0), "bar": (1, 5678.0)}


def test_a_typed_payload_has_nulls_for_what_is_absent_or_ill_typed_and_numbers_out_of_strings(
    make: Any, write: Any
) -> None:
    payloads = [
        {"cls_type": "metric", "type": "timer", "metric": "m", "value": "1234.5", "tags": {"stream": "s", "pid": 7}},
        {"cls_type": "metric", "value": "many", "tags": "none", "list": [1, "2", "x"]},
        {"cls_type": "metric", "value": {"a": 1}, "metric": 5, "tags": {"pid": "x"}},
        {},
    ]
    found = rows(write("a.jsonl", *map(make, payloads)), TYPED)
    assert [row["payload"]["value"] for row in found] == [1234.5, None, None, None]
    assert found[0]["payload"]["tags"] == {"stream": "s", "pid": 7}
    assert found[1]["payload"]["list"] == [1, 2, None]
    assert found[2]["payload"]["metric"] == "5"
    assert [row["context"] for row in found] == [{"run_id": "r1", "process": None}] * 4
    assert json.loads(found[3]["payload_json"]) == {}


BAD_LINES = [
    (b"{nothing", "$: not JSON"),
    (b"\xff\xfe", "$: not UTF-8"),
    (b'{"schema": "0.1.0"}', "$: object missing required field"),
    (b'"just text"', "$: expected"),
]


@pytest.mark.parametrize("packed", [False, True])
def test_bad_lines_are_told_with_file_offset_reason_and_text_and_good_ones_stay(
    make: Any, write: Any, packed: bool
) -> None:
    lines = [make(), *(line for line, _ in BAD_LINES), make(schema="2.1.0"), make()]
    path = write("a.jsonl.gz" if packed else "a.jsonl", *lines)
    text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    found = rows(path)
    good, bad = [r for r in found if not r["quarantine"]], [r["quarantine"] for r in found if r["quarantine"]]
    assert [row["id"] for row in good] == [lines[0]["header"]["id"], lines[-1]["header"]["id"]]
    assert all(
        value is None for row in found if row["quarantine"] for name, value in row.items() if name != "quarantine"
    )
    assert [line["file"] for line in bad] == [str(path)] * 5
    for line, (raw, reason) in zip(bad, BAD_LINES):
        assert text[line["offset"] :].startswith(raw + b"\n")
        assert line["raw"] == raw.decode(errors="replace")
        assert line["reason"].startswith(reason)
    assert bad[4]["reason"].startswith("$.schema: facility version 2.1.0")


def test_of_a_long_bad_line_the_first_64_kib_are_kept(write: Any) -> None:
    (row,) = rows(write("a.jsonl", b"x" * 200_000))
    assert len(row["quarantine"]["raw"]) == 64 * 1024


def test_half_of_a_surrogate_pair_is_a_bad_line(make: Any, write: Any) -> None:
    half = json.dumps(make({"cls_type": "log", "message": "X"})).replace("X", "\\ud800").encode()
    path = write("a.jsonl", make(), half, make())
    for schema in (TEXT, DEFAULT, TYPED, struct(id=S, quarantine=QUARANTINE)):
        assert [row["quarantine"] is None for row in rows(path, schema)] == [True, True, False]


@pytest.mark.parametrize("schema", [TEXT, struct(id=S, quarantine=QUARANTINE)])
def test_a_line_that_only_the_parser_refuses_is_found_among_its_neighbours(
    make: Any, write: Any, monkeypatch: pytest.MonkeyPatch, schema: t.StructType
) -> None:
    def careless(block: Block) -> NormalizedLines:
        good, offsets, bad = normalize(block)
        return NormalizedLines([*good[:2], b'{"schema": oops}', *good[2:]], [*offsets[:2], 999, *offsets[2:]], bad)

    monkeypatch.setattr(scanning, "normalize", careless)
    monkeypatch.setattr(scanning, "count_events", lambda data: None)
    found = rows(write("a.jsonl", *(make() for _ in range(5))), schema)
    assert [row["quarantine"] is None for row in found] == [True] * 5 + [False]
    assert found[5]["quarantine"]["offset"] == 999
    assert found[5]["quarantine"]["reason"].startswith("it can't be read")


@pytest.mark.parametrize("stamp", ["0001-01-01T00:30:00+01:00", "9999-12-31T23:30:00-01:00"])
@pytest.mark.parametrize("schema", [TEXT, EVENTS])
def test_a_time_that_its_offset_takes_out_of_the_calendar_is_a_bad_line(
    make: Any, write: Any, stamp: str, schema: t.StructType
) -> None:
    found = rows(write("a.jsonl", make(), make(timestamp=stamp), make()), schema)
    assert [row["quarantine"] is None for row in found] == [True, True, False]
    rolled = asked(write("b.jsonl", make(), make(timestamp=stamp), make()), RollupQuery())
    assert [row["events"] for row in rolled if row["kind"] == "events"] in ([2], [1, 1])


@pytest.mark.parametrize("schema", [TEXT, TYPED, EVENTS, struct(id=S, quarantine=QUARANTINE)])
def test_deep_nesting_is_read_beside_good_lines_and_beside_bad_ones(
    make: Any, write: Any, slowly: Any, schema: t.StructType
) -> None:
    deep: dict[str, Any] = {}
    for _ in range(600):
        deep = {"a": deep}
    good = write("a.jsonl", make(), make(deep), make())
    assert [row["quarantine"] for row in rows(good, schema)] == [None] * 3
    assert rows(good, schema) == slowly(rows, good, schema)
    mixed = write("b.jsonl", make(), b"{", make(deep), make())
    assert [row["quarantine"] is None for row in rows(mixed, schema)] == [True, True, True, False]


def test_an_event_too_deep_for_a_variant_is_a_bad_line_and_its_neighbours_are_not(make: Any, write: Any) -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    found = rows(write("a.jsonl", make(), make(deep), make(), make()), DEFAULT)
    assert [row["quarantine"] is None for row in found] == [True, True, True, False]


def test_a_truncated_gzip_whose_last_line_is_a_whole_event_keeps_it(make: Any, write: Any) -> None:
    path = write("a.jsonl.gz", make(), make(), end=b"")
    path.write_bytes(path.read_bytes()[:-8])
    assert [row["quarantine"] is None for row in rows(path)] == [True, True, False]


def test_long_but_lawful_events_are_read(make: Any, write: Any) -> None:
    path = write("a.jsonl", make(), make({"cls_type": "log", "message": "x" * 5_000_000}), make())
    assert [row["quarantine"] for row in rows(path)] == [None, None, None]
    assert max(len(row["payload"]) for row in rows(path)) > 5_000_000


def test_many_values_of_other_types_do_not_lose_the_block(make: Any, write: Any) -> None:
    path = write(
        "a.jsonl", *(make({"cls_type": "kv", "value": value}) for value in (1, "x", {"a": 1}, [1], None, True))
    )
    assert [row["payload"]["value"] for row in rows(path, EVENTS)] == [1.0, None, None, None, None, None]


def test_names_of_fields_are_never_read_as_sql(make: Any, write: Any) -> None:
    names = ["a'b", 'a"b', "a) FROM x; --", "a`b", "a b", "$.x", "\\", "{0}"]
    path = write("a.jsonl", make({name: name for name in names}))
    kind = t.StructType([t.StructField(name, S) for name in names])
    for schema in (struct(payload=kind), struct(payload=kind, payload_json=S)):
        assert rows(path, schema)[0]["payload"] == {name: name for name in names}
    (row,) = rows(write("b.jsonl", make(context={name: name for name in names})), struct(context=kind))
    assert row["context"] == {name: name for name in names}


@pytest.mark.parametrize(
    "schema",
    [
        struct(nothing=S),
        struct(id=B),
        struct(timestamp=S),
        struct(payload=D),
        struct(payload=struct(value=t.BinaryType())),
        struct(payload=struct(a=S, A=S)),
        struct(context=struct(run_id=B)),
        struct(payload_json=struct(a=S)),
        t.StructType([t.StructField("id", S), t.StructField("id", S)]),
    ],
)
def test_a_schema_that_the_source_cannot_give_is_refused_by_name(schema: t.StructType) -> None:
    with pytest.raises(ConfigError, match=r"the schema for format\('balog'\)"):
        project_spark(schema)


# -- both ways of reading give the same ---------------------------------------------------------------------------

LETTERS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | LETTERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["1234.5", "-7", "1e3", "NaN", "inf", " 5 ", "0x1F", "1_000", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
STAMPS = st.builds(
    lambda moment, form, digits: form(moment, digits),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES),
    st.sampled_from(
        [
            lambda moment, digits: moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0"),
            lambda moment, digits: moment.isoformat(timespec="microseconds"),
            lambda moment, digits: moment.isoformat(),
            lambda moment, digits: moment.isoformat(" ", "milliseconds"),
            lambda moment, digits: moment.isoformat("T", "seconds")[:-6] + f".{digits}Z",
            lambda moment, digits: moment.isoformat("T", "seconds")[:-6].lower() + "z",
        ]
    ),
    st.text("0123456789", min_size=1, max_size=9),
)
PAYLOADS = st.dictionaries(
    st.sampled_from(["cls_type", "type", "metric", "value", "values", "outcome", "records", "tags", "list"]),
    VALUES | st.sampled_from(["metric", "metrics", "run", "timer", "counter"]),
    max_size=6,
)  # fmt: skip
EVENT = st.builds(
    lambda payload, header, schema, extra: {"schema": schema, "header": header, "payload": payload, **extra},
    PAYLOADS,
    st.fixed_dictionaries(
        {
            "id": st.from_regex(r"LG[0-9A-Za-z]{1,24}", fullmatch=True),
            "channel": st.text(st.characters(codec="utf-8"), min_size=1, max_size=9),
            "timestamp": STAMPS,
            "level": st.sampled_from(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
        },
        optional={
            "composition": st.booleans(),
            "context": st.dictionaries(LETTERS | st.sampled_from(["run_id", "application"]), VALUES, max_size=4),
            "unknown": VALUES,
        },
    ),
    st.sampled_from(["0.1.0", "1.0.0", "0.0.1", "0.3.7"]),
    st.dictionaries(st.just("later"), VALUES, max_size=1),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENT, min_size=1, max_size=5), st.booleans())
def test_the_quick_way_and_the_line_by_line_way_give_identical_rows(
    write: Any, slowly: Any, documents: list[dict[str, Any]], ascii_: bool
) -> None:
    path = write("a.jsonl", *(json.dumps(document, ensure_ascii=ascii_).encode() for document in documents))
    for schema in (TEXT, DEFAULT, TYPED, EVENTS):
        quick, slow = rows(path, schema), slowly(rows, path, schema)
        assert repr(quick) == repr(slow)
        assert len(quick) == len(documents)
        assert [row["quarantine"] for row in quick] == [None] * len(documents)

    quick, slow = asked(path, RollupQuery()), slowly(asked, path, RollupQuery())
    assert sorted(map(repr, quick)) == sorted(map(repr, slow))
    assert sum(row["events"] for row in quick if row["kind"] == "events") == len(documents)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        EVENT
        | st.binary(max_size=40).filter(lambda data: not packing(data[:4]) and not data.startswith(b"\xef\xbb\xbf")),
        max_size=6,
    )
)
def test_no_line_whatever_its_bytes_stops_the_reader_or_its_neighbours(write: Any, parts: list[Any]) -> None:
    events = [part for part in parts if isinstance(part, dict)]
    wholes = [json.dumps(part).encode() if isinstance(part, dict) else part for part in parts]
    lines = [line for whole in wholes for line in whole.split(b"\n")]
    path = write("a.jsonl", *lines)
    found = rows(path, struct(id=S, quarantine=QUARANTINE))
    assert len(found) == sum(bool(line.strip(b" \t\r")) for line in lines)
    assert sum(row["quarantine"] is None for row in found) == len(events)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stamp=STAMPS, place=st.integers(0, 31), sign=st.sampled_from("0123456789:-+TtZz. \t/,"))
def test_a_timestamp_means_the_same_or_is_refused_both_ways(
    write: Any, slowly: Any, make: Any, stamp: str, place: int, sign: str
) -> None:
    stamp = stamp[:place] + sign + stamp[place + 1 :]
    path = write("a.jsonl", make(timestamp=stamp))
    schema = struct(timestamp=t.TimestampType(), quarantine=QUARANTINE)
    assert rows(path, schema) == slowly(rows, path, schema)


def test_small_files_are_asked_together_and_what_is_wrong_with_one_is_its_own(
    make: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write(f"{number}.jsonl", make(), b"broken" if number == 13 else make()) for number in range(40)]
    slices = [Slice(str(path)) for path in paths]
    takes = []
    real = Parser.take
    monkeypatch.setattr(Parser, "take", lambda self, *a, **o: takes.append(1) or real(self, *a, **o))
    batches = list(scan(slices[:13], EventQuery(project_spark(TEXT))))
    assert (len(takes), [batch.num_rows for batch in batches]) == (1, [26])
    found = [row for batch in scan(slices, EventQuery(project_spark(TEXT))) for row in batch.to_pylist()]
    assert len({row["id"] for row in found if row["quarantine"] is None}) == 79
    (bad,) = [row["quarantine"] for row in found if row["quarantine"]]
    offset = paths[13].read_bytes().index(b"broken")
    assert (bad["file"], bad["offset"], bad["raw"]) == (str(paths[13]), offset, "broken")
    assert len(takes) < 20


def test_a_condition_may_be_about_a_column_that_is_not_handed_out(make: Any, write: Any) -> None:
    types = ["log", "metric", "it's", None, "METRIC"]
    made = [make({"cls_type": kind} if kind else {}) for kind in types]
    path = write("a.jsonl", *made, b"{broken")
    schema = t.StructType([t.StructField("id", t.StringType())])
    for kind, event in zip(types, made):
        if kind is not None:
            batches = scan([Slice(str(path))], EventQuery(project_spark(schema, kind)))
            assert [row["id"] for batch in batches for row in batch.to_pylist()] == [event["header"]["id"]]


@pytest.mark.parametrize("kind", [S, D])
def test_the_type_is_the_same_beside_a_payload_that_has_it_as_a_column(make: Any, write: Any, kind: t.DataType) -> None:
    types = ["5", 5, True, {"a": 1}, None, "log"]
    path = write("a.jsonl", *(make({"cls_type": value}) for value in types))
    schema = struct(cls_type=S, payload=struct(cls_type=kind))
    rows = [row for batch in scan([Slice(str(path))], EventQuery(project_spark(schema))) for row in batch.to_pylist()]
    assert [row["cls_type"] for row in rows] == ["5", None, None, None, None, "log"]
    texts = ["5", "5", "true", '{"a":1}', None, "log"]
    numbers = [5.0, 5.0, None, None, None, None]
    assert [row["payload"]["cls_type"] for row in rows] == (texts if kind == S else numbers)
    only = EventQuery(project_spark(struct(payload=struct(cls_type=kind)), "5"))
    assert sum(batch.num_rows for batch in scan([Slice(str(path))], only)) == 1
