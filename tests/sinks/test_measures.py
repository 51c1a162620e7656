import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import EventError
from balog.event import Event, encode
from balog.log_lines import LineAssembler
from balog.singer import parse_log, to_event
from balog.sinks.measuring import measures as module
from balog.sinks.measuring.measures import Measure, MeasureOptions, MeasureReader, measures, text_tags
from balog.sinks.statsd import format_number
from tests.stand_ins.batches import deliver, metric

DATA = Path(__file__).parents[1] / "data"
RUN = {"cls_type": "run", "outcome": "succeeded", "duration": 1, "exit_code": 0, "command": "tap", "records": 1}


def gist(event):
    return [(found.kind, found.name, found.value, found.tags) for found in measures(event)]


def read(events, **options):
    reader = MeasureReader(MeasureOptions(**options), "statsd here")
    return reader.read(deliver(*events))


class TestMeasures:
    def test_a_metric_is_one_measure_at_the_events_time(self):
        event = metric("timer", "job_duration", 0.5, status="failed")
        expected = Measure("timer", "job_duration", 0.5, {"status": "failed"}, event.header.timestamp)
        assert measures(event) == [expected]

    def test_metrics_are_a_gauge_each_also_where_numbers_came_as_text(self):
        event = Event.new(
            "a.b", {"cls_type": "metrics", "values": [{"name": "x", "value": "1.5"}, {"name": "", "value": 2}]}
        )
        assert gist(event) == [("gauge", "x", 1.5, {}), ("gauge", "unnamed", 2.0, {})]

    def test_a_run_tells_how_long_it_took_how_it_ended_and_what_each_stream_carried(self):
        run = {**RUN, "outcome": "failed", "duration": 12.5, "exit_code": 1, "records": 30}
        streams = [{"stream": "users", "records": 10}, {"stream": "orders", "records": 20}]
        assert gist(Event.new("a.run", {**run, "streams": streams})) == [
            ("timer", "run_duration", 12.5, {"outcome": "failed"}),
            ("counter", "runs", 1.0, {"outcome": "failed"}),
            ("gauge", "run_succeeded", 0.0, {}),
            ("counter", "run_records", 10.0, {"stream": "users"}),
            ("counter", "run_records", 20.0, {"stream": "orders"}),
        ]
        assert gist(Event.new("a.run", run))[3:] == [("counter", "run_records", 30.0, {})]

    def test_what_a_run_measured_is_told_too(self):
        measured = {"bytes": 500, "junk": 2, "cpu_user": 0.5, "cpu_system": 0.25, "peak_memory": 1 << 20}
        streams = [{"stream": "users", "records": 1, "bytes": 80}]
        assert gist(Event.new("a.run", {**RUN, **measured, "streams": streams}))[3:] == [
            ("counter", "run_records", 1.0, {"stream": "users"}),
            ("counter", "run_record_bytes", 80.0, {"stream": "users"}),
            ("counter", "run_output_bytes", 500.0, {}),
            ("counter", "run_junk_lines", 2.0, {}),
            ("timer", "run_cpu", 0.5, {"mode": "user"}),
            ("timer", "run_cpu", 0.25, {"mode": "system"}),
            ("gauge", "run_peak_memory_bytes", 1048576.0, {}),
        ]

    @pytest.mark.parametrize(
        "payload", [{}, {"cls_type": "log", "message": "x"}, {"cls_type": 5}, {"cls_type": "mine"}]
    )
    def test_an_event_that_is_not_about_numbers_has_none(self, payload):
        assert measures(Event.new("a.b", payload)) == []

    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            ({"cls_type": "metric", "type": "counter", "metric": "x", "value": "many"}, "$.payload.value"),
            ({"cls_type": "metric", "type": "counter", "metric": "x", "value": "inf"}, "$.payload.value"),
            ({"cls_type": "metric", "type": "set", "metric": "x", "value": 1}, "$.payload.type"),
            ({"cls_type": "metric", "type": "counter", "metric": "", "value": 1}, "$.payload.metric"),
            ({"cls_type": "metric", "type": "timer", "metric": "x", "value": -1}, "a timer cannot be -1 seconds"),
            ({"cls_type": "metrics", "values": 5}, "$.payload.values"),
            ({"cls_type": "run", "outcome": "so so"}, "$.payload"),
        ],
    )
    def test_a_payload_that_is_not_what_it_says_is_refused_with_the_place(self, payload, message):
        with pytest.raises(EventError) as refusal:
            measures(Event.new("a.b", payload))
        assert message in str(refusal.value)


POINT = {"type": "counter", "metric": "record_count", "value": 891, "tags": {"stream": "users"}}
MAGE = {
    "caller": "Users",
    "level": "INFO",
    "message": "Synced stream completed.",
    "tags": {"stream": "users", "records": 891},
    "type": "LOG",
}
SDK = {"level": "info", "logger_name": "singer_sdk.metrics", "ts": 1.5, "message": "METRIC", "metric_info": POINT}
STDERR = {
    "singer-python": f"INFO METRIC: {json.dumps(POINT)}",
    "singer-sdk as text": f"2026-11-20 08:18:50,620 | INFO     | singer_sdk.metrics | METRIC: {json.dumps(POINT)}",
    "singer-sdk as JSON": json.dumps(SDK),
    "Mage": f"INFO [2022-10-21T00:50:20.607364] {json.dumps(MAGE)}",
    "balog": encode(metric(value=891, stream="users")).decode(),
}
IN_BAND = {
    "Mage": MAGE,
    "the proposal": {"type": "LOG", "level": "INFO", "value": {"metric": POINT}},
    "balog": {"type": "LOG", "level": "INFO", "value": json.loads(STDERR["balog"])},
}


class TestDialects:
    @pytest.mark.parametrize("dialect", STDERR)
    def test_on_stderr_each_ends_as_the_same_measure(self, dialect):
        assembler = LineAssembler("tap-x")
        events = assembler.feed(STDERR[dialect].encode() + b"\n") + assembler.close()
        assert [gist(event) for event in events] == [[("counter", "record_count", 891, {"stream": "users"})]]

    @pytest.mark.parametrize("dialect", IN_BAND)
    def test_in_band_each_ends_as_the_same_measure(self, dialect):
        event, _ = to_event(parse_log(json.dumps(IN_BAND[dialect]).encode()))
        assert gist(event) == [("counter", "record_count", 891, {"stream": "users"})]

    @pytest.mark.parametrize(
        ("file", "found"),
        [
            (
                "singer-python.stderr.log",
                {"http_request_duration": ("timer", 4), "record_count": ("counter", 1), "job_duration": ("timer", 1)},
            ),
            ("singer-sdk.stderr.log", {"sync_duration": ("timer", 1), "record_count": ("counter", 1)}),
            ("singer-sdk.json.stderr.log", {"sync_duration": ("timer", 1), "record_count": ("counter", 1)}),
        ],
    )
    def test_what_real_taps_printed_is_measured(self, file, found):
        assembler = LineAssembler("tap-x")
        events = assembler.feed((DATA / file).read_bytes()) + assembler.close()
        counted = Counter((one.name, one.kind) for event in events for one in measures(event))
        assert {name: (kind, count) for (name, kind), count in counted.items()} == found


class TestTags:
    def test_tags_are_text(self):
        tags = {
            "code": 200,
            "ok": True,
            "share": 0.5,
            "ids": [1, "a"],
            "name": "x" * 500,
            "none": None,
            "empty": "",
            "": "x",
        }
        assert text_tags(tags) == {"code": "200", "ok": "true", "share": "0.5", "ids": '[1,"a"]', "name": "x" * 200}

    def test_the_members_of_a_partition_are_tags_of_their_own(self):
        assert text_tags({"context": {"account": 7, "deep": {"x": 1}}, "stream": "a"}) == {
            "context.account": "7",
            "stream": "a",
        }
        assert text_tags({"context": {}}) == {}

    def test_a_process_id_is_no_tag(self):
        event = metric(stream="a", pid=31068)
        assert [found.tags for _, found in read([event]).measures] == [{"stream": "a"}]

    def test_a_prefix_and_tags_for_all(self):
        ((_, found),) = read([metric(stream="a", env="x")], prefix="taps", tags={"env": "prod", "nothing": ""}).measures
        assert (found.name, found.tags) == ("taps.record_count", {"stream": "a", "env": "prod"})

    def test_too_many_series_fold_and_it_is_said_once(self, capfd):
        events = [metric(stream="a", user=number) for number in range(50)]
        found = [tuple(one.tags.items()) for _, one in read(events, max_series=10, tags={"env": "prod"}).measures]
        assert len(set(found)) == 11
        assert found[-1] == (("stream", "a"), ("user", "__other__"), ("env", "prod"))
        assert sum(one.value for _, one in read(events, max_series=10).measures) == 50
        said = capfd.readouterr().err.splitlines()
        assert said[0] == (
            "balog: statsd here: the metric record_count has too many sets of tags; more of them become __other__"
        )
        assert len(said) == 2, "once for each of the two readers"


def test_a_batch_gives_measures_by_index_and_reasons_for_what_is_refused():
    found = read([Event.new("a.b", {}), metric("timer", value=-1), metric(value=3)])
    assert [(index, one.value) for index, one in found.measures] == [(2, 3.0)]
    assert found.rejected == {1: "$.payload.value: a timer cannot be -1 seconds"}


class TestSeriesThatCameBefore:
    """What is remembered of a series changes nothing."""

    @given(
        st.lists(
            st.builds(
                metric,
                st.sampled_from(["counter", "timer", "gauge", "set"]),
                st.sampled_from(["a", "b", ""]),
                st.floats(-10, 10) | st.just("7"),
                stream=st.sampled_from(["x", "y", None, {"z": 1}, [1]]),
            ),
            max_size=20,
        )
    )
    def test_a_batch_reads_the_second_time_as_the_first(self, events):
        batch = deliver(*events)
        reader = MeasureReader(MeasureOptions(prefix="p", tags={"env": "e"}), "statsd here")
        first, second = reader.read(batch), reader.read(batch)
        one_by_one = [MeasureReader(MeasureOptions(prefix="p", tags={"env": "e"}), "x").read([one]) for one in batch]
        assert first == second
        assert [one for _, one in first.measures] == [one for found in one_by_one for _, one in found.measures]
        assert [why for found in one_by_one for why in found.rejected.values()] == list(first.rejected.values())

    def test_tags_that_are_none_are_refused_each_time(self):
        event = Event.new("a", {"cls_type": "metric", "type": "gauge", "metric": "x", "value": 1, "tags": [1]})
        for _ in range(2):
            assert read([event, event]).rejected.keys() == {0, 1}

    def test_what_is_remembered_has_bounds(self, monkeypatch):
        monkeypatch.setattr(module, "_MAX_KNOWN", 5)
        reader = MeasureReader(MeasureOptions(), "x")
        for number in range(100):
            reader.read(deliver(metric(stream=number)))
            assert len(reader._known) <= 5
        reader._known.clear()
        reader.read(deliver(metric(stream="x" * 10_000)))
        assert reader._known == {}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same(value):
    assert float(format_number(value)) == value
