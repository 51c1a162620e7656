"""An engine is watched over HTTP: what is wrong with it is said."""

import http.client
import json
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from balog.common.errors import BalogError, ConfigError
from balog.consumers import Consumer, ConsumerHub, Engine
from balog.consumers.monitoring.health import HealthServer
from balog.consumers.stats import EngineState, EngineStats
from balog.topics.local import LocalTopics
from tests.consumers.runs import Blocking


@pytest.fixture
def watch() -> Iterator[HealthServer]:
    with HealthServer("127.0.0.1:0") as watch:
        yield watch


def get(watch: HealthServer, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def look(watch: HealthServer, path: str) -> tuple[int, list[str]]:
    status, body = get(watch, path)
    return status, json.loads(body)["problems"]


def engine(topics: object = None, **state: object) -> SimpleNamespace:
    found = EngineState(**{"running": True, "alive": time.monotonic(), **state})
    return SimpleNamespace(topics=topics, group="g", consumers=[], counts=EngineStats(), state=found)


class TestPages:
    def test_before_the_engine_runs_it_lives_and_is_not_ready(self, watch: HealthServer) -> None:
        assert look(watch, "/health") == (200, [])
        assert look(watch, "/ready") == (503, ["the engine is not running"])
        assert get(watch, "/metrics")[0] == 200

    def test_a_running_engine_is_well(self, watch: HealthServer) -> None:
        watch.started(engine(in_flight=3))
        assert look(watch, "/health") == look(watch, "/ready") == (200, [])
        assert json.loads(get(watch, "/ready")[1])["in_flight"] == 3

    @pytest.mark.parametrize(
        ("state", "health", "ready", "problem"),
        [
            ({"draining": True}, 200, 503, "the engine stops"),
            (
                {"errors": {"orders": "topic orders: out of reach", "other": ""}},
                200,
                503,
                "topic orders: out of reach",
            ),
            ({"hung": 2, "hung_limit": 2}, 200, 503, "2 handlers took longer"),
            ({"hung": 1, "hung_limit": 2}, 200, 200, ""),
            ({"alive": time.monotonic() - 3600}, 503, 503, "main loop has not turned"),
            ({"running": False}, 200, 503, "not running"),
        ],
    )
    def test_what_is_wrong_shows(self, watch: HealthServer, state: dict, health: int, ready: int, problem: str) -> None:
        watch.started(engine(**state))
        assert look(watch, "/health")[0] == health
        status, problems = look(watch, "/ready")
        assert status == ready
        assert len(problems) == (1 if problem else 0)
        assert problem in "".join(problems)

    def test_an_engine_that_ended_is_dead_until_it_runs_again(self, watch: HealthServer) -> None:
        watch.started(engine())
        watch.stopped(engine())
        assert look(watch, "/health") == (503, ["the engine has ended"])
        watch.started(engine())
        assert look(watch, "/health") == (200, [])

    def test_another_page_names_those_that_there_are(self, watch: HealthServer) -> None:
        status, body = get(watch, "/secret")
        assert status == 404
        assert "/metrics /health /ready" in body

    def test_a_page_that_fails_says_so_and_the_server_goes_on(self, watch: HealthServer) -> None:
        watch.started(SimpleNamespace())
        assert get(watch, "/ready")[0] == 500
        watch.started(engine())
        assert get(watch, "/ready")[0] == 200


class TestAddress:
    @pytest.mark.parametrize(
        "listen",
        ["", "9464", "host:", "host:http", "host:65536", "host:-1", "::1:80", "unix:here", "host:1²"],
    )
    def test_what_is_no_address_is_refused(self, listen: str) -> None:
        with pytest.raises(ConfigError, match="cannot listen at"):
            HealthServer(listen)

    def test_without_a_host_it_is_loopback(self) -> None:
        with HealthServer(":0") as watch:
            assert watch._server.server_address[0] == "127.0.0.1"

    def test_an_address_that_is_taken_is_one_line(self, watch: HealthServer) -> None:
        with pytest.raises(BalogError, match=f"cannot listen at 127.0.0.1:{watch.port}: "):
            HealthServer(f"127.0.0.1:{watch.port}").open()

    def test_a_closed_one_listens_no_more(self) -> None:
        watch = HealthServer("127.0.0.1:0")
        watch.open()
        port = watch.port
        watch.close()
        watch.close()
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
            pass


def test_an_engine_at_work_is_seen(home: LocalTopics, publish: Callable[..., list[str]], watch: HealthServer) -> None:
    publish({"n": 1}, {"n": 2}, {"n": 3})
    hub = ConsumerHub()
    handle = Blocking()
    hub.add(Consumer(handle, "orders", name="slow"))
    made = Engine(hub, home, hooks=watch.hooks)
    running = threading.Thread(target=made.run, args=(True,))
    running.start()
    assert handle.begun.wait(30)
    assert look(watch, "/health") == look(watch, "/ready") == (200, [])
    assert "balog_consumer_calls 1.0" in get(watch, "/metrics")[1]
    handle.released.set()
    running.join(30)
    assert 'balog_consumer_succeeded_total{consumer="slow",topic="orders"} 3.0' in get(watch, "/metrics")[1]
    assert look(watch, "/ready") == (503, ["the engine is not running"])


class TestServer:
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_child_does_not_keep_the_port(self) -> None:
        read, write = os.pipe()
        with HealthServer("127.0.0.1:0") as watch:
            port = watch.port
            child = os.fork()
            if child == 0:
                os.close(write)
                os.read(read, 1)
                os._exit(0)
            assert get(watch, "/health")[0] == 200
        try:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5).close()
        finally:
            os.close(write)
            os.waitpid(child, 0)
            os.close(read)

    def test_it_answers_again_after_threads_were_not_to_be_had(
        self, watch: HealthServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(socketserver.ThreadingMixIn, "process_request", refuse)
            for _ in range(20):
                with pytest.raises((http.client.HTTPException, OSError)):
                    get(watch, "/health")
        assert get(watch, "/health")[0] == 200
