"""What the contract does not ask of the sink of an event service: what becomes of each event of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from balog.event import decode
from balog.log.outputs import open_output
from balog.sinks import Sink, SinkConfig
from balog.sinks.service import ServiceSinkConfig
from tests.stand_ins.batches import numbered, refused
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.service import ServiceStandIn


@pytest.fixture
def service() -> ServiceStandIn:
    return ServiceStandIn()


@pytest.fixture
def server(service: ServiceStandIn) -> Iterator[HttpStandIn]:
    server = HttpStandIn(service).start()
    yield server
    server.stop()


@pytest.fixture
def sink(server: HttpStandIn, opened: Callable[[SinkConfig], Sink]) -> Sink:
    return opened(ServiceSinkConfig(url=server.url))


class TestEachEvent:
    def test_what_is_refused_is_rejected_and_what_has_no_room_comes_again(
        self, service: ServiceStandIn, sink: Sink
    ) -> None:
        batch = numbered(5)
        service.refused[batch[1].event.header.id] = (422, [{"path": "$.payload.n", "reason": "expected text"}])
        service.refused[batch[3].event.header.id] = (429, [])

        error = refused(sink, batch)

        assert (dict(error.rejected), error.remaining) == ({1: "422 $.payload.n: expected text"}, [3])
        assert (error.retryable, error.retry_after) == (True, 2.0)
        assert len(service.events) == 3

    @pytest.mark.parametrize("status", [422, 403])
    def test_a_batch_of_which_nothing_is_taken_says_why_of_each(
        self, service: ServiceStandIn, sink: Sink, status: int
    ) -> None:
        batch = numbered(2)
        for delivery in batch:
            service.refused[delivery.event.header.id] = (status, [{"path": "$", "reason": "no"}])

        error = refused(sink, batch)

        assert dict(error.rejected) == {0: f"{status} $: no", 1: f"{status} $: no"}
        assert not error.retryable


class TestTheOtherSide:
    @pytest.mark.parametrize("body", [b"", b"hello", b"{}", b'{"accepted": "x", "refused": 0}', b"[" * 100_000])
    def test_what_is_no_service_is_told(self, server: HttpStandIn, sink: Sink, body: bytes) -> None:
        server.will(Answer(200, body))

        error = refused(sink, numbered(1))

        assert "does not answer as an event service does" in str(error)
        assert error.retryable

    @pytest.mark.parametrize("index", [None, -1, 7])
    def test_an_item_of_no_place_is_no_answer(self, server: HttpStandIn, sink: Sink, index: int | None) -> None:
        place = b"null" if index is None else str(index).encode()
        server.will(Answer(200, b'{"accepted":0,"refused":1,"items":[{"status":422,"index":%b}]}' % place))

        error = refused(sink, numbered(2))

        assert (error.remaining, dict(error.rejected), error.retryable) == (None, {}, True)


class TestTheLoggersOutput:
    def test_events_wait_on_disk_while_the_service_is_away(
        self, service: ServiceStandIn, server: HttpStandIn, tmp_path: Path
    ) -> None:
        """Given a service that is down, when the program ends, then a later one sends what it logged."""
        server.stop()
        first = numbered(3)
        output = open_output(f"{server.url}?spool={tmp_path}/spool")
        for delivery in first:
            output.write("INFO", delivery.body)
        assert output.flush(0.3) == 0
        assert service.events == {}

        server.start()
        later = numbered(1)
        output = open_output(f"{server.url}?spool={tmp_path}/spool")
        output.write("INFO", later[0].body)
        output.flush(10.0)

        assert {decode(body).header.id for body in service.events.values()} == {
            delivery.event.header.id for delivery in (*first, *later)
        }
