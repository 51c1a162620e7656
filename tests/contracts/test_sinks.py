"""What every sink must do, whatever is at its other side."""

from datetime import datetime, timezone

import msgspec
import pytest

from balog.errors import ConfigError
from balog.event import Event, encode
from balog.outbound.attempt import attempt
from balog.sinks import AnySinkConfig, Batching, Delivery, Retrying, SinkError
from tests.contracts.sink_peers import PEERS, SECRET, SECRET_NAME


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv(SECRET_NAME, SECRET)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(params=PEERS)
def peer(request, tmp_path):
    made = PEERS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def build(peer):
    """Build sinks of the peer's config that are closed at the end, whatever happens."""
    sinks = []

    def build(config=None):
        sinks.append((config or peer.config).build())
        return sinks[-1]

    yield build
    for sink in sinks:
        sink.close()


def deliveries(peer, numbers, **changes):
    events = [peer.event(number, **changes) for number in numbers]
    return [Delivery(event, encode(event)) for event in events]


def open_and_write(sink, batch):
    sink.open()
    sink.write(batch)


def trouble(sink, batch):
    with pytest.raises(SinkError) as caught:
        open_and_write(sink, batch)
    error = caught.value
    numbers = range(len(batch))
    assert set(error.rejected) <= set(numbers)
    assert set(error.remaining or ()) <= set(numbers) - set(error.rejected)
    assert "\n" not in str(error)
    return error


def test_every_sink_has_a_peer():
    assert {config.__struct_config__.tag for config in AnySinkConfig.__args__} == {name.split()[0] for name in PEERS}


class TestDelivery:
    def test_every_event_arrives_as_it_should(self, peer):
        sink = peer.config.build()
        batches = [deliveries(peer, range(3)), deliveries(peer, range(3, 503)), deliveries(peer, [503])]
        sink.open()
        for batch in batches:
            sink.write(batch)
        sink.close()
        assert peer.arrived() == peer.expected([delivery for batch in batches for delivery in batch])

    def test_odd_events_arrive(self, peer):
        """Given huge, non-ASCII, ancient and future events, then each arrives."""
        batch = [
            *deliveries(peer, [0], timestamp=datetime(1999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)),
            *deliveries(peer, [1], timestamp=datetime(2999, 1, 1, tzinfo=timezone.utc)),
            *deliveries(peer, [2], context={"fqdn": "größe", "text": "ü" * 500_000, "nul": "\0", "deep": {"a": [1]}}),
        ]
        sink = peer.config.build()
        open_and_write(sink, batch)
        sink.close()
        assert peer.arrived() == peer.expected(batch)

    def test_any_event_is_taken_or_refused_alone(self, peer):
        """Given an event that the sink may have nothing to write of, then the ones beside it arrive."""
        strange = Event.new("größe", {"text": "ü" * 1000, "nul": "\0", "cls_type": 7})
        known = deliveries(peer, [0, 1])
        sink = peer.config.build()
        sink.open()
        outcome = attempt(sink.write, [known[0], Delivery(strange, encode(strange)), known[1]])
        sink.close()
        assert set(outcome.dead) <= {1}
        assert outcome.left == []
        assert peer.expected(known).items() <= peer.arrived().items()

    def test_the_batch_is_left_as_it_was(self, peer, build):
        batch = deliveries(peer, range(3))
        before = [(event, body, encode(event)) for event, body in batch]
        open_and_write(build(), batch)
        assert [(event, body, encode(event)) for event, body in batch] == before

    def test_without_events_nothing_is_left_or_sent(self, peer):
        sink = peer.config.build()
        assert list(peer.traces()) == []
        sink.open()
        sink.close()
        assert list(peer.traces()) == []


class TestTrouble:
    def test_trouble_is_a_sink_error_that_says_where(self, peer, build):
        peer.fail()
        error = trouble(build(), deliveries(peer, [0]))
        assert peer.place in str(error)
        assert error.retryable
        assert dict(error.rejected) == {}

    def test_after_trouble_the_same_sink_delivers(self, peer):
        sink = peer.config.build()
        batch = deliveries(peer, range(3))
        peer.fail()
        trouble(sink, batch)
        peer.mend()
        open_and_write(sink, batch)
        sink.close()
        assert peer.arrived() == peer.expected(batch)

    def test_closing_after_trouble_is_quiet(self, peer):
        sink = peer.config.build()
        peer.fail()
        trouble(sink, deliveries(peer, [0]))
        sink.close()

    @pytest.mark.parametrize("peer", [name for name, peer in PEERS.items() if peer.refuses], indirect=True)
    def test_a_refused_event_is_told_and_holds_up_no_other(self, peer, build):
        batch = deliveries(peer, range(5))
        peer.refuse(batch[3].event)
        sink = build()
        sink.open()
        outcome = attempt(sink.write, batch)
        assert list(outcome.dead) == [3]
        assert outcome.dead[3]
        assert outcome.left == []
        assert peer.arrived() == peer.expected([*batch[:3], *batch[4:]])


class TestConfig:
    def test_the_name_says_which_sink_it_is(self, peer):
        kind, place = peer.config.name.split()
        assert type(peer) in [made for name, made in PEERS.items() if name.split()[0] == kind]
        assert place

    def test_it_comes_back_from_json_with_the_options_of_all(self, peer):
        config = msgspec.structs.replace(
            peer.config,
            where="level = 'ERROR'",
            batch=Batching(events=10, bytes=2048, age=1.5),
            retry=Retrying(first=0.5, longest=2.0),
        )
        assert msgspec.json.decode(msgspec.json.encode(config), type=AnySinkConfig) == config

    def test_a_key_that_it_does_not_know_is_refused(self, peer):
        config = {**msgspec.to_builtins(peer.config), "unheard_of": 1}
        with pytest.raises(msgspec.ValidationError, match="unheard_of"):
            msgspec.json.decode(msgspec.json.encode(config), type=AnySinkConfig)

    def test_secrets_are_never_shown(self, peer, build):
        sink = build()
        peer.fail()
        error = trouble(sink, deliveries(peer, [0]))
        shown = [repr(peer.config), peer.config.name, msgspec.json.encode(peer.config).decode(), repr(sink), str(error)]
        assert [text for text in shown if SECRET in text] == []

    @pytest.mark.parametrize("peer", [name for name, peer in PEERS.items() if peer.has_secret], indirect=True)
    def test_a_missing_secret_is_said_before_anything_runs(self, peer, monkeypatch):
        monkeypatch.delenv(SECRET_NAME)
        with pytest.raises(ConfigError, match=f"{SECRET_NAME} is not set") as caught:
            peer.config.build()
        assert caught.value.path
