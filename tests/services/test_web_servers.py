"""The applications of the pages on Flask and FastAPI under gunicorn and uvicorn: no event is lost or doubled."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.services.hosts import (
    contexts,
    file_events,
    get,
    is_up,
    logged,
    on_channel,
    running,
    write_page_files,
)
from tests.services.servers.process import free_port
from tests.waiting import wait_for

PYTHON = sys.executable
BURST = """
@app.get("/burst/{count}")
async def burst(count: int):
    for number in range(count):
        log.info("burst", payload={"n": number})
"""


@contextmanager
def serving(folder: Path, port: int, command: list[str], **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server, from when it answers until it has ended by SIGTERM."""
    with running(folder, *command, **more) as server:
        wait_for(lambda: is_up(port))
        yield server
        server.terminate()
        server.wait(30)


def ask_many(port: int, count: int) -> dict[int, str]:
    """Ask for orders by four threads. Return the request id of each."""
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda number: get(port, f"/orders/{number}")[2], range(count))
        return dict(enumerate(answers))


def check(folder: Path, ids: dict[int, str]) -> None:
    """Check that each request has its event and its own context, once."""
    events = logged(folder)
    orders = [event for event in events if "number" in event.payload]
    assert {event.payload["number"]: event.header.context["request_id"] for event in orders} == ids
    assert len(orders) == len(ids)
    requests = [event for event in on_channel(events, "http.request") if "/orders/" in event.payload["message"]]
    assert sorted(contexts(requests, "request_id")) == sorted(ids.values())


class TestGunicorn:
    def command(self, port: int, *options: str) -> list[str]:
        return [PYTHON, "-m", "gunicorn", "shop:app", "--bind", f"127.0.0.1:{port}", *options]

    @pytest.mark.parametrize("is_preloaded", [True, False])
    def test_recycled_workers_deliver_everything_once(self, tmp_path: Path, is_preloaded: bool) -> None:
        write_page_files("log-in-flask.md", tmp_path, "shop.py", "gunicorn.conf.py")
        if not is_preloaded:
            settings = tmp_path / "gunicorn.conf.py"
            settings.write_text(settings.read_text().replace("preload_app = True", "preload_app = False"))
        port = free_port()
        with serving(tmp_path, port, self.command(port, "--max-requests=12", "--max-requests-jitter=3")) as server:
            ids = ask_many(port, 60)
        assert server.returncode == 0
        check(tmp_path, ids)
        found = file_events(tmp_path)
        processes, runs = set(contexts(found, "process")), set(contexts(found, "run_id"))
        assert len(processes) > 2
        assert server.pid not in processes
        assert len(runs) == (1 if is_preloaded else len(processes))

    def test_a_worker_that_times_out_delivers_what_it_logged(self, tmp_path: Path) -> None:
        write_page_files("log-in-flask.md", tmp_path, "shop.py", "gunicorn.conf.py")
        port = free_port()
        with serving(tmp_path, port, self.command(port, "--timeout=1")) as server:
            with pytest.raises((OSError, http.client.HTTPException)):
                get(port, "/wait/60.0")
        assert server.returncode == 0
        waiting, request = logged(tmp_path)
        assert (waiting.header.channel, request.header.level) == ("shop.waiting", "ERROR")
        assert request.payload["exception"]["type"] == "SystemExit"


class TestUvicorn:
    def command(self, port: int, *options: str) -> list[str]:
        return [PYTHON, "-m", "uvicorn", "api:app", "--port", str(port), *options]

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_workers_deliver_everything_once_before_they_end(self, tmp_path: Path, workers: str) -> None:
        write_page_files("log-in-fastapi.md", tmp_path, "api.py")
        port = free_port()
        command = self.command(port, "--workers", workers)
        with serving(tmp_path, port, command, BALOG_RUN_ID="deploy-7") as server:
            ids = ask_many(port, 60)
        check(tmp_path, ids)
        found = file_events(tmp_path)
        assert set(contexts(found, "run_id")) == {"deploy-7"}
        assert (server.pid in contexts(found, "process")) is (workers == "1")

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_a_long_queue_is_delivered_before_the_signal_ends_the_server(self, tmp_path: Path, workers: str) -> None:
        write_page_files("log-in-fastapi.md", tmp_path, "api.py")
        with (tmp_path / "api.py").open("a") as program:
            program.write(BURST)
        port = free_port()
        with serving(tmp_path, port, self.command(port, "--workers", workers)):
            get(port, "/burst/1000")
        assert len(on_channel(logged(tmp_path), "api.burst")) == 1000

    def test_a_worker_that_ends_is_replaced_and_loses_nothing(self, tmp_path: Path) -> None:
        write_page_files("log-in-fastapi.md", tmp_path, "api.py")
        port = free_port()
        with serving(tmp_path, port, self.command(port, "--workers", "2", "--limit-max-requests", "20")):
            ids: dict[int, str] = {}

            def is_replaced() -> bool:
                with suppress(OSError):  # between two workers
                    number = len(ids)
                    ids[number] = get(port, f"/orders/{number}")[2]
                return len(set(contexts(file_events(tmp_path), "process"))) >= 3

            wait_for(is_replaced)
        check(tmp_path, ids)

    def test_a_reload_delivers_what_the_old_code_logged(self, tmp_path: Path) -> None:
        write_page_files("log-in-fastapi.md", tmp_path, "api.py")
        port, program = free_port(), tmp_path / "api.py"
        with serving(tmp_path, port, self.command(port, "--reload", "--reload-delay=0.1")):
            before = {number: get(port, f"/orders/{number}")[2] for number in range(5)}
            program.write_text(program.read_text().replace('"order"', '"ordered"'))
            os.utime(program, (2**31 - 1, 2**31 - 1))
            after: dict[int, str] = {}

            def is_reloaded() -> bool:
                try:
                    number = 5 + len(after)
                    after[number] = get(port, f"/orders/{number}")[2]
                except OSError:
                    return False
                return bool(on_channel(file_events(tmp_path), "api.ordered"))

            wait_for(is_reloaded)
        check(tmp_path, before | after)
        assert len(set(contexts(file_events(tmp_path), "process"))) == 2


@pytest.mark.parametrize(
    ("page", "files", "server", "name"),
    [
        ("log-in-flask.md", ("shop.py", "gunicorn.conf.py"), TestGunicorn(), "shop"),
        ("log-in-fastapi.md", ("api.py",), TestUvicorn(), "api"),
    ],
    ids=["gunicorn", "uvicorn"],
)
def test_a_stop_waits_for_the_request_in_flight_and_delivers_its_events(
    tmp_path: Path, page: str, files: tuple[str, ...], server: TestGunicorn | TestUvicorn, name: str
) -> None:
    write_page_files(page, tmp_path, *files)
    port = free_port()
    with running(tmp_path, *server.command(port)) as process:
        wait_for(lambda: is_up(port))
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(get, port, "/wait/1.0")
            wait_for(lambda: on_channel(file_events(tmp_path), f"{name}.waiting"))
            process.terminate()
            assert answer.result()[0] == 200
        assert process.wait(30) in (0, -signal.SIGTERM)
    events = logged(tmp_path)
    assert [event.header.channel for event in events] == [f"{name}.waiting", "http.request"]
    assert events[1].payload["fields"]["seconds"] >= 1
