"""The contract of a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar

import msgspec
import pytest

from balog.common.errors import ConfigError
from balog.delivery.attempt import attempt
from balog.event import Event, encode
from balog.sinks import Delivery, Sink, SinkConfig, SinkError
from balog.testing.contracts.abilities import AbilityTests, needs

SECRET_NAME = "BALOG_TEST_SECRET"
"""The environment variable with the secret; a config that can have one has ``Secret(env=SECRET_NAME)``."""

SECRET = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"


class SinkPeer:
    """The other side of a sink: the server or the file that it writes to.

    Attributes:
        config: the config of the sink.
        place: a text that an error must contain when the peer is down, such as host and port.
    """

    config: SinkConfig
    place: str

    def event(self, number: int, **changes: Any) -> Event:
        """Return an event that the sink writes; a different one for each number."""
        return Event.new("a.b", {"cls_type": "x", "n": number}, **changes)

    def expected(self, batch: Sequence[Delivery]) -> Mapping[str, Any]:
        """Return what must arrive for a batch, by the id of the event or by another key of the peer."""
        return {event.header.id: body for event, body in batch}

    def arrived(self) -> Mapping[str, Any]:
        """Return everything that arrived, in the form of ``expected``. Fail for an event that arrived twice."""
        raise NotImplementedError

    def traces(self) -> Sequence[object]:
        """Return everything that reached the peer: files, requests, datagrams."""
        raise NotImplementedError

    def fail(self) -> None:
        """Make the peer unavailable."""
        raise NotImplementedError

    def mend(self) -> None:
        """Make the peer available again."""
        raise NotImplementedError

    def refuse(self, event: Event) -> None:
        """Make the peer reject this event whenever it is sent, and accept all others."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop what was started."""


class SinkContract(AbilityTests):
    """Tests that every sink passes.

    Inherit it in a test module, and define the fixture ``peer``, which yields a :class:`SinkPeer`.

    Attributes:
        refuses: whether the peer can reject a single event for good (``SinkPeer.refuse``).
        has_secret: whether the config contains ``Secret(env=SECRET_NAME)``.
    """

    refuses: ClassVar[bool] = False
    has_secret: ClassVar[bool] = False

    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the secret, and remove proxies."""
        monkeypatch.setenv(SECRET_NAME, SECRET)
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)

    @pytest.fixture
    def build(self, peer: SinkPeer) -> Iterator[Callable[[], Sink]]:
        """A function that builds sinks of the peer's config; they are closed at the end of the test."""
        sinks: list[Sink] = []

        def build() -> Sink:
            sinks.append(peer.config.build())
            return sinks[-1]

        yield build
        for sink in sinks:
            sink.close()

    # -- delivery

    def test_every_event_arrives(self, peer: SinkPeer) -> None:
        batches = [_deliveries(peer, range(3)), _deliveries(peer, range(3, 503)), _deliveries(peer, [503])]
        _deliver(peer.config.build(), *batches)
        assert peer.arrived() == peer.expected([delivery for batch in batches for delivery in batch])

    def test_unusual_events_arrive(self, peer: SinkPeer) -> None:
        """Given huge, non-ASCII, ancient and future events, then each arrives."""
        batch = [
            *_deliveries(peer, [0], timestamp=datetime(1999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)),
            *_deliveries(peer, [1], timestamp=datetime(2999, 1, 1, tzinfo=timezone.utc)),
            *_deliveries(peer, [2], context={"fqdn": "größe", "text": "ü" * 500_000, "nul": "\0", "deep": {"a": [1]}}),
        ]
        _deliver(peer.config.build(), batch)
        assert peer.arrived() == peer.expected(batch)

    def test_any_event_is_written_or_rejected_alone(self, peer: SinkPeer) -> None:
        """Given an event of which the sink may write nothing, then the events beside it arrive."""
        unusual = Event.new("größe", {"text": "ü" * 1000, "nul": "\0", "cls_type": 7})
        known = _deliveries(peer, [0, 1])
        sink = peer.config.build()
        sink.open()
        outcome = attempt(sink.write, [known[0], Delivery(unusual, encode(unusual)), known[1]])
        sink.close()
        assert set(outcome.dead) <= {1}
        assert outcome.left == []
        assert peer.expected(known).items() <= peer.arrived().items()

    def test_the_batch_is_not_changed(self, peer: SinkPeer, build: Callable[[], Sink]) -> None:
        batch = _deliveries(peer, range(3))
        before = [(event, body, encode(event)) for event, body in batch]
        _open_and_write(build(), batch)
        assert [(event, body, encode(event)) for event, body in batch] == before

    def test_without_events_nothing_is_written(self, peer: SinkPeer) -> None:
        sink = peer.config.build()
        assert list(peer.traces()) == []
        _deliver(sink)
        assert list(peer.traces()) == []

    # -- errors

    def test_a_failure_is_a_sink_error_that_names_the_place(self, peer: SinkPeer, build: Callable[[], Sink]) -> None:
        peer.fail()
        error = _failure(build(), _deliveries(peer, [0]))
        assert peer.place in str(error)
        assert error.retryable
        assert dict(error.rejected) == {}

    def test_a_failure_leaves_every_event(self, peer: SinkPeer, build: Callable[[], Sink]) -> None:
        """Given a peer that is down, then the sink claims of no event that it was taken or refused."""
        sink = build()
        peer.fail()
        outcome = attempt(lambda batch: _open_and_write(sink, batch), _deliveries(peer, range(3)))
        assert (outcome.taken, outcome.dead, outcome.left, outcome.unnamed) == (0, {}, [0, 1, 2], 0)

    def test_after_a_failure_the_same_sink_delivers(self, peer: SinkPeer) -> None:
        sink = peer.config.build()
        batch = _deliveries(peer, range(3))
        peer.fail()
        _failure(sink, batch)
        peer.mend()
        _deliver(sink, batch)
        assert peer.arrived() == peer.expected(batch)

    def test_closing_after_a_failure_does_not_raise(self, peer: SinkPeer) -> None:
        sink = peer.config.build()
        peer.fail()
        _failure(sink, _deliveries(peer, [0]))
        sink.close()

    @needs("refuses")
    def test_a_rejected_event_is_reported_and_blocks_no_other(self, peer: SinkPeer, build: Callable[[], Sink]) -> None:
        batch = _deliveries(peer, range(5))
        peer.refuse(batch[3].event)
        sink = build()
        sink.open()
        outcome = attempt(sink.write, batch)
        assert list(outcome.dead) == [3]
        assert outcome.dead[3]
        assert outcome.left == []
        assert peer.arrived() == peer.expected([*batch[:3], *batch[4:]])

    # -- config

    def test_the_name_begins_with_the_type(self, peer: SinkPeer) -> None:
        config: Any = peer.config
        kind, *target = config.name.split()
        assert kind == config.__struct_config__.tag
        assert len(target) <= 1

    def test_an_unknown_key_is_rejected(self, peer: SinkPeer) -> None:
        config = {**msgspec.to_builtins(peer.config), "unheard_of": 1}
        with pytest.raises(msgspec.ValidationError, match="unheard_of"):
            msgspec.json.decode(msgspec.json.encode(config), type=type(peer.config))

    def test_secrets_are_never_shown(self, peer: SinkPeer, build: Callable[[], Sink]) -> None:
        sink = build()
        peer.fail()
        error = _failure(sink, _deliveries(peer, [0]))
        shown = [repr(peer.config), peer.config.name, msgspec.json.encode(peer.config).decode(), repr(sink), str(error)]
        assert [text for text in shown if SECRET in text] == []

    @needs("has_secret")
    def test_a_missing_secret_is_an_error_of_the_config(self, peer: SinkPeer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(SECRET_NAME)
        with pytest.raises(ConfigError, match=f"{SECRET_NAME} is not set") as caught:
            peer.config.build()
        assert caught.value.path


def _deliveries(peer: SinkPeer, numbers: Iterable[int], **changes: Any) -> list[Delivery]:
    events = [peer.event(number, **changes) for number in numbers]
    return [Delivery(event, encode(event)) for event in events]


def _open_and_write(sink: Sink, batch: Sequence[Delivery]) -> None:
    sink.open()
    sink.write(batch)


def _deliver(sink: Sink, *batches: Sequence[Delivery]) -> None:
    sink.open()
    for batch in batches:
        sink.write(batch)
    sink.close()


def _failure(sink: Sink, batch: list[Delivery]) -> SinkError:
    with pytest.raises(SinkError) as caught:
        _open_and_write(sink, batch)
    error = caught.value
    indexes = set(range(len(batch)))
    assert set(error.rejected) <= indexes
    assert set(error.remaining or ()) <= indexes - set(error.rejected)
    assert "\n" not in str(error)
    return error
