"""The programs of ``docs/where-it-runs.md`` in their real hosts: no event is lost or doubled; contexts are right."""

import signal
import sys

import pytest

from balog.event import Event
from tests.services.hosts import (
    contexts,
    file_events,
    logged,
    on_channel,
    run_in,
    running,
    wait_until,
    write_page_files,
)

PAGE = "where-it-runs.md"
PYTHON = sys.executable


def numbers(events: list[Event]) -> list[int]:
    return sorted(event.payload["number"] for event in events)


@pytest.fixture(scope="module", params=["fork", "spawn", "forkserver"])
def pooled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """The events of the page's pools and processes, by one way to start them."""
    folder = tmp_path_factory.mktemp(request.param)
    write_page_files(PAGE, folder, "pool.py")
    run_in(folder, PYTHON, "pool.py", request.param)
    return logged(folder)


class TestProcesses:
    def test_pools_and_processes_lose_nothing(self, pooled: list[Event]) -> None:
        worked = on_channel(pooled, "pool.worked")
        assert numbers(worked) == list(range(41))
        assert contexts(worked, "task") == [event.payload["number"] for event in worked]

    def test_each_process_states_itself_and_the_run_of_all(self, pooled: list[Event]) -> None:
        (parent,) = on_channel(pooled, "pool.started")
        children = set(contexts(on_channel(pooled, "pool.worked"), "process"))
        assert parent.header.context["process"] not in children
        assert len(children) >= 4
        assert len(set(contexts(pooled, "run_id"))) == 1
        assert set(contexts(pooled, "application")) == {"pool"}


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Event]]:
    """The process id of a Celery worker whose children are recycled, and the events of its tasks."""
    folder = tmp_path_factory.mktemp("celery")
    write_page_files(PAGE, folder, "tasks.py", "celeryconfig.py")
    for name in ("queue", "control"):
        (folder / name).mkdir()
    run_in(folder, PYTHON, "-c", "import tasks\nfor n in range(24): tasks.count.delay(n)\ntasks.try_twice.delay(24)")
    with running(folder, PYTHON, "-m", "celery", "--app", "tasks", "worker", "--loglevel=INFO") as server:
        wait_until(lambda: len(on_channel(file_events(folder), "tasks.counted")) == 24)
        wait_until(lambda: len(on_channel(file_events(folder), "tasks.tried")) == 2)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    return server.pid, logged(folder)


class TestCelery:
    def test_recycled_workers_lose_no_event(self, celery: tuple[int, list[Event]]) -> None:
        server, events = celery
        counted = on_channel(events, "tasks.counted")
        assert numbers(counted) == list(range(24))
        processes = contexts(counted, "process")
        assert len(set(processes)) >= 4
        assert all(processes.count(process) <= 5 for process in processes)
        assert server not in processes
        assert len(set(contexts(events, "run_id"))) == 1

    def test_the_context_of_a_task_is_its_own(self, celery: tuple[int, list[Event]]) -> None:
        _, events = celery
        counted, tried = on_channel(events, "tasks.counted"), on_channel(events, "tasks.tried")
        assert set(contexts(counted, "task")) == {"tasks.count"}
        assert contexts(tried, "task") == ["tasks.try_twice"] * 2
        assert contexts(tried, "retries") == [0, 1]
        assert len(set(contexts(counted, "task_id"))) == 24
        assert len(set(contexts(tried, "task_id"))) == 1

    def test_celerys_own_lines_are_events(self, celery: tuple[int, list[Event]]) -> None:
        _, events = celery
        lines = [event for event in on_channel(events, "celery.app.trace") if "succeeded" in event.payload["message"]]
        assert len(lines) == 25
        assert set(contexts(lines, "application")) == {"shop-worker"}
        assert all("task_id" not in event.header.context for event in lines)
