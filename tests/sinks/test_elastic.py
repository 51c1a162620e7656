"""The elastic sink: what goes into the bulk API, and what each of its answers leads to."""

import base64
import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.event import Event, decode, encode
from balog.sinks import Delivery
from balog.sinks.elastic import ElasticSinkConfig
from tests.stand_ins.batches import JSON, batch_of, ids, numbered, refused
from tests.stand_ins.elastic import ElasticStandIn
from tests.stand_ins.http_server import Answer

AT = datetime(2026, 11, 20, 7, 46, 12, tzinfo=timezone.utc)


@pytest.fixture
def server():
    with ElasticStandIn() as server:
        yield server


@pytest.fixture
def sinks(server, opened):
    return lambda **options: opened(ElasticSinkConfig(**{"url": server.url, **options}))


def deliveries(*payloads, **changes):
    return batch_of(*payloads, **{"timestamp": AT, **changes})


class TestRequests:
    def test_events_are_created_whole_in_the_data_stream_under_their_ids(self, server, sinks):
        batch = deliveries({"cls_type": "x", "text": "größe"}, {"n": 2})
        sinks().write(batch)
        [request] = server.requests
        assert request.path.startswith("/logs-balog-default/_bulk?")
        assert request.headers["Content-Type"] == "application/x-ndjson"
        assert request.headers["Content-Encoding"] == "gzip"
        assert server.documents == {
            event.header.id: {"@timestamp": "2026-11-20T07:46:12.000000Z", **json.loads(body)} for event, body in batch
        }

    def test_an_index_takes_events_too(self, server, sinks):
        sink = sinks(index="events-2026", compress=False)
        batch = numbered(2)
        sink.write(batch)
        sink.write(batch)
        assert server.requests[0].path.startswith("/events-2026/_bulk?")
        assert server.requests[0].headers["Content-Encoding"] is None
        assert sorted(server.documents) == sorted(ids(batch))

    def test_an_id_longer_than_the_server_takes_is_replaced_by_its_digest(self, server, sinks):
        event = Event.new("a.b", {})
        event.header.id = "LG" + "x" * 600
        sink = sinks()
        sink.write([Delivery(event, encode(event))])
        sink.write([Delivery(event, encode(event))])
        [name] = server.documents
        assert len(name) == 66
        assert server.documents[name]["header"]["id"] == event.header.id

    @pytest.mark.parametrize(
        ("options", "sent"),
        [
            ({}, None),
            ({"api_key": "ZW5jb2RlZA=="}, "ApiKey ZW5jb2RlZA=="),
            ({"api_key": "id:key"}, "ApiKey " + base64.b64encode(b"id:key").decode()),
            ({"user": "elastic", "password": "pä:ss"}, "Basic " + base64.b64encode("elastic:pä:ss".encode()).decode()),
        ],
    )
    def test_credentials(self, server, sinks, monkeypatch, options, sent):
        for name in {"api_key", "password"} & set(options):
            monkeypatch.setenv("ES_SECRET", options[name])
            options = {**options, name: Secret(env="ES_SECRET")}
        sinks(**options).write(numbered(1))
        assert server.requests[0].headers["Authorization"] == sent


MAPPING = {
    "type": "document_parsing_exception",
    "reason": "[1:9] failed to parse field [n]\nof type [long]",
    "caused_by": {"type": "illegal_argument_exception", "reason": 'For input string: "x"'},
}


class TestRefusals:
    def test_each_document_has_a_fate_of_its_own(self, server, sinks):
        batch = numbered(5)
        names = ids(batch)
        server.faults = {names[1]: (400, MAPPING), names[3]: (429, {"type": "es_rejected_execution_exception"})}
        sink = sinks()
        error = refused(sink, batch)
        assert dict(error.rejected) == {
            1: '400 document_parsing_exception: [1:9] failed to parse field [n] of type [long]: For input string: "x"'
        }
        assert (error.retryable, list(error.remaining)) == (True, [3])
        assert str(error) == (f"{server.url} did not take an event: 429 es_rejected_execution_exception")
        server.faults = {}
        sink.write([batch[index] for index in error.remaining])
        assert sorted(server.documents) == sorted(name for name in names if name != names[1])

    def test_only_rejected_ones_are_not_tried_again(self, server, sinks):
        batch = numbered(2)
        server.faults = {ids(batch)[0]: (400, MAPPING)}
        error = refused(sinks(), batch)
        assert (list(error.rejected), error.retryable, list(error.remaining)) == ([0], False, [])

    @pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
    def test_what_is_the_servers_trouble_may_pass(self, server, sinks, status):
        batch = numbered(2)
        server.faults = {ids(batch)[1]: (status, {"type": "t", "reason": "r"})}
        error = refused(sinks(), batch)
        assert (dict(error.rejected), error.retryable, list(error.remaining)) == ({}, True, [1])

    def test_a_conflict_in_an_index_is_not_taken_for_delivered(self, server, sinks):
        batch = numbered(1)
        server.faults = {ids(batch)[0]: (409, {"type": "version_conflict_engine_exception"})}
        assert list(refused(sinks(index="events"), batch).remaining) == [0]

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"<html>hello</html>",
            b"{}",
            b'{"errors": false, "items": []}',
            b'{"errors": false, "items": [{"create": {"status": 201}}]}',
            b'{"errors": "no", "items": [{"create": {"status": 201}}, {"create": {"status": 201}}]}',
            b'{"errors": false, "items": [{"create": {"status": "201"}}, {"create": {"status": 201}}]}',
            b'{"errors": false, "items": [{}, {}]}',
            b'{"errors": false, "items": ' + b"[" * 100_000,
            b'{"errors": false, "items": [{"create": {"status": 201}}, {"create": {"status": 201',
        ],
    )
    def test_an_answer_that_is_not_the_bulk_apis_delivers_nothing(self, server, sinks, answer):
        server.will(Answer(200, answer))
        sink = sinks()
        batch = numbered(2)
        error = refused(sink, batch)
        assert (error.retryable, error.remaining) == (True, None)
        assert "is it an Elasticsearch?" in str(error)
        sink.write(batch)
        assert sorted(server.documents) == sorted(ids(batch))


class TestDocuments:
    @given(
        payload=st.dictionaries(
            st.sampled_from(["cls_type", "message", "values", "metric", "type", "value", "tags", "fields", "duration"])
            | st.text(),
            st.sampled_from(["log", "metric", "metrics", "run", "null", "counter"]) | JSON,
        ),
        context=st.dictionaries(st.sampled_from(["process", "application", "fqdn"]) | st.text(), JSON),
    )
    def test_any_event_is_one_line_of_json(self, payload, context):
        header = {
            "id": "LG1",
            "channel": "a",
            "timestamp": "2026-11-20T07:46:12.5Z",
            "level": "INFO",
            "context": context,
        }
        line = json.dumps({"schema": "0.1.0", "header": header, "payload": payload}).encode("utf-8", "replace")
        event = decode(line)
        sink = ElasticSinkConfig().build()
        action, document, rest = sink._document(Delivery(event, encode(event))).split(b"\n")
        sink.close()
        assert rest == b""
        assert json.loads(action) == {"create": {"_id": "LG1"}}
        assert json.loads(document)["@timestamp"] == "2026-11-20T07:46:12.500000Z"


class TestConfig:
    @pytest.mark.parametrize("name", ["logs-a-b", "logs-shop.orders_2-prod", "metrics-x-1"])
    def test_names_of_data_streams(self, name):
        ElasticSinkConfig(data_stream=name).build().close()

    @pytest.mark.parametrize(
        "name",
        [
            "logs",
            "logs-a",
            "logs-a-b-c",
            "Logs-a-b",
            "logs-A-b",
            "logs--b",
            "logs-a*-b",
            "logs-a-b/_x",
            "logs-" + "a" * 101 + "-b",
        ],
    )
    def test_what_is_no_data_streams_name(self, name):
        with pytest.raises(ConfigError, match="logs-balog-default") as caught:
            ElasticSinkConfig(data_stream=name).build()
        assert caught.value.path == "data_stream"

    @pytest.mark.parametrize("name", ["Events", "_all", "-x", "a b", "a/_bulk", "a,b", "..", ".", "a" * 256, "a?x"])
    def test_what_is_no_indexs_name(self, name):
        with pytest.raises(ConfigError, match="not an index's name") as caught:
            ElasticSinkConfig(index=name).build()
        assert caught.value.path == "index"

    @pytest.mark.parametrize(
        ("options", "path"),
        [
            ({"index": "a", "data_stream": "logs-a-b"}, "index"),
            ({"user": "u"}, "user"),
            ({"password": Secret(env="ES_SECRET")}, "password"),
            ({"api_key": Secret(env="ES_SECRET"), "user": "u"}, "api_key"),
            ({"api_key": Secret(env="NO_SUCH_SECRET")}, "api_key"),
            ({"url": "localhost:9200"}, "url"),
        ],
    )
    def test_what_does_not_fit_together_is_said(self, monkeypatch, options, path):
        monkeypatch.setenv("ES_SECRET", "s3cret")
        with pytest.raises(ConfigError) as caught:
            ElasticSinkConfig(**options).build()
        assert caught.value.path == path
        assert "s3cret" not in str(caught.value)
