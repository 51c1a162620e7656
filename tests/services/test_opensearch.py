"""The elastic sink at a real OpenSearch: documents, duplicates, refusals, and a server that goes away."""

import json
from datetime import datetime, timezone

import pytest

from balog.delivery.attempt import attempt
from balog.sinks import SinkError
from balog.sinks.elastic import ElasticSinkConfig
from tests.services.servers.opensearch import running_opensearch
from tests.stand_ins.batches import batch_of, ids

pytestmark = pytest.mark.service

AT = datetime(2026, 11, 20, 7, 46, 12, 123456, tzinfo=timezone.utc)
TEMPLATE = {
    "index_patterns": ["logs-*-*"],
    "data_stream": {},
    "priority": 200,
    "template": {
        "settings": {"number_of_replicas": 0},
        "mappings": {"properties": {"payload": {"properties": {"n": {"type": "long"}}}}},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_opensearch(tmp_path_factory.mktemp("opensearch")) as server:
        server.ask("PUT", "_index_template/logs", TEMPLATE)
        yield server


@pytest.fixture
def stream(request):
    name = request.node.name.removeprefix("test_")[:80].lower()
    return f"logs-{''.join(char if char.isalnum() else '_' for char in name)}-test"


@pytest.fixture
def sinks(server):
    made = []

    def make(**options):
        made.append(ElasticSinkConfig(**{"url": server.url, **options}).build())
        made[-1].open()
        return made[-1]

    yield make
    for sink in made:
        sink.close()


def deliveries(*payloads, **changes):
    return batch_of(*payloads, channel="shop.orders", **{"timestamp": AT, **changes})


def test_events_are_found_again_whole_by_their_ids(server, sinks, stream):
    batch = [
        *deliveries({"n": 1, "text": "größe \0 😀"}, {"n": 2}),
        *deliveries({"n": 3}, timestamp=datetime(1999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)),
        *deliveries({"n": 4, "text": "ü" * 500_000}, context={"run_id": "r1", "deep": {"a": [{"b": 1}]}}),
    ]
    sinks(data_stream=stream).write(batch)
    found = server.documents(stream)
    assert sorted(found) == sorted(ids(batch))
    for event, body in batch:
        document = found[event.header.id]
        assert document.pop("@timestamp") == event.header.timestamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert document == json.loads(body)
    assert server.ask("GET", f"_data_stream/{stream}")["data_streams"][0]["name"] == stream


def test_what_comes_twice_is_there_once(server, sinks, stream):
    sink = sinks(data_stream=stream)
    batch = deliveries(*({"n": n} for n in range(2000)))
    sink.write(batch)
    sink.write(batch[500:1500])
    assert sorted(server.documents(stream)) == sorted(ids(batch))


def test_events_that_do_not_fit_the_mapping_are_refused_alone(server, sinks, stream):
    batch = deliveries({"n": 1}, {"n": "many"}, {"n": 3}, {"n": 10**30}, {"": 1})
    with pytest.raises(SinkError) as caught:
        sinks(data_stream=stream).write(batch)
    assert sorted(caught.value.rejected) == [1, 3, 4]
    assert "failed to parse field [payload.n] of type [long]" in caught.value.rejected[1]
    assert list(caught.value.remaining) == []
    assert sorted(server.documents(stream)) == sorted([ids(batch)[0], ids(batch)[2]])


def test_an_index_takes_events_and_overwrites_what_comes_twice(server, sinks):
    sink = sinks(index="orders-2026")
    batch = deliveries(*({"n": n} for n in range(100)))
    sink.write(batch)
    sink.write(batch)
    assert sorted(server.documents("orders-2026")) == sorted(ids(batch))


def test_a_blocked_index_holds_events_back_until_it_is_open(server, sinks):
    """Given a node whose disk is full, which blocks its indices, then nothing is lost and nothing refused for good."""
    sink = sinks(index="blocked")
    first, second = deliveries({"n": 1}), deliveries({"n": 2}, {"n": 3})
    sink.write(first)
    server.ask("PUT", "blocked/_settings", {"index.blocks.read_only_allow_delete": True})
    with pytest.raises(SinkError) as caught:
        sink.write(second)
    assert caught.value.retryable
    assert list(caught.value.remaining) == [0, 1]
    assert "429 cluster_block_exception" in str(caught.value)
    server.ask("PUT", "blocked/_settings", {"index.blocks.read_only_allow_delete": None})
    sink.write(second)
    assert sorted(server.documents("blocked")) == sorted(ids(first) + ids(second))


def test_a_server_that_goes_away_in_between_gets_all_of_it(server, sinks, stream):
    sink = sinks(data_stream=stream)
    first, second = deliveries({"n": 1}), deliveries({"n": 2})
    sink.write(first)
    server.stop()
    with pytest.raises(SinkError, match="cannot connect") as caught:
        sink.write(second)
    assert caught.value.retryable
    server.up()
    outcome = attempt(sink.write, second)
    assert (outcome.taken, outcome.error) == (1, None)
    assert sorted(server.documents(stream)) == sorted(ids(first) + ids(second))
