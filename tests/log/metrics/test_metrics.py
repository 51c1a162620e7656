import gc
import gzip
import json
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import balog
from balog.common.cardinality import Cardinality
from balog.event import decode
from balog.event.payload import MetricPayload, read
from balog.log import metrics
from balog.log.metrics import Metric, Point, Status, Tag, meters, points
from balog.log.metrics.ticker import Ticker
from balog.singer import write_log
from tests.stand_ins import log_outputs
from tests.stand_ins.programs import run_python
from tests.waiting import run_threads, wait_for

METRIC = Draft202012Validator(
    json.loads((Path(__file__).parents[3] / "schemas" / "payload" / "metric" / "1.0.0.json").read_bytes())
)


class Lines(log_outputs.Lines):
    """Keeps events, of which each metric is a valid one."""

    def write(self, level: str, event: bytes) -> None:
        super().write(level, event)
        made = decode(event)
        if made.cls_type == "metric":
            METRIC.validate(made.payload)
            assert level == "INFO"

    @property
    def points(self) -> list[tuple[Any, ...]]:
        made = [read(event) for event in self.events]
        return [(p.type, p.metric, p.value, p.tags) for p in made if isinstance(p, MetricPayload)]

    def take_point(self) -> tuple[Any, ...]:
        """Return the one point that was written since the last time."""
        (point,) = self.points
        self.written.clear()
        return point


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    metrics.flush()  # what tests before left
    monkeypatch.setattr(meters, "_ticker", Ticker(f"ticker {os.urandom(8).hex()}"))
    made = Lines()
    log_outputs.use_output(made, strict=True)
    yield made
    metrics.flush()


def is_running() -> bool:
    return any(thread.name == meters._ticker._name for thread in threading.enumerate())


def run(code: str, *, code_of_exit: int = 0, output: str = "stderr") -> list[dict[str, Any]]:
    """Run a program; give the point of each event that it wrote on stderr, with its process in ``process``."""
    begin = f"import os, sys, signal, time\nimport balog\nfrom balog import metrics\nbalog.configure({output!r})\n"
    warnings = ("-W", "ignore::DeprecationWarning")  # since 3.12 a fork beside threads warns
    done = run_python(begin + code, *warnings, check=False)
    assert done.returncode == code_of_exit, done.stderr
    events = [json.loads(line) for line in done.stderr.splitlines()]
    return [{**event["payload"], "process": event["header"]["context"]["process"]} for event in events]


class TestCounter:
    def test_writes_what_was_counted_when_its_block_ends(self, lines: Lines) -> None:
        with metrics.counter("rows", {"table": "users"}) as counter:
            counter.increment()
            counter.increment(4)
            assert (lines.points, counter.value) == ([], 5)

        assert lines.take_point() == ("counter", "rows", 5, {"table": "users"})
        assert counter.value == 0

    def test_writes_deltas(self, lines: Lines) -> None:
        counter = metrics.Counter("rows", log_interval=0)
        with counter:
            for amount in (1, 2, 3):
                time.sleep(0.001)
                counter.increment(amount)

        assert [point[2] for point in lines.points] == [1, 2, 3, 0]

    def test_writes_when_the_interval_is_over_though_nobody_counts_any_more(self, lines: Lines) -> None:
        metrics.Counter("rows", log_interval=0.05).increment(7)  # nobody holds it either

        wait_for(lambda: lines.points == [("counter", "rows", 7, {})])

    def test_its_thread_ends_when_nothing_is_held(self, lines: Lines) -> None:
        metrics.Counter("rows", log_interval=0.01).increment()

        wait_for(lambda: not is_running())
        metrics.Counter("rows", log_interval=0.01).increment()
        wait_for(lambda: len(lines.points) == 2)

    def test_a_shorter_interval_is_not_kept_waiting_by_a_longer_one(self, lines: Lines) -> None:
        slow, fast = metrics.Counter("slow", log_interval=3600), metrics.Counter("fast", log_interval=0.05)
        slow.increment()
        fast.increment()

        wait_for(lambda: [point[1] for point in lines.points] == ["fast"])
        slow.value = 0

    def test_no_thread_is_needed_for_a_block(self, lines: Lines) -> None:
        with metrics.record_counter("users") as counter:
            counter.increment()
            assert not is_running()

    def test_an_empty_block_writes_a_zero_and_a_flush_does_not(self, lines: Lines) -> None:
        counter = metrics.Counter("rows")
        with counter:
            pass
        assert lines.take_point()[2] == 0

        metrics.flush()
        assert lines.points == []

    def test_writes_when_its_block_fails(self, lines: Lines) -> None:
        with suppress(KeyError), metrics.record_counter("users") as counter:
            counter.increment(3)
            raise KeyError

        assert lines.take_point()[2] == 3

    def test_threads_lose_no_count(self, lines: Lines) -> None:
        counter = metrics.Counter("rows", log_interval=0.002)

        def count() -> None:
            for _ in range(5000):
                counter.increment()

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            run_threads(*[count] * 4)
        finally:
            sys.setswitchinterval(before)
        metrics.flush()
        wait_for(lambda: sum(point[2] for point in lines.points) == 20_000)

    @pytest.mark.parametrize("amount", [math.nan, math.inf, "3", None, object(), Decimal("nan")])
    def test_what_is_no_number_is_not_added_and_said(self, lines: Lines, amount: Any) -> None:
        with metrics.Counter("rows") as counter:
            counter.increment(2)
            counter.increment(amount)

        (event,) = [event for event in lines.events if event.cls_type == "log"]
        assert (event.level, event.header.channel) == ("WARNING", "app.metric")
        assert event.payload["problem"] == "its value is no finite number"
        assert event.payload["fields"]["value"] == repr(amount)
        assert [point[2] for point in lines.points] == [2]

    @pytest.mark.parametrize(
        ("amount", "value"), [(Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25), (True, 1), (10**20, 1e20), (-3, -3)]
    )
    def test_any_number_will_do(self, lines: Lines, amount: Any, value: float) -> None:
        with metrics.Counter("rows") as counter:
            counter.increment(amount)

        assert lines.take_point()[2] == value

    def test_a_sum_that_floats_cannot_hold_is_said(self, lines: Lines) -> None:
        with metrics.Counter("rows") as counter:
            counter.increment(1.7e308)
            counter.increment(1.7e308)

        assert lines.events[0].payload["fields"]["value"] == "inf"


class TestOneCounterForOneName:
    def test_counts_of_the_same_name_and_tags_become_one_event(self, lines: Lines) -> None:
        for page in range(10):
            metrics.counter("pages", {"even": page % 2 == 0}).increment()
        metrics.flush()

        assert sorted(lines.points, key=str) == [
            ("counter", "pages", 5, {"even": False}),
            ("counter", "pages", 5, {"even": True}),
        ]

    def test_values_of_different_types_are_different_tags(self) -> None:
        assert metrics.counter("a", {"n": 1}) is not metrics.counter("a", {"n": "1"})
        assert metrics.gauge("a") is not metrics.counter("a")

    def test_its_tags_cannot_be_changed(self) -> None:
        with pytest.raises(TypeError):
            metrics.counter("a", {"n": 1}).tags["n"] = 2

    def test_one_that_nobody_uses_is_forgotten(self, lines: Lines) -> None:
        metrics.counter("forgotten").increment()
        metrics.flush()
        held = metrics.counter("forgotten", log_interval=0.01)
        held.increment()
        wait_for(lambda: len(lines.points) == 2)
        del held

        def is_forgotten() -> bool:
            gc.collect()
            return not any(meter.metric == "forgotten" and meter.value for meter in list(meters._live))

        wait_for(is_forgotten)


class TestTimer:
    def test_writes_its_block_s_seconds_and_that_it_succeeded(self, lines: Lines) -> None:
        with metrics.timer("load", {"table": "users"}) as timer:
            time.sleep(0.02)
            elapsed = timer.elapsed()

        kind, name, seconds, tags = lines.take_point()
        assert (kind, name, tags) == ("timer", "load", {"table": "users", "status": "succeeded"})
        assert 0.02 <= elapsed <= seconds < 20

    def test_says_that_its_block_failed(self, lines: Lines) -> None:
        with pytest.raises(ValueError, match="bad"), metrics.timer("load"):
            raise ValueError("bad")

        assert lines.take_point()[3] == {"status": "failed"}

    def test_tags_may_be_added_while_it_runs_and_a_status_stays(self, lines: Lines) -> None:
        tags: dict[str, Any] = {"endpoint": "users"}
        with metrics.timer("load", tags) as timer:
            timer.tags["http_status_code"] = 404
            timer.tags["status"] = "failed"

        assert lines.take_point()[3] == {"endpoint": "users", "http_status_code": 404, "status": "failed"}
        assert tags == {"endpoint": "users"}

    def test_may_be_used_again(self, lines: Lines) -> None:
        timer = metrics.timer("load")
        with pytest.raises(ValueError, match="bad"), timer:
            raise ValueError("bad")
        with timer:
            pass

        assert [point[3]["status"] for point in lines.points] == ["failed", "succeeded"]

    def test_without_a_block(self, lines: Lines) -> None:
        seconds = metrics.timer("load").start().stop()
        metrics.timer("load").observe(1.5)

        assert [(point[2], point[3]) for point in lines.points] == [(seconds, {"status": "succeeded"}), (1.5, {})]

    def test_is_not_moved_by_a_clock_that_is_set(self, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
        timer = metrics.timer("load").start()
        monkeypatch.setattr(time, "time", lambda: 0.0)

        assert timer.stop() >= 0

    def test_one_that_never_began_took_no_time(self, lines: Lines) -> None:
        assert metrics.timer("load").stop() == 0.0


class TestGauge:
    def test_writes_each_change(self, lines: Lines) -> None:
        gauge = metrics.gauge("depth", {"queue": "in"})
        gauge.set(7)
        gauge.add(-2)

        assert lines.points == [("gauge", "depth", 7, {"queue": "in"}), ("gauge", "depth", 5, {"queue": "in"})]

    def test_a_block_counts_who_is_inside(self, lines: Lines) -> None:
        jobs = metrics.gauge("jobs")
        with jobs, metrics.gauge("jobs"):
            pass

        assert [point[2] for point in lines.points] == [1, 2, 1, 0]

    @pytest.mark.parametrize("value", [math.nan, -math.inf, "much"])
    def test_no_level_is_said_and_the_one_before_stays(self, lines: Lines, value: Any) -> None:
        gauge = metrics.Gauge("depth")
        gauge.set(3)
        gauge.set(value)
        gauge.add(value)

        assert [event.cls_type for event in lines.events] == ["metric", "log", "log"]
        assert gauge.value == 3


class Colour(str, Enum):
    RED = "red"


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class TestTags:
    def test_what_json_has_no_word_for_is_text(self, lines: Lines) -> None:
        tags = {"path": Path("/a"), "colour": Colour.RED, "nan": math.nan, "n": 1, "none": None, "list": [1, {"a": 2}]}
        with metrics.Counter("rows", {**tags, 3: "key"}):  # type: ignore[dict-item]
            pass

        written = lines.take_point()[3]
        assert (written["path"], written["nan"], written["n"], written["none"]) == ("/a", "nan", 1, None)
        assert (written["list"], written["3"]) == ([1, {"a": 2}], "key")
        assert written["colour"] == "red"

    @given(
        name=st.text() | st.none() | st.integers(),
        value=st.integers() | st.floats() | st.text() | st.none(),
        tags=st.dictionaries(
            st.text() | st.integers(),
            st.recursive(
                st.none() | st.floats() | st.text(st.characters()) | st.binary() | st.builds(Hostile),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
                max_leaves=5,
            ),
            max_size=4,
        ),
    )
    def test_anything_gives_one_valid_event(self, name: Any, value: Any, tags: dict[Any, Any]) -> None:
        made = Lines()
        with log_outputs.recording(made, strict=True) as recorder:
            metrics.log(None, Point("gauge", name, value, tags))
        (event,) = made.events
        assert event.cls_type in ("metric", "log")
        assert recorder.lost == 0

    def test_a_long_value_is_cut(self, lines: Lines) -> None:
        with metrics.Counter("rows", {"query": "x" * 100_000}):
            pass

        assert len(lines.take_point()[3]["query"]) == 1001

    def test_too_many_different_ones_are_folded(self, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(points, "_cardinality", Cardinality(10))
        for user in range(100):
            with metrics.Counter("capped", {"user": user}) as counter:
                counter.increment()

        sets = {json.dumps(point[3]) for point in lines.points}
        assert len(sets) == 11
        assert sum(point[2] for point in lines.points) == 100
        assert metrics.folded()["capped"] == 90


class TestChannel:
    def test_is_the_application_s_unless_one_is_given(self, lines: Lines) -> None:
        with metrics.Counter("a"), metrics.timer("b", channel="mine"):
            pass

        assert [event.header.channel for event in lines.events] == ["mine", "app.metric"]

    def test_log_takes_the_logger_s_and_its_context(self, lines: Lines) -> None:
        point = Point("gauge", "depth", 3, {})
        metrics.log(balog.get_logger("tap").bind(stream="users"), point)
        metrics.log(logging.getLogger("library"), point)
        metrics.log(logging.getLogger(), point)
        metrics.log(None, point)

        channels = [event.header.channel for event in lines.events]
        assert channels == ["tap.metric", "library.metric", "app.metric", "app.metric"]
        assert lines.events[0].header.context["stream"] == "users"

    def test_what_is_bound_is_in_the_context(self, lines: Lines) -> None:
        with balog.bound(stream="users"), metrics.timer("load"):
            pass

        assert lines.events[0].header.context["stream"] == "users"

    def test_below_the_level_nothing_is_written(self, lines: Lines) -> None:
        log_outputs.use_output(lines, 40, strict=True)
        metrics.gauge("depth").set(math.nan)
        metrics.gauge("depth").set(3)

        assert lines.events == []


class TestSingerPythonNames:
    """What ``singer.metrics`` of singer-python 6.8.0 has; tests/services compares the two in one tap."""

    def test_constants(self) -> None:
        assert (Status.succeeded, Status.failed) == ("succeeded", "failed")
        assert (Metric.record_count, Metric.job_duration) == ("record_count", "job_duration")
        assert Metric.http_request_duration == "http_request_duration"
        assert (Tag.endpoint, Tag.job_type, Tag.http_status_code, Tag.status) == (
            "endpoint",
            "job_type",
            "http_status_code",
            "status",
        )
        assert metrics.DEFAULT_LOG_INTERVAL == 60

    def test_ready_made_ones(self, lines: Lines) -> None:
        with metrics.record_counter("users", log_interval=30), metrics.record_counter():
            pass
        with metrics.http_request_timer("users"), metrics.http_request_timer(None):
            pass
        with metrics.job_timer("export"), metrics.job_timer():
            pass

        assert [(kind, name, tags) for kind, name, _, tags in lines.points] == [
            ("counter", "record_count", {}),
            ("counter", "record_count", {"endpoint": "users"}),
            ("timer", "http_request_duration", {"status": "succeeded"}),
            ("timer", "http_request_duration", {"endpoint": "users", "status": "succeeded"}),
            ("timer", "job_duration", {"status": "succeeded"}),
            ("timer", "job_duration", {"job_type": "export", "status": "succeeded"}),
        ]

    @pytest.mark.parametrize(
        "line",
        [
            'INFO METRIC: {"type": "counter", "metric": "record_count", "value": 3, "tags": {"endpoint": "users"}}',
            '2026-11-20 08:18:50,620 | INFO     | singer_sdk.metrics             | METRIC: {"type":"counter",'
            '"metric":"record_count","value":3,"tags":{"endpoint":"users"}}\n',
        ],
    )
    def test_parse_reads_the_point_in_a_line(self, line: str) -> None:
        assert metrics.parse(line) == Point("counter", "record_count", 3, {"endpoint": "users"})

    def test_parse_reads_its_own(self, lines: Lines) -> None:
        with metrics.record_counter("users") as counter:
            counter.increment()
        (event,) = lines.events

        assert metrics.parse(json.dumps(json.loads(write_log(event))["value"])) == Point(
            "counter", "record_count", 1, {"endpoint": "users"}
        )

    @pytest.mark.parametrize("line", ["", "hi", "INFO hi", "INFO METRIC: {", 'INFO METRIC: {"type": "histogram"}'])
    def test_parse_finds_nothing_in_another_line(self, line: str) -> None:
        assert metrics.parse(line) is None


class TestTheEnd:
    def test_what_is_held_is_written_at_exit_before_a_queue_is_closed(self, tmp_path: Path) -> None:
        assert run("metrics.counter('rows').increment(3)", output=f"store:{tmp_path}/archive") == []
        written = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.rglob("*.gz"))
        assert b'"metric":"rows"' in written

    def test_what_is_held_is_written_when_nobody_configured_and_metrics_came_first(self) -> None:
        code = "import sys; from balog import metrics; metrics.counter('rows').increment(3)"
        assert json.loads(run_python(code).stderr)["payload"]["value"] == 3

    def test_sigterm_in_a_block_writes_what_was_counted(self) -> None:
        points = run(
            "with metrics.record_counter('users') as counter:\n"
            "    counter.increment(3)\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "    time.sleep(30)\n",
            code_of_exit=-signal.SIGTERM,
        )
        assert [point["value"] for point in points] == [3]

    def test_an_application_s_own_sigterm_is_left_alone(self) -> None:
        code = (
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "metrics.counter('rows').increment()\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(30)\n"
        )
        assert [point["value"] for point in run(code, code_of_exit=7)] == [1]

    def test_a_fork_does_not_repeat_what_the_parent_holds(self) -> None:
        code = (
            "metrics.counter('rows').increment(3)\n"
            "if os.fork() == 0:\n    metrics.counter('rows').increment(10)\n    sys.exit()\n"
            "os.wait()\nprint(os.getpid())\n"
        )
        points = run(code)
        assert sorted(point["value"] for point in points) == [3, 10]
        assert len({point["process"] for point in points}) == 2

    def test_a_fork_in_a_block_counts_by_itself(self) -> None:
        code = (
            "with metrics.record_counter('users') as counter:\n"
            "    counter.increment(3)\n    child = os.fork() == 0\n    counter.increment(10)\n"
            "    if not child: os.wait()\n"
        )
        assert sorted(point["value"] for point in run(code)) == [10, 13]

    def test_a_child_counts_though_the_parent_s_thread_is_not_there(self) -> None:
        code = (
            "metrics.Counter('rows', log_interval=600).increment()\n"
            "if os.fork() == 0:\n    metrics.Counter('in child', log_interval=0.01).increment()\n"
            "    time.sleep(1)\n    os._exit(0)\n"
            "os.wait()\n"
        )
        assert [point["metric"] for point in run(code)] == ["in child", "rows"]

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_children_of_multiprocessing_write_what_they_hold(self, method: str, tmp_path: Path) -> None:
        (tmp_path / "work.py").write_text(
            "import multiprocessing, balog\nfrom balog import metrics\n"
            "def work():\n"
            f"    balog.configure('file:{tmp_path}/out.jsonl')\n    metrics.counter('rows').increment(5)\n"
            "if __name__ == '__main__':\n"
            f"    context = multiprocessing.get_context({method!r})\n"
            "    child = context.Process(target=work); child.start(); child.join(); raise SystemExit(child.exitcode)\n"
        )
        subprocess.run([sys.executable, tmp_path / "work.py"], check=True, timeout=60)
        (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
        assert json.loads(line)["payload"]["value"] == 5


@pytest.mark.parametrize("wrong", [["a"], {"a"}, 7, b"a", object()])
def test_a_name_channel_or_tags_that_are_none_never_raise(lines: Any, wrong: Any) -> None:
    metrics.gauge(wrong).set(1)
    metrics.gauge("depth", channel=wrong).set(1)
    metrics.gauge("depth", wrong).set(1)
    metrics.Counter("rows", wrong).flush()
