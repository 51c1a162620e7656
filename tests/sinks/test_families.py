from collections import Counter
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from balog.sinks.measuring import families as module
from balog.sinks.measuring.families import Families, clean_label, clean_metric_name, family_name
from balog.sinks.measuring.measures import Measure

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def of(kind, name, value, **tags):
    return Measure(kind, name, value, tags, NOON)


def add(families, *found):
    return families.add(list(enumerate(found)))


def samples(families):
    text = families.render().decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class TestAdding:
    def test_counters_add_up_gauges_are_the_last_and_timers_are_histograms(self):
        families = Families((0.1, 1.0))
        add(families, of("counter", "record_count", 2.0, stream="a"), of("counter", "record_count", 3.0, stream="a"))
        add(
            families,
            of("counter", "record_count", 4.0, stream="b"),
            of("gauge", "depth", 9.0),
            of("gauge", "depth", -1.0),
        )
        add(families, *(of("timer", "job_duration", seconds) for seconds in (0.05, 0.1, 0.5, 7.0)))
        assert samples(families) == {
            ("record_count_total", ("stream", "a")): 5,
            ("record_count_total", ("stream", "b")): 4,
            ("depth",): -1,
            ("job_duration_seconds_bucket", ("le", "0.1")): 2,
            ("job_duration_seconds_bucket", ("le", "1.0")): 3,
            ("job_duration_seconds_bucket", ("le", "+Inf")): 4,
            ("job_duration_seconds_count",): 4,
            ("job_duration_seconds_sum",): 7.65,
        }

    def test_the_text_says_what_each_is(self):
        families = Families()
        add(families, of("counter", "rows read", 1.0, table='a"\\\n'))
        assert families.render().decode() == (
            "# HELP rows_read_total The counter rows read of events.\n"
            "# TYPE rows_read_total counter\n"
            'rows_read_total{table="a\\"\\\\ "} 1.0\n'
        )

    def test_a_name_of_another_kind_is_refused_with_the_reason(self):
        families = Families()
        change = add(
            families,
            of("counter", "x", 1.0),
            of("gauge", "x", 1.0),
            of("gauge", "x_total", 1.0),
            of("timer", "y", 1.0),
            of("gauge", "y_seconds_sum", 1.0),
            of("counter", "y_seconds", 1.0),
            of("counter", "x.total", 1.0),
        )
        assert sorted(change.refused) == [1, 2, 4, 5]
        assert change.refused[1] == "the gauge x would be x in Prometheus, which the counter x has a name of"
        assert change.refused[5] == (
            "the counter y_seconds would be y_seconds in Prometheus, which the timer y_seconds has a name of"
        )
        assert samples(families)[("x_total",)] == 2

    def test_a_counter_cannot_go_down(self):
        families = Families()
        assert add(families, of("counter", "x", -2.0)).refused == {0: "the counter x_total cannot go down by 2"}
        assert families.render() == b""

    def test_of_an_event_all_is_added_or_nothing(self):
        families = Families()
        change = families.add(
            [
                (0, of("gauge", "a", 1.0)),
                (1, of("gauge", "a", 2.0)),
                (1, of("counter", "a", 1.0)),
                (2, of("gauge", "b", 3.0)),
            ]
        )
        assert list(change.refused) == [1]
        assert samples(families) == {("a",): 1, ("b",): 3}

    def test_metrics_and_series_beyond_the_caps_are_refused(self, monkeypatch):
        monkeypatch.setattr(module, "_MAX_FAMILIES", 2)
        monkeypatch.setattr(module, "_MAX_SERIES", 3)
        families = Families()
        change = add(families, of("gauge", "a", 1.0), of("gauge", "b", 1.0), of("gauge", "c", 1.0))
        assert change.refused == {2: "there are 2 metrics already"}
        change = add(families, of("gauge", "a", 1.0, x="1"), of("gauge", "a", 1.0, x="2"), of("gauge", "a", 5.0, x="1"))
        assert change.refused == {1: "there are 3 series already; lower max_series"}
        assert samples(families)[("a", ("x", "1"))] == 5
        families.undo(change)
        assert add(families, of("gauge", "a", 1.0, x="3")).refused == {}

    def test_a_new_metric_that_has_no_room_for_a_series_leaves_no_trace(self, monkeypatch):
        monkeypatch.setattr(module, "_MAX_SERIES", 1)
        families = Families()
        assert list(add(families, of("gauge", "a", 1.0), of("gauge", "b", 1.0), of("counter", "b", 1.0)).refused) == [
            1,
            2,
        ]
        assert b"b" not in families.render().replace(b"of events", b"")


class TestSeriesThatCameBefore:
    def test_tags_that_are_shared_are_told_apart_by_name_and_kind(self):
        families, tags = Families((1.0,)), {"le": "x"}
        for _ in range(2):
            add(families, *(Measure(kind, name, 1.0, tags, NOON) for kind, name in [("counter", "a"), ("gauge", "b")]))
            add(families, Measure("timer", "a", 1.0, tags, NOON), Measure("counter", "c", 1.0, {"le": "y"}, NOON))
        assert samples(families) == {
            ("a_total", ("le", "x")): 2,
            ("b", ("le", "x")): 1,
            ("c_total", ("le", "y")): 2,
            ("a_seconds_bucket", ("exported_le", "x"), ("le", "1.0")): 2,
            ("a_seconds_bucket", ("exported_le", "x"), ("le", "+Inf")): 2,
            ("a_seconds_count", ("exported_le", "x")): 2,
            ("a_seconds_sum", ("exported_le", "x")): 2,
        }

    def test_there_are_bounds(self, monkeypatch):
        monkeypatch.setattr(module, "_MAX_KNOWN", 5)
        families = Families()
        for number in range(50):
            add(families, of("gauge", "x", 1.0, n=str(number)))
            assert len(families._known_series) <= 5
        assert len(samples(families)) == 50


MEASURES = st.builds(
    of,
    st.sampled_from(["counter", "gauge", "timer"]),
    st.text(min_size=1) | st.sampled_from(["a", "b", "a_total", "a_seconds", "a_sum", "b_seconds_count", "a_created"]),
    st.floats(0, 1e300),
)
TAGS = st.dictionaries(
    st.text(min_size=1) | st.sampled_from(["le", "job", "quantile"]), st.text(min_size=1), max_size=4
)
BATCHES = st.lists(st.tuples(MEASURES, TAGS).map(lambda pair: pair[0]._replace(tags=pair[1])), max_size=12)


class TestAnything:
    @settings(max_examples=200, deadline=None)
    @given(BATCHES)
    def test_whatever_comes_the_text_can_be_parsed(self, batch):
        """Given any names, values and tags, then both text formats are read, and hold each series once."""
        families = Families()
        change = add(families, *batch)
        taken = [measure for index, measure in enumerate(batch) if index not in change.refused]
        text = families.render().decode()
        found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        keys = [(sample.name, *sorted(sample.labels.items())) for sample in found]
        assert len(keys) == len(set(keys))
        timers = Counter(family_name("timer", one.name) for one in taken if one.kind == "timer")
        for name, count in timers.items():
            assert sum(sample.value for sample in found if sample.name == f"{name}_count") == count
        gauges = {family_name("gauge", one.name): one.value for one in taken if one.kind == "gauge" and not one.tags}
        for name, value in gauges.items():
            assert [one.value for one in found if one.name == name and not one.labels] == [value]
        opened = list(parse_openmetrics(generate_openmetrics(families.registry()).decode()))
        assert len(opened) == len({family.name for family in opened})

    @given(BATCHES, BATCHES)
    def test_what_is_undone_never_was(self, first, second):
        families = Families()
        add(families, *first)
        before = samples(families)
        change = add(families, *second)
        again = dict(change.refused)
        families.undo(change)
        assert samples(families) == before
        assert add(families, *second).refused == again


class TestNames:
    @pytest.mark.parametrize(
        ("kind", "name", "clean"),
        [
            ("counter", "record_count", "record_count"),
            ("counter", "rows_total", "rows"),
            ("counter", "_total", "_total"),
            ("timer", "http.request-duration", "http_request_duration_seconds"),
            ("timer", "wait_seconds", "wait_seconds"),
            ("gauge", "9 lives", "_9_lives"),
            ("gauge", "a:b", "a_b"),
            ("gauge", "größe", "gr_e"),
        ],
    )
    def test_of_families(self, kind, name, clean):
        assert family_name(kind, name) == clean

    @pytest.mark.parametrize(
        ("key", "label"), [("a.b", "a_b"), ("__name__", "_name__"), ("1st", "_1st"), ("a:b", "a_b"), ("ü", "_")]
    )
    def test_of_labels(self, key, label):
        assert clean_label(key) == label

    @given(st.text())
    def test_are_of_the_form_that_prometheus_wants(self, text):
        assert clean_metric_name(text).isidentifier()
        assert clean_metric_name(text).isascii()
        assert clean_label(text).isidentifier()
        assert not clean_label(text).startswith("__")
