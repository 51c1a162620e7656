import asyncio
import contextvars
import gc
import json
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from balog import bound, get_logger
from balog.log.context import run_id
from balog.testing import Events
from tests.stand_ins.programs import run_program
from tests.waiting import run_threads


def context(events: Events) -> dict[str, Any]:
    return events.pop().header.context


def run(*command: str, **environment: str) -> list[dict[str, Any]]:
    """Run a program and give the contexts of the events on its stderr."""
    done = run_program(*command, **environment)
    return [json.loads(line)["header"]["context"] for line in done.stderr.splitlines()]


class TestBound:
    def test_it_holds_inside_the_block_for_every_logger(self, events: Events) -> None:
        with bound(run_id="r7", stream="users"):
            get_logger("a").info("x")
            assert context(events).items() >= {"run_id": "r7", "stream": "users"}.items()
            get_logger("b").info("x")
            assert context(events)["stream"] == "users"
        get_logger("a").info("x")
        assert "stream" not in context(events)

    def test_the_inner_block_hides_the_outer_and_the_logger_hides_both(self, events: Events) -> None:
        log = get_logger("a").bind(c="logger", d="logger")
        with bound(a="outer", b="outer", c="outer", application="outer"):
            with bound(b="inner", c="inner"):
                log.info("x")
                found = context(events)
            assert {key: found[key] for key in ("application", *"abcd")} == {
                "application": "outer",
                "a": "outer",
                "b": "inner",
                "c": "logger",
                "d": "logger",
            }
            log.info("x")
            assert context(events)["b"] == "outer"

    def test_it_decorates_functions_of_every_kind(self, events: Events) -> None:
        log = get_logger("a")

        @bound(step="call")
        def call(a: int, *, b: int) -> int:
            log.info("x")
            return a + b

        @bound(step="coroutine")
        async def coroutine(a: int) -> int:
            await asyncio.sleep(0)
            log.info("x")
            return a

        @bound(step="generator")
        def generator() -> Iterator[Any]:
            sent = yield 1
            log.info("x", sent=sent)
            try:
                yield 2
            except ValueError:
                log.info("x")
            return "end"

        @bound(step="async generator")
        async def async_generator() -> Any:
            for item in (1, 2):
                await asyncio.sleep(0)
                log.info("x")
                yield item

        assert call(1, b=2) == 3
        assert call.__name__ == "call"
        assert context(events)["step"] == "call"
        assert asyncio.iscoroutinefunction(coroutine)
        assert asyncio.run(coroutine(5)) == 5
        assert context(events)["step"] == "coroutine"
        log.info("x")
        assert "step" not in context(events)

        going: Any = generator()
        assert next(going) == 1
        log.info("between")
        assert "step" not in context(events)
        assert going.send("word") == 2
        assert events.pop().payload["fields"] == {"sent": "word"}
        with pytest.raises(StopIteration) as end:
            going.throw(ValueError())
        assert end.value.value == "end"
        assert context(events)["step"] == "generator"

        async def collect() -> list[int]:
            items = []
            async for item in async_generator():
                log.info("between")
                items.append(item)
            return items

        assert asyncio.run(collect()) == [1, 2]
        assert [event.header.context.get("step") for event in events] == ["async generator", None] * 2

    def test_a_decorated_coroutine_binds_in_its_own_task_only(self, events: Events) -> None:
        @bound(step="mine")
        async def work() -> None:
            await asyncio.sleep(0.01)
            get_logger("a").info("inside")

        async def both() -> None:
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0.001)
            get_logger("a").info("outside")
            await task

        asyncio.run(both())
        assert [event.header.context.get("step") for event in events] == [None, "mine"]

    def test_a_closed_generator_closes_the_decorated_one_inside_the_block(self, events: Events) -> None:
        @bound(step="closing")
        def generator() -> Iterator[int]:
            try:
                yield 1
            finally:
                get_logger("a").info("closed")

        going: Any = generator()
        next(going)
        going.close()
        assert context(events)["step"] == "closing"

    def test_what_is_bound_for_a_block_does_not_linger(self, events: Events) -> None:
        for turn in range(1000):
            with bound(turn=turn):
                get_logger("a").bind(run_id=f"r{turn}").info("x")
                assert context(events).items() >= {"turn": turn, "run_id": f"r{turn}"}.items()

    def test_it_ends_also_when_the_block_raises(self, events: Events) -> None:
        with pytest.raises(ValueError), bound(a=1):
            raise ValueError
        get_logger("a").info("x")
        assert "a" not in context(events)

    def test_other_threads_see_it_only_with_a_copy_of_the_context(self, events: Events) -> None:
        log = get_logger("a")
        with bound(a=1):
            copied = contextvars.copy_context()
            for target, seen in [(log.info, False), (lambda event: copied.run(log.info, event), True)]:
                run_threads(partial(target, "x"))
                assert ("a" in context(events)) is seen

    def test_tasks_have_each_their_own(self, events: Events) -> None:
        log = get_logger("a")

        async def task(number: int) -> None:
            with bound(task=number):
                for _ in range(5):
                    await asyncio.sleep(0)
                    log.info("x", payload={"task": number})
                await asyncio.to_thread(log.info, "x", payload={"task": number})

        async def main() -> None:
            with bound(outer=True):
                await asyncio.gather(*(task(number) for number in range(10)))

        asyncio.run(main())

        assert len(events) == 60
        for event in events:
            assert event.header.context.items() >= {"task": event.payload["task"], "outer": True}.items()

    def test_a_generator_that_ends_in_another_context_is_no_error(self, events: Events) -> None:
        def rows() -> Iterator[int]:
            with bound(generator=True):
                yield 1
                yield 2

        left = rows()
        contextvars.copy_context().run(next, left)
        left.close()
        abandoned = contextvars.copy_context().run(lambda: [it := rows(), next(it)])[0]
        del abandoned
        gc.collect()
        get_logger("a").info("x")

        assert "generator" not in context(events)

    def test_secrets_in_it_are_taken_out(self, events: Events) -> None:
        with bound(password="s3cret"):
            get_logger("a").bind(api_key="s3cret").info("x")

        assert "s3cret" not in str(context(events))


class TestSurroundings:
    def test_each_thread_says_its_name(self, events: Events) -> None:
        log = get_logger("a")
        threads = [threading.Thread(target=log.info, args=("x",), name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.info("x")

        assert sorted(event.header.context["thread"] for event in events) == [
            "MainThread",
            "worker 0",
            "worker 1",
            "worker 2",
        ]

    def test_a_forked_child_says_its_own_process_and_the_same_run(self) -> None:
        code = """
import os
from balog import get_logger
log = get_logger("a").bind(run_id="mine", n=1)
plain = get_logger("a")
plain.info("x"); log.info("x")
child = os.fork()
plain.info("x", payload={"pid": os.getpid()}); log.info("x", payload={"pid": os.getpid()})
if child: os.waitpid(child, 0)
"""
        contexts = run(sys.executable, "-c", code)

        assert len({found["process"] for found in contexts}) == 2
        assert [found["process"] for found in contexts].count(contexts[0]["process"]) == 4
        assert {found["run_id"] for found in contexts} == {"mine", contexts[0]["run_id"]}

    def test_child_processes_inherit_the_run(self) -> None:
        code = """
import subprocess, sys
from balog import get_logger
get_logger("a").info("x")
subprocess.run([sys.executable, "-c", "import balog; balog.get_logger('a').info('x')"], check=True)
"""
        first, second = run(sys.executable, "-c", code)

        assert first["run_id"] == second["run_id"]
        assert first["process"] != second["process"]
        assert run(sys.executable, "-c", code, BALOG_RUN_ID="given")[1]["run_id"] == "given"

    def test_all_threads_have_the_same_run_from_the_first_event_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BALOG_RUN_ID", "")
        found: list[str] = []
        run_threads(*[lambda: found.append(run_id())] * 20)

        assert len(set(found)) == 1
        assert os.environ["BALOG_RUN_ID"] == found[0]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A distribution ``tap-thing`` 4.5.6 with a console script and a package; gives its folder."""
    site = tmp_path / "site"
    package, metadata = site / "tap_thing", site / "tap_thing-4.5.6.dist-info"
    package.mkdir(parents=True)
    metadata.mkdir()
    (package / "__init__.py").write_text("def main():\n    import balog\n    balog.get_logger('a').info('x')\n")
    (package / "__main__.py").write_text("from tap_thing import main\nmain()\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tap-thing\nVersion: 4.5.6\n")
    (metadata / "entry_points.txt").write_text("[console_scripts]\ntap-thing-run = tap_thing:main\n")
    (metadata / "top_level.txt").write_text("tap_thing\n")
    (metadata / "RECORD").write_text("tap_thing/__init__.py,,\n")
    script = tmp_path / "bin" / "tap-thing-run"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom tap_thing import main\nmain()\n")
    script.chmod(0o755)
    return tmp_path


class TestApplication:
    def test_a_console_script_has_the_version_of_its_distribution(self, installed: Path) -> None:
        (found,) = run(str(installed / "bin" / "tap-thing-run"), PYTHONPATH=str(installed / "site"))

        assert (found["application"], found["application_version"]) == ("tap-thing-run", "4.5.6")

    def test_so_has_a_package_that_is_run(self, installed: Path) -> None:
        (found,) = run(sys.executable, "-m", "tap_thing", PYTHONPATH=str(installed / "site"))

        assert (found["application"], found["application_version"]) == ("tap_thing", "4.5.6")

    def test_a_file_of_nobody_s_has_no_version(self, tmp_path: Path) -> None:
        script = tmp_path / "job.py"
        script.write_text("import balog; balog.get_logger('a').info('x')")
        (found,) = run(sys.executable, str(script))

        assert found["application"] == "job.py"
        assert "application_version" not in found

    def test_what_is_configured_wins(self, installed: Path) -> None:
        main = installed / "site" / "tap_thing" / "__init__.py"
        main.write_text(
            main.read_text().replace("import balog\n", "import balog; balog.configure(application='mine')\n")
        )
        (found,) = run(str(installed / "bin" / "tap-thing-run"), PYTHONPATH=str(installed / "site"))

        assert found["application"] == "mine"
        assert "application_version" not in found

    def test_broken_metadata_costs_the_version_and_nothing_else(self, installed: Path) -> None:
        (installed / "site" / "tap_thing-4.5.6.dist-info" / "entry_points.txt").write_bytes(b"\xff[[[\n=")
        (found,) = run(str(installed / "bin" / "tap-thing-run"), PYTHONPATH=str(installed / "site"))

        assert found["application"] == "tap-thing-run"

    @pytest.mark.skipif(not Path(sysconfig.get_path("scripts"), "balog").exists(), reason="balog is not installed")
    def test_balog_itself_is_found(self) -> None:
        code = "import sys; sys.argv[0] = 'balog'; import balog; balog.get_logger('a').info('x')"
        (found,) = run(sys.executable, "-c", code)

        from balog import __version__

        assert (found["application"], found["application_version"]) == ("balog", __version__)


class TestTraces:
    @pytest.fixture(autouse=True)
    def tracer(self) -> Any:
        sdk = pytest.importorskip("opentelemetry.sdk.trace")
        return sdk.TracerProvider().get_tracer("test")

    def test_the_current_span_is_in_the_context(self, events: Events, tracer: Any) -> None:
        log = get_logger("a").bind(stream="users")
        with tracer.start_as_current_span("sync") as span:
            log.info("x")
            found = context(events)
        log.info("x")

        spans = span.get_span_context()
        assert found["trace_id"] == f"{spans.trace_id:032x}"
        assert found["span_id"] == f"{spans.span_id:016x}"
        assert found["stream"] == "users"
        assert not {"trace_id", "span_id"} & context(events).keys()

    def test_what_is_bound_hides_it(self, events: Events, tracer: Any) -> None:
        with tracer.start_as_current_span("sync"):
            with bound(trace_id="outer"):
                get_logger("a").bind(span_id="mine").info("x")

        found = context(events)
        assert (found["trace_id"], found["span_id"]) == ("outer", "mine")

    def test_each_task_has_its_own_span(self, events: Events, tracer: Any) -> None:
        async def task(number: int) -> None:
            with tracer.start_as_current_span(f"task {number}") as span:
                await asyncio.sleep(0)
                get_logger("a").info("x", payload={"span": f"{span.get_span_context().span_id:016x}"})

        async def main() -> None:
            await asyncio.gather(*(task(number) for number in range(10)))

        asyncio.run(main())

        assert len({event.payload["span"] for event in events}) == 10
        assert all(event.payload["span"] == event.header.context["span_id"] for event in events)

    def test_one_that_is_still_being_imported_costs_no_event(
        self, events: Events, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", types.ModuleType("opentelemetry.trace"))
        get_logger("a").info("x")

        assert "trace_id" not in context(events)

    def test_it_is_never_imported_for_it(self) -> None:
        code = (
            "import sys, balog; balog.get_logger('a').info('x')\n"
            "balog.get_logger('a').info('x', n=str([n for n in sys.modules if 'opentelemetry' in n]))"
        )
        done = run_program(sys.executable, "-c", code)

        assert json.loads(done.stderr.splitlines()[1])["payload"]["fields"] == {"n": "[]"}
