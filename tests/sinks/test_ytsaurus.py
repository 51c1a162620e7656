"""The sink ytsaurus at a stand-in for a cluster's proxy: rows as they should be, once, and a cluster in trouble."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.errors import ConfigError, MissingExtraError
from balog.event import Event, encode
from balog.secrets import Secret
from balog.sinks import Delivery, SinkError, YTsaurusSinkConfig
from balog.sinks import ytsaurus as module
from balog.sinks.ytsaurus import yson_row

yson = pytest.importorskip("yt.yson")

from tests.stand_ins.ytsaurus import YTsaurusStandIn  # noqa: E402

TOKEN = "only-of-this-test"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("BALOG_TEST_TOKEN", TOKEN)
    with YTsaurusStandIn(TOKEN) as server:
        yield server


def config(server, **options):
    return YTsaurusSinkConfig(
        **{"proxy": server.url, "path": "//home/balog", "token": Secret(env="BALOG_TEST_TOKEN"), **options}
    )


@pytest.fixture
def sink(server):
    sink = config(server).build()
    sink.open()
    yield sink
    sink.close()


def deliveries(*payloads):
    events = [Event.new("shop", payload) for payload in payloads]
    return [Delivery(event, encode(event)) for event in events]


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_a_row_is_read_back_as_it_was(text, channel):
    event = Event.new(channel, {"t": text}, context={"run_id": text})
    [row] = yson.loads(yson_row(event), yson_type="list_fragment")
    assert (row["run_id"], row["channel"], json.loads(row["payload"])) == (text, channel, {"t": text})
    assert row["timestamp"] == round(event.header.timestamp.timestamp() * 1e6)


def test_an_event_that_comes_twice_is_one_row(server, sink):
    batch = deliveries({"cls_type": "order", "n": 1}, {"cls_type": "order", "n": 2})
    sink.write(batch)
    sink.write(batch[1:])
    assert len(server.tables["//home/balog/order"]["rows"]) == 2


def test_a_type_that_is_no_name_shares_a_table(server, sink):
    sink.write(deliveries({"n": 1}, {"cls_type": "a/b"}, {"cls_type": "@x"}))
    assert list(server.tables) == ["//home/balog/untyped"]


def test_a_payload_that_is_too_large_is_refused_alone(server, sink, monkeypatch):
    monkeypatch.setattr(module, "MAX_VALUE", 100)
    with pytest.raises(SinkError) as caught:
        sink.write(deliveries({"cls_type": "order", "n": 1}, {"cls_type": "order", "text": "x" * 100}))
    assert (caught.value.retryable, list(caught.value.rejected)) == (False, [1])
    assert len(server.tables["//home/balog/order"]["rows"]) == 1


def test_a_table_that_was_removed_is_made_anew(server, sink):
    first, second = deliveries({"cls_type": "order", "n": 1}, {"cls_type": "order", "n": 2})
    sink.write([first])
    server.tables.clear()
    with pytest.raises(SinkError) as caught:
        sink.write([second])
    assert caught.value.retryable
    sink.write([second])
    assert list(server.tables["//home/balog/order"]["rows"]) == [second.event.header.id]


def test_a_table_that_can_t_be_mounted_is_told_with_the_reason(server, sink):
    server.refuse_mounting = True
    with pytest.raises(SinkError, match="No healthy tablet cells") as caught:
        sink.write(deliveries({"cls_type": "order", "n": 1}))
    assert caught.value.retryable


def test_a_token_that_is_refused_is_told_and_not_shown(server, sink):
    server.token = "another"
    with pytest.raises(SinkError) as caught:
        sink.probe()
    assert caught.value.retryable
    assert TOKEN not in str(caught.value)


def test_credentials_in_the_proxy_are_refused(server):
    with pytest.raises(ConfigError, match="credentials"):
        config(server, proxy="http://u:p@cluster").build()


def test_without_the_client_the_extra_is_named(server, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yt.wrapper", None)
    with pytest.raises(MissingExtraError, match=r"\[ytsaurus\]'"):
        config(server).build()
