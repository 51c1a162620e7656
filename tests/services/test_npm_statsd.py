"""The statsd sink into npm's statsd, by itself and at the end of a broker in a pipe."""

import pytest

from balog.event import Event, encode, new_id
from balog.sinks.base import Delivery
from balog.sinks.statsd import StatsdSinkConfig
from tests.services.servers.statsd import running

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def statsd(tmp_path_factory):
    with running(tmp_path_factory.mktemp("statsd")) as found:
        yield found


def metric(kind="counter", name="record_count", value=1, **tags):
    payload = {"cls_type": "metric", "type": kind, "metric": name, "value": value, "tags": tags}
    event = Event.new("a.metric", payload)
    return Delivery(event, encode(event))


def write(config, batch):
    sink = config.build()
    sink.open()
    sink.write(batch)
    sink.close()


def test_counters_add_up_timers_are_milliseconds_and_gauges_are_levels(statsd):
    config = StatsdSinkConfig(host="127.0.0.1", port=statsd.port, prefix="one", name_tags=("stream",))
    batch = [metric(value=2, stream="users"), metric(value=3, stream="users"), metric(value=4, stream="orders")]
    batch += [metric("timer", "job_duration", 0.25), metric("gauge", "depth", 17), metric("gauge", "depth", -5)]
    write(config, batch)
    assert statsd.wait_for("gauges", "one.depth", -5)["one.depth"] == -5
    counters = statsd.ask("counters")
    assert (counters["one.record_count.users"], counters["one.record_count.orders"]) == (5, 4)
    assert statsd.ask("timers")["one.job_duration"] == [250]
    assert counters["statsd.bad_lines_seen"] == 0


def test_tags_of_dogstatsd_are_read(statsd):
    config = StatsdSinkConfig(host="127.0.0.1", port=statsd.port, prefix="two", format="dogstatsd", tags={"env": "x"})
    write(config, [metric(stream="users")])
    assert statsd.wait_for("counters", "two.record_count;stream=users;env=x", 1)["statsd.bad_lines_seen"] == 0


def test_odd_names_and_values_are_no_bad_lines(statsd):
    batch = [
        metric(name="a:b|c@d#e\nf"),
        metric(name="größe", value=1e-7),
        metric("timer", "tiny", 4.76837158203125e-06),
        metric("gauge", "huge", 1e300),
        metric(name="three.end"),
    ]
    write(StatsdSinkConfig(host="127.0.0.1", port=statsd.port), batch)
    counters = statsd.wait_for("counters", "three.end", 1)
    assert counters["a_b_c_d_e_f"] == 1
    assert counters["gr_e"] == 1e-7
    assert statsd.ask("timers")["tiny"] == [0.004768]
    assert statsd.ask("gauges")["huge"] == 1e300
    assert counters["statsd.bad_lines_seen"] == 0


def test_a_burst_of_a_hundred_thousand_arrives_whole(statsd):
    config = StatsdSinkConfig(host="127.0.0.1", port=statsd.port)
    sink = config.build()
    sink.open()
    name = f"burst_{new_id()}"  # a server that was kept from its work drops datagrams; another try begins at nothing
    batch = [metric(name=name)] * 1000
    for _ in range(100):
        sink.write(batch)
    sink.close()
    assert statsd.wait_for("counters", name, 100_000)[name] == 100_000
