"""The sink ytsaurus keeps the contract of sinks at a stand-in for a cluster's proxy: rows as they should be, once."""

import json

import balog_ytsaurus as module
import pytest
from balog_ytsaurus import YTsaurusSinkConfig, yson_row
from hypothesis import given
from hypothesis import strategies as st
from yt import yson

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.sinks import Delivery, SinkError
from balog.testing.contracts import SinkContract
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from tests.contracts.sink_peers import HttpPeer
from tests.oracles.test_event_ids_oracle import event_of, ids
from tests.stand_ins.http_server import Answer
from tests.stand_ins.ytsaurus import YTsaurusStandIn

TOKEN = "only-of-this-test"


class YTsaurusPeer(HttpPeer):
    def __init__(self, root):
        super().__init__(root, YTsaurusStandIn(SECRET))
        self.config = YTsaurusSinkConfig(proxy=self.server.url, path="//home/balog", token=Secret(env=SECRET_NAME))

    def expected(self, batch):
        return {event.header.id: (f"//home/balog/{event.cls_type}", event.payload) for event, _ in batch}

    def arrived(self):
        tables = {path: table["rows"] for path, table in self.server.tables.items()}
        assert self.server.writes == sum(map(len, tables.values())), "an event was written twice"
        typed = [(path, row) for path, rows in tables.items() for row in rows.values() if not path.endswith("/untyped")]
        return {row["id"]: (path, json.loads(row["payload"])) for path, row in typed}


class TestContract(SinkContract):
    has_secret = True

    @pytest.fixture
    def peer(self, tmp_path):
        peer = YTsaurusPeer(tmp_path)
        yield peer
        peer.close()


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


@given(ids)
def test_yson_reads_the_id_as_it_was(id):
    (row,) = yson.loads(yson_row(event_of(id)), yson_type="list_fragment")
    assert str(row["id"]) == id


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


def test_a_table_that_can_t_be_mounted_is_reported_with_the_reason(server, sink):
    server.refuse_mounting = True
    with pytest.raises(SinkError, match="No healthy tablet cells") as caught:
        sink.write(deliveries({"cls_type": "order", "n": 1}))
    assert caught.value.retryable


def test_a_token_that_is_refused_is_reported_and_not_shown(server, sink):
    server.token = "another"
    with pytest.raises(SinkError) as caught:
        sink.probe()
    assert caught.value.retryable
    assert TOKEN not in str(caught.value)


def test_credentials_in_the_proxy_are_refused(server):
    with pytest.raises(ConfigError, match="credentials"):
        config(server, proxy="http://u:p@cluster").build()


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 413, 422, 429, 500, 503])
def test_every_status_is_retried(server, sink, status):
    server.respond = lambda request: Answer(status)
    with pytest.raises(SinkError) as caught:
        sink.write(deliveries({"cls_type": "order", "n": 1}))
    assert caught.value.retryable
