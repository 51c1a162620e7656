"""The Prometheus sink with Debian's Prometheus and pushgateway, and before the eyes of ``promtool``."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from balog.event import Event, encode
from balog.sinks.base import Delivery, SinkError
from balog.sinks.measuring.families import Families
from balog.sinks.measuring.measures import measures
from balog.sinks.measuring.scraping import Listen
from balog.sinks.prometheus import PrometheusSinkConfig, Pushgateway
from tests.services.servers.process import free_port
from tests.services.servers.prometheus import lint, running_prometheus
from tests.services.servers.pushgateway import running_pushgateway

pytestmark = pytest.mark.service


def metric(kind="counter", name="record_count", value=1, **tags):
    payload = {"cls_type": "metric", "type": kind, "metric": name, "value": value, "tags": tags}
    event = Event.new("a.metric", payload)
    return Delivery(event, encode(event))


def run_event():
    streams = [{"stream": "users", "records": 10}, {"stream": "orders", "records": 20}]
    run = {"cls_type": "run", "outcome": "succeeded", "duration": 12.5, "exit_code": 0, "command": "tap", "records": 30}
    event = Event.new("a.run", {**run, "streams": streams})
    return Delivery(event, encode(event))


def values(text, name):
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_a_prometheus_sees_counters_gauges_and_histograms(tmp_path):
    port = free_port()
    sink = PrometheusSinkConfig(listen=Listen(port=port), prefix="taps").build()
    sink.open()
    with running_prometheus(tmp_path, [port]) as prometheus:
        sink.write(
            [metric(value=3, stream="users"), metric("gauge", "depth", -2.5), metric("timer", "job_duration", 42)]
        )
        assert prometheus.wait_for("taps_record_count_total", "stream", until=bool) == {("users",): 3}
        sink.write([metric(value=4, stream="users"), metric(value=1, stream='o"d\\d\nü'), run_event()])
        found = prometheus.wait_for("taps_record_count_total", "stream", until=lambda found: len(found) == 2)
        assert found == {("users",): 7, ('o"d\\d ü',): 1}
        assert prometheus.query("taps_depth") == {(): -2.5}
        assert prometheus.query("taps_job_duration_seconds_bucket", "le")[("60.0",)] == 1
        assert prometheus.query("taps_job_duration_seconds_bucket", "le")[("30.0",)] == 0
        assert prometheus.query("taps_job_duration_seconds_sum") == {(): 42}
        longest = prometheus.query("histogram_quantile(1, taps_run_duration_seconds_bucket)", "outcome")
        assert longest == {("succeeded",): 30}, "the upper bound of its bucket"
        assert prometheus.query("taps_run_records_total", "stream") == {("users",): 10, ("orders",): 20}
        sink.close()


class TestPushgateway:
    def test_the_group_holds_what_was_added_up(self, tmp_path):
        with running_pushgateway(tmp_path) as gateway:
            push = Pushgateway(url=gateway.url, job="taps", grouping={"instance": "a/b ü", "empty": ""})
            sink = PrometheusSinkConfig(pushgateway=push).build()
            sink.open()
            for _ in range(3):
                sink.write(
                    [metric(value=2, stream="users"), metric("timer", "job_duration", 1.5), metric("gauge", "g", -1)]
                )
            sink.close()
            group = (("instance", "a/b ü"), ("job", "taps"))
            text = gateway.metrics()
        found = {
            tuple(label for label in labels if label[1]): n for labels, n in values(text, "record_count_total").items()
        }
        assert found == {(*group, ("stream", "users")): 6}
        assert list(values(text, "job_duration_seconds_count").values()) == [3]
        assert list(values(text, "g").values()) == [-1]

    def test_what_clashes_with_another_group_is_refused_with_the_gateways_reason(self, tmp_path):
        with running_pushgateway(tmp_path) as gateway:
            one, other = (
                PrometheusSinkConfig(pushgateway=Pushgateway(url=gateway.url, job=job)).build()
                for job in ("one", "other")
            )
            one.write([metric("gauge", "x_total")])
            with pytest.raises(SinkError, match="400") as refusal:
                other.write([metric("counter", "x")])
            assert not refusal.value.retryable
            other.write([metric("counter", "y")])
            assert list(values(gateway.metrics(), "y_total").values()) == [1]
            one.close()
            other.close()


def test_promtool_finds_no_fault(tmp_path):
    """Given the metrics that taps, the SDK and a run report have, then their text follows Prometheus' rules."""
    batch = [
        metric(value=3, stream="users"),
        metric("timer", "http_request_duration", 0.2, endpoint="/x", http_status_code=200, context={"account": 5}),
        metric("timer", "sync_duration", 12, stream="users", status="succeeded"),
        metric("gauge", "queue-depth", 17),
        metric("counter", "http.requests_total", 2),
        run_event(),
    ]
    families = Families()
    change = families.add([(index, one) for index, (event, _) in enumerate(batch) for one in measures(event)])
    assert change.refused == {}
    text = families.render().decode()
    assert "http_request_duration_seconds_bucket" in text
    assert lint(text) == ""
    assert "counter metrics should have" in lint("# HELP x About x.\n# TYPE x counter\nx 1\n")
