"""`balog serve` killed under load, its topics away and back: each event that a client was told is durable is there."""

import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import urllib3

from balog.event import Event, encode
from balog.service.intake.fallback import open_fallback
from balog.topics import open_topics
from tests.service.serving import serving_alone
from tests.waiting import wait_for

pytest.importorskip("uvicorn")

KILLS = 3


CONFIG = {"fallback": "local:fallback", "unknown_types": "accept"}


class Clients:
    """Threads that send until they are stopped, or nobody answers; ``acked`` has what they were told is durable."""

    def __init__(self, url: str, count: int = 4) -> None:
        self.acked: set[str] = set()
        self._url = url
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        size = 1 if number == 0 else 20
        with urllib3.PoolManager(retries=False) as pool, suppress(urllib3.exceptions.HTTPError):
            while not self._over.is_set():
                events = [Event.new("tests", {"cls_type": f"type{number}", "version": "1.0.0"}) for _ in range(size)]
                body = b"\n".join(encode(event) for event in events)
                answer = pool.request(
                    "POST",
                    f"{self._url}/v1/events",
                    body=body,
                    headers={"Content-Type": "application/x-ndjson"},
                    timeout=30,
                )
                items = answer.json().get("items", [])
                self.acked |= {event.header.id for event, item in zip(events, items) if item["status"] == 202}

    def wait_for(self, count: int) -> None:
        wait_for(lambda: len(self.acked) >= count)

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)


def take_away(topics: Path) -> None:
    """Put a file where the topics' folder was."""
    topics.rename(topics.with_name("aside"))
    topics.write_text("")


def give_back(topics: Path) -> None:
    topics.unlink()
    topics.with_name("aside").rename(topics)


def stored(folder: Path) -> list[str]:
    with open_topics(f"local:{folder}/topics") as home:
        return [one.id for name in home.names() for one in home.topic(name).peek(1_000_000)]


def wait_until_drained(folder: Path) -> None:
    fallback = open_fallback(f"local:{folder}/fallback", "")
    wait_for(lambda: not fallback.waiting())
    fallback.close()


def test_killed_under_load_with_topics_and_without_every_acked_event_is_there_once(tmp_path: Path) -> None:
    topics = tmp_path / "topics"
    acked: set[str] = set()
    for number in range(KILLS):
        with serving_alone(tmp_path, **CONFIG) as (process, url):
            clients = Clients(url)
            try:
                clients.wait_for(200)
                if number == 1:
                    take_away(topics)  # under load, and still away at the next start
                    clients.wait_for(len(clients.acked) + 200)
                process.kill()
                assert process.wait(20) == -signal.SIGKILL
            finally:
                clients.stop()
        acked |= clients.acked
        if number == 2:
            give_back(topics)
    with serving_alone(tmp_path, **CONFIG) as (process, _):
        wait_until_drained(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    found = stored(tmp_path)
    assert acked <= set(found)
    assert len(found) == len(set(found))


def test_a_stop_under_load_loses_nothing_and_acks_what_it_took(tmp_path: Path) -> None:
    with serving_alone(tmp_path, **CONFIG) as (process, url):
        clients = Clients(url)
        try:
            clients.wait_for(200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            clients.stop()
    found = stored(tmp_path)
    assert clients.acked <= set(found)
    assert len(found) == len(set(found))
