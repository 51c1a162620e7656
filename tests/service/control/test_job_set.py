"""Versions that come while events do: nothing is lost, nothing is there twice, and nothing goes astray."""

import threading
from contextlib import contextmanager

from balog.event import decode


def filters(where):
    return {"filters": [{"name": "big", "sources": ["orders"], "to": "big", "where": where}]}


@contextmanager
def sending(controlled, sent):
    """Send ten orders again and again, until the end of the block."""
    over = threading.Event()

    def send():
        while not over.is_set():
            controlled.send_orders(10)
            sent.append(10)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def ids(controlled, topic):
    return [decode(message.body).header.id for message in controlled.topics.topic(topic).peek(100_000)]


def test_a_filter_that_is_changed_again_and_again_takes_each_event_once(controlled, api, until):
    stream = {"streams": [{"name": "orders", "types": ["order"]}]}
    sent: list[int] = []
    assert api("POST", "/v1/config", stream | filters("payload.n >= 0"))[1]["applied"]["number"] == 1
    with sending(controlled, sent):
        for number in range(2, 8):
            document = stream | filters(f"payload.n > {-number}")
            assert api("POST", "/v1/config", document)[1]["applied"]["number"] == number
    until(lambda: controlled.topics.topic("big").exists() and len(ids(controlled, "big")) == sum(sent))

    assert sorted(ids(controlled, "big")) == sorted(ids(controlled, "orders"))
    assert len(set(ids(controlled, "big"))) == sum(sent)
    assert [job.state for job in controlled.jobs] == ["running"]


def test_streams_are_switched_between_two_requests(controlled, api):
    """Given a switch under load, then the ten of a request are in one topic, and all are somewhere."""
    sent: list[int] = []
    with sending(controlled, sent):
        for number in range(1, 21):
            document = {"streams": [{"name": "orders", "types": ["order"], "topic": f"t{number % 2}"}]}
            assert api("POST", "/v1/config", document)[1]["applied"]["number"] == number
    found = {name: ids(controlled, name) for name in controlled.topics.names()}

    assert sum(map(len, found.values())) == sum(sent)
    assert len({id for some in found.values() for id in some}) == sum(sent)
    assert {"t0", "t1"} <= found.keys() <= {"t0", "t1", "order"}
    assert all(len(some) % 10 == 0 for some in found.values())
