"""The client, at a stand-in that answers what a service seldom does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from balog.common.errors import ConfigError
from balog.event import Event
from balog.service import DeliveryError, ServiceClient
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.stand_ins.service import ServiceStandIn

ORDER = {"cls_type": "order", "version": "1.0.0", "price": 1}

# In a process of its own: a lock that another thread of this one holds just then, as on an import, would stay held.
FORKS = """
import os, sys
from balog.service import ServiceClient

order = {"cls_type": "order", "version": "1.0.0"}
with ServiceClient(sys.argv[1]) as client:
    assert client.send([order])[0].status == 202
    if (child := os.fork()) == 0:
        code = 1
        try:
            acks = client.send([order, order])
            client.close()
            code = [ack.status for ack in acks] != [202, 202]
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.send([order])[0].status == 202
"""


@pytest.fixture
def service():
    return ServiceStandIn()


@pytest.fixture
def server(service):
    with HttpStandIn(service) as server:
        yield server


@pytest.fixture
def client(server):
    with ServiceClient(server.url) as client:
        yield client


class TestSend:
    def test_each_event_has_its_answer_in_its_place(self, client, service):
        events = [Event.new("a", {"cls_type": "x", "n": number}) for number in range(3)]
        service.refused[events[1].header.id] = (422, [{"path": "$.payload.n", "reason": "expected text"}])

        acks = client.send(events)

        assert [(ack.status, ack.index) for ack in acks] == [(202, 0), (422, 1), (202, 2)]
        assert acks[0].store == "topics"
        assert acks[1].problems[0].path == "$.payload.n"

    def test_a_payload_becomes_an_event_of_its_type(self, client, service):
        [ack] = client.send([ORDER])

        assert b'"channel":"order"' in service.events[ack.id]

    def test_a_payload_without_a_type_is_refused_here(self, client):
        with pytest.raises(ConfigError, match="cls_type"):
            client.send([{"price": 1}])

    def test_nothing_is_nothing(self, client, server):
        assert client.send([]) == []
        assert server.requests == []

    @pytest.mark.parametrize("trouble", [Answer(503), Answer(trouble="reset"), Answer(trouble="half", body=b"x" * 99)])
    def test_what_finds_no_service_is_sent_again_with_the_same_ids(self, client, service, server, trouble):
        server.will(trouble)

        acks = client.send([ORDER, ORDER])

        assert [ack.status for ack in acks] == [202, 202]
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body

    def test_what_has_no_room_is_sent_again_alone(self, client, service, server):
        events = [Event.new("a", ORDER) for _ in range(3)]
        service.refused[events[1].header.id] = (429, [])

        threading.Timer(0.5, service.refused.clear).start()
        acks = client.send(events)

        assert [ack.status for ack in acks] == [202, 202, 202]
        assert events[1].header.id.encode() in server.requests[1].body
        assert events[0].header.id.encode() not in server.requests[1].body

    def test_in_the_end_it_says_what_is_not_known(self, server, client):
        server.stop()
        events = [Event.new("a", ORDER) for _ in range(2)]

        with pytest.raises(DeliveryError, match=r"2 of 2 events not acked in 0\.2 seconds: .*cannot connect") as caught:
            client.send(events, timeout=0.2)

        assert caught.value.unsent == events
        assert caught.value.acks == {}

    def test_a_request_that_is_refused_whole_is_not_sent_again(self, server, client):
        server.will(Answer(400, b'{"problem": "not JSON"}'))

        with pytest.raises(DeliveryError, match="400") as caught:
            client.send([ORDER])

        assert len(server.requests) == 1
        assert not caught.value.retryable

    def test_after_a_fork_the_child_sends_for_itself(self, server, service):
        done = subprocess.run([sys.executable, "-c", FORKS, server.url], capture_output=True, text=True, timeout=60)

        assert (done.returncode, done.stderr) == (0, "")
        assert len(service.events) == 4

    def test_a_service_that_hangs_takes_no_more_than_the_time(self, server, client):
        server.will(Answer(trouble="hang"))
        begin = time.monotonic()

        with pytest.raises(DeliveryError, match="no answer in time") as caught:
            client.send([ORDER], timeout=0.3)

        assert time.monotonic() - begin < 5
        assert caught.value.retryable

    def test_more_than_fits_in_a_request_goes_in_several(self, client, server):
        acks = client.send([ORDER] * 2500)

        assert [ack.status for ack in acks] == [202] * 2500
        assert [request.body.count(b"\n") for request in server.requests] == [1000, 1000, 500]

    def test_an_event_that_is_too_large_alone_is_refused_alone(self, client, service, server):
        large = {**ORDER, "note": "x" * 5000}

        def respond(request: Request) -> Answer:
            return Answer(413) if len(request.body) > 4000 else service(request)

        server.respond = respond
        acks = client.send([ORDER, large, ORDER])

        assert [ack.status for ack in acks] == [202, 413, 202]

    def test_a_service_that_tells_too_little_is_none(self, server, client):
        server.respond = lambda request: Answer(202, b'{"accepted": 1, "refused": 0, "items": []}')

        with pytest.raises(DeliveryError, match="does not answer as an event service does"):
            client.send([ORDER], timeout=0.1)
