"""`balog serve` killed under load, its topics away and back: each event that a client was told is durable is there."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
import urllib3

from balog.event import Event, encode
from balog.service.intake.fallback import open_fallback
from balog.topics import open_topics
from tests.waiting import wait_for

pytest.importorskip("uvicorn")

KILLS = 3


@pytest.fixture
def config(tmp_path: Path) -> Path:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    path = tmp_path / "serve.json"
    document = {
        "topics": f"local:{tmp_path}/topics",
        "fallback": f"local:{tmp_path}/fallback",
        "listen": f"127.0.0.1:{port}",
        "unknown_types": "accept",
    }
    path.write_bytes(msgspec.json.encode(document))
    return path


def url_of(config: Path) -> str:
    return f"http://{msgspec.json.decode(config.read_bytes())['listen']}"


@contextmanager
def serving(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (config.parent / "said").open("ab") as said:
        command = [sys.executable, "-m", "balog", "serve", "--config", str(config)]
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None, (config.parent / "said").read_text()
            assert time.monotonic() < end
            with suppress(urllib3.exceptions.HTTPError):
                if urllib3.request("GET", f"{url_of(config)}/ready", retries=False, timeout=5).status == 200:
                    break
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait(20)


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


def test_killed_under_load_with_topics_and_without_every_acked_event_is_there_once(
    config: Path, tmp_path: Path
) -> None:
    topics = tmp_path / "topics"
    acked: set[str] = set()
    for number in range(KILLS):
        with serving(config) as process:
            clients = Clients(url_of(config))
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
    with serving(config) as process:
        wait_until_drained(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    found = stored(tmp_path)
    assert acked <= set(found)
    assert len(found) == len(set(found))


def test_a_stop_under_load_loses_nothing_and_acks_what_it_took(config: Path, tmp_path: Path) -> None:
    with serving(config) as process:
        clients = Clients(url_of(config))
        try:
            clients.wait_for(200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            clients.stop()
    found = stored(tmp_path)
    assert clients.acked <= set(found)
    assert len(found) == len(set(found))
