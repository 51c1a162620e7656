"""The programs of the pages on where balog runs, in their real hosts: no event is lost or doubled."""

import json
import re
import signal
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

from balog.event import Event, decode
from tests.documentation import docs_page
from tests.services.hosts import (
    contexts,
    environment,
    file_events,
    logged,
    on_channel,
    run_in,
    running,
    topic_events,
    write_page_files,
)
from tests.services.lambda_runtime import LambdaRuntime
from tests.waiting import wait_for

PAGE = "where-it-runs.md"
PYTHON = sys.executable
LATER = """
import asyncio
async def later(n):
    with balog.bound(task=n):
        await asyncio.sleep(0.01 * n)
        log.info("later", payload={"number": n})
await asyncio.gather(later(2), later(3))
"""


def numbers(events: list[Event]) -> list[int]:
    return sorted(event.payload["number"] for event in events)


def test_the_block_on_flushing_delivers(tmp_path: Path) -> None:
    ((block,),) = [re.findall(r"^```python\n(.*?)^```$", docs_page(PAGE).read_text("utf-8"), re.M | re.S)]
    run_in(tmp_path, PYTHON, "-c", block + "\nimport os; os._exit(0)")
    assert contexts(logged(tmp_path), "task") == ["nightly"]


@pytest.fixture(scope="module", params=["fork", "spawn", "forkserver"])
def pooled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """The events of the page's pools and processes, by one way to start them."""
    folder = tmp_path_factory.mktemp(request.param)
    write_page_files("log-in-processes.md", folder, "pool.py")
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
    write_page_files("log-in-celery.md", folder, "tasks.py", "celeryconfig.py")
    for name in ("queue", "control"):
        (folder / name).mkdir()
    run_in(folder, PYTHON, "-c", "import tasks\nfor n in range(24): tasks.count.delay(n)\ntasks.try_twice.delay(24)")
    with running(folder, PYTHON, "-m", "celery", "--app", "tasks", "worker", "--loglevel=INFO") as server:
        wait_for(lambda: len(on_channel(file_events(folder), "tasks.counted")) == 24)
        wait_for(lambda: len(on_channel(file_events(folder), "tasks.tried")) == 2)
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


class TestLambda:
    def test_each_invocation_has_delivered_its_events_before_the_process_freezes(self, tmp_path: Path) -> None:
        write_page_files("log-in-lambda.md", tmp_path, "resize.py")
        frozen: list[list[Event]] = []
        payloads = [{"number": number} for number in (1, 2, 0, 4)]
        runtime = LambdaRuntime(payloads, lambda finished: frozen.append(topic_events(tmp_path) if finished else []))
        command = [PYTHON, "-m", "awslambdaric", "resize.handler"]
        try:
            with running(tmp_path, *command, AWS_LAMBDA_RUNTIME_API=runtime.address) as function:
                runtime.pid = function.pid
                assert function.wait(60) == -signal.SIGKILL
        finally:
            runtime.close()
        assert [kind for kind, _ in runtime.answers] == ["response", "response", "error", "response"]
        first, *others = frozen[1:]
        assert [event.header.channel for event in first] == ["resize", "resize.resized"]
        assert [event.payload["number"] for events in (first[1:], *others) for event in events] == [1, 2, 0, 4]
        delivered = [event for events in frozen for event in events]
        assert contexts(delivered, "request_id") == [None, *(f"request-{number}" for number in range(4))]
        assert [event.header.id for event in delivered] == [event.header.id for event in file_events(tmp_path)]
        assert len(set(contexts(delivered, "run_id"))) == 1

    def test_without_a_queue_events_are_whole_lines_of_the_functions_log(self, tmp_path: Path) -> None:
        write_page_files("log-in-lambda.md", tmp_path, "resize.py")
        runtime = LambdaRuntime([{"number": 1}, {"number": 2}], lambda _: None)
        command = [PYTHON, "-m", "awslambdaric", "resize.handler"]
        own = {"AWS_LAMBDA_RUNTIME_API": runtime.address, "BALOG_CONFIG": "", "BALOG_OUTPUT": "stderr"}
        try:
            with running(tmp_path, *command, **own) as function:
                runtime.pid = function.pid
                function.wait(60)
        finally:
            runtime.close()
        lines = [line for line in (tmp_path / "server.log").read_bytes().splitlines() if line.startswith(b"{")]
        assert contexts([decode(line) for line in lines], "request_id") == [None, "request-0", "request-1"]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[Event]]:
    """The texts below the cells of a notebook that ran in a kernel, and the events of its other outputs."""
    folder = tmp_path_factory.mktemp("jupyter")
    write_page_files("log-in-jupyter.md", folder, "notebook.py")
    page = (folder / "notebook.py").read_text()
    again = page.replace('"console"', '["console"]')
    own = environment(folder, BALOG_CONFIG="")
    outputs = json.loads((folder / "logger.json").read_text())["output"]
    sources = [
        page,
        again,
        f"balog.configure({outputs!r}, application='exploration')\nlog.info('queued', payload={{'number': 1}})",
        LATER,
        "log.info('last', payload={'number': 4}); 1 / 0",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        client.execute(cwd=str(folder))
    texts = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    return texts, logged(folder)


class TestJupyter:
    def test_events_appear_below_their_cell(self, cells: tuple[list[str], list[Event]]) -> None:
        texts, _ = cells
        assert [text.count("loaded") for text in texts] == [1, 1, 0, 0, 0]

    def test_the_kernel_delivers_what_is_queued_when_it_ends(self, cells: tuple[list[str], list[Event]]) -> None:
        _, events = cells
        assert numbers(events) == [1, 2, 3, 4]
        assert set(contexts(events, "application")) == {"exploration"}

    def test_awaiting_keeps_the_keys_of_a_task_apart(self, cells: tuple[list[str], list[Event]]) -> None:
        _, events = cells
        assert [(event.payload["number"], event.header.context.get("task")) for event in events] == [
            (1, None),
            (2, 2),
            (3, 3),
            (4, None),
        ]
