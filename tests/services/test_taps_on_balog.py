"""Real taps log through balog: one on singer-python 6, and tap-jsonl, which is on the Meltano SDK.

Each runs in an environment of its own that holds balog's base install. What they write is a Singer stream with LOG
messages in it.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from balog.event import Event, decode
from balog.event.payload import LogPayload, MetricPayload, read
from tests.documentation import docs_page
from tests.programs import environment_without, run_program
from tests.services.environments import install

pytestmark = pytest.mark.service

PAGE = docs_page("log-from-a-tap.md").read_text(encoding="utf-8")

SINGER_TAP = """
import sys
import singer
if "install" in sys.argv:
    import balog
    from balog.log.stdlib import install
    balog.configure(output="singer", application="tap-little", strict=True)
    install()
if "balog" in sys.argv:
    from balog import metrics
else:
    from singer import metrics

LOGGER = singer.get_logger()

LOGGER.info("Starting sync of stream %s", "users")
singer.write_schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ["id"])
with metrics.job_timer("sync"), metrics.record_counter("users") as counter:
    for page in range(2):
        with metrics.http_request_timer("users") as timer:
            timer.tags[metrics.Tag.http_status_code] = 200
        for number in range(3):
            singer.write_record("users", {"id": page * 3 + number})
            counter.increment()
        LOGGER.info("page %d", page)
with metrics.Counter("empty", {"a": "b"}):
    pass
with metrics.Counter("often", log_interval=-1) as often:
    often.increment(2)
    often.increment(0)
metrics.log(LOGGER, metrics.Point("gauge", "lag", 3, {"endpoint": "users"}))
try:
    with metrics.http_request_timer(None):
        raise RuntimeError("HTTP 500")
except RuntimeError:
    LOGGER.exception("sync failed")
singer.write_state({"users": 6})
"""


def block(name: str) -> str:
    """Give the block of the page that is the file of that name."""
    (found,) = re.findall(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def environment_with(folder: Path, package: str) -> Path:
    """Make an environment with balog and one package; give its commands. Skips where the index can't be reached."""
    probe = install(folder / "environment", "setuptools")
    if probe.returncode:
        pytest.skip(f"the package index can't be reached: {probe.stderr.strip().splitlines()[-1:]}")
    done = install(folder / "environment", package)
    assert done.returncode == 0, done.stderr
    return folder / "environment" / "bin"


@pytest.fixture(scope="module")
def singer_python(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    commands = environment_with(tmp_path_factory.mktemp("singer-python"), "singer-python==6.8.0")
    return add_balog(commands, checkout)


@pytest.fixture(scope="module")
def tap_jsonl(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_balog(environment_with(tmp_path_factory.mktemp("tap-jsonl"), "tap-jsonl==0.3.1"), checkout)


def add_balog(commands: Path, checkout: Path) -> Path:
    done = install(commands.parent, checkout)
    assert done.returncode == 0, done.stderr
    return commands


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_program(*command, cwd=cwd, env=environment_without("BALOG_", "SINGER_") | variables)


def messages(stream: str) -> list[tuple[str, Any]]:
    """Give type and content of each message: of a LOG the event, of others the whole. Every line is one."""
    assert stream.endswith("\n")
    made: list[tuple[str, Any]] = []
    for line in stream.splitlines():
        message = json.loads(line)
        is_log = message["type"] == "LOG"
        made.append((message["type"], decode(json.dumps(message["value"])) if is_log else message))
    return made


def events(stream: str) -> list[Event]:
    return [content for kind, content in messages(stream) if kind == "LOG"]


def points_of(made: list[Event]) -> list[tuple[Any, ...]]:
    """Give type, name, tags and, of what does not depend on the clock, the value."""
    payloads = [read(event) for event in made]
    return [
        (p.type, p.metric, p.tags, None if p.type == "timer" else p.value)
        for p in payloads
        if isinstance(p, MetricPayload)
    ]


@pytest.fixture(scope="module")
def plain(singer_python: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What the tap on singer-python writes without balog."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "tap.py").write_text(SINGER_TAP)
    return run(singer_python / "python", "tap.py", cwd=folder)


@pytest.fixture(scope="module")
def swapped(singer_python: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What the tap writes with balog's handlers and metrics."""
    folder = tmp_path_factory.mktemp("swapped")
    (folder / "tap.py").write_text(SINGER_TAP)
    return run(singer_python / "python", "tap.py", "install", "balog", cwd=folder)


Done = subprocess.CompletedProcess[str]


class TestSingerPython:
    def points_on_stderr(self, stderr: str) -> list[tuple[Any, ...]]:
        found = [json.loads(text) for text in re.findall(r"^INFO METRIC: (.*)$", stderr, re.MULTILINE)]
        return [(p["type"], p["metric"], p["tags"], None if p["type"] == "timer" else p["value"]) for p in found]

    def test_the_same_tap_has_the_same_points_on_either_module(
        self, plain: Done, swapped: Done, singer_python: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "tap.py").write_text(SINGER_TAP)
        kept = run(singer_python / "python", "tap.py", "install", cwd=tmp_path)

        expected = self.points_on_stderr(plain.stderr)
        assert len(expected) == 10
        assert points_of(events(swapped.stdout)) == expected
        assert points_of(events(kept.stdout)) == expected
        assert (swapped.stderr, kept.stderr) == ("", "")

    def test_its_lines_stand_between_its_records_where_they_were_written(self, swapped: Done) -> None:
        made = messages(swapped.stdout)

        kinds = [content.cls_type if kind == "LOG" else kind for kind, content in made]
        page = ["metric", "RECORD", "RECORD", "RECORD", "log"]
        assert kinds == ["log", "SCHEMA", *page, *page, *["metric"] * 8, "log", "STATE"]
        assert [content["record"]["id"] for kind, content in made if kind == "RECORD"] == list(range(6))

    def test_its_data_is_what_it_was_without_balog(self, plain: Done, swapped: Done) -> None:
        lines = [line for line in swapped.stdout.splitlines() if '"type":"LOG"' not in line]
        assert lines == plain.stdout.splitlines()

    def test_its_exception_is_data(self, swapped: Done) -> None:
        (failure,) = [event for event in events(swapped.stdout) if event.level == "ERROR"]
        payload = read(failure)
        assert isinstance(payload, LogPayload)
        assert payload.message == "sync failed"
        assert payload.exception is not None
        assert (payload.exception.type, payload.exception.message) == ("RuntimeError", "HTTP 500")
        assert failure.header.channel == failure.header.context["application"] == "tap-little"

    def test_the_tap_of_the_page(self, singer_python: Path, tmp_path: Path) -> None:
        (tmp_path / "tap_users.py").write_text(block("tap_users.py"))
        made = messages(run(singer_python / "python", "tap_users.py", cwd=tmp_path).stdout)

        kinds = [content.cls_type if kind == "LOG" else kind for kind, content in made]
        assert kinds == ["log", "SCHEMA", "RECORD", "RECORD", "RECORD", "metric", "metric", "STATE"]


ROWS = 2000


@pytest.fixture(scope="module")
def stream(tap_jsonl: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    """What tap-jsonl writes with the page's config file."""
    folder = tmp_path_factory.mktemp("tap-jsonl-run")
    rows = [{"id": number, "name": f"name {number}"} for number in range(ROWS)]
    (folder / "users.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"path": "users.jsonl", "stream_name": "users", "primary_keys": ["id"]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "logging.yaml").write_text(block("logging.yaml"))
    done = run(
        tap_jsonl / "tap-jsonl",
        "--config",
        "config.json",
        cwd=folder,
        SINGER_SDK_LOG_CONFIG="logging.yaml",
        BALOG_OUTPUT="singer",
    )
    assert done.stderr == ""
    return messages(done.stdout)


class TestMeltanoSdk:
    def test_every_row_and_every_line_is_in_one_stream(self, stream: list[tuple[str, Any]]) -> None:
        assert [content["record"]["id"] for kind, content in stream if kind == "RECORD"] == list(range(ROWS))
        assert {kind for kind, _ in stream} == {"LOG", "RECORD", "SCHEMA", "STATE"}

    def test_its_lines_are_typed(self, stream: list[tuple[str, Any]]) -> None:
        made = [content for kind, content in stream if kind == "LOG"]

        assert {event.cls_type for event in made} == {"log", "metric"}
        assert all(event.header.context["application"] == "tap-jsonl" for event in made)
        assert all(event.header.context["application_version"] == "0.3.1" for event in made)
        assert {event.header.channel for event in made} == {
            "tap-jsonl",
            "tap-jsonl.users",
            "tap-jsonl.singer_sdk",
            "tap-jsonl.singer_sdk.metrics",
        }
        (unsorted, *_) = [event for event in made if event.level == "WARNING"]
        assert unsorted.payload["fields"] == {"replication_key": "_sdc_last_modified"}

    def test_its_metrics_are_metrics(self, stream: list[tuple[str, Any]]) -> None:
        points = points_of([content for kind, content in stream if kind == "LOG"])

        kinds = {(kind, name): (tags, value) for kind, name, tags, value in points}
        tags, value = kinds["counter", "record_count"]
        assert (tags["stream"], value) == ("users", ROWS)
        assert kinds["timer", "sync_duration"][0]["status"] == "succeeded"

    def test_its_lines_stand_where_they_were_written(self, stream: list[tuple[str, Any]]) -> None:
        lines = [
            content.payload.get("message", content.cls_type) if kind == "LOG" else kind for kind, content in stream
        ]
        begins = lines.index("Beginning sync of 'users' in incremental mode")
        records = [index for index, line in enumerate(lines) if line == "RECORD"]
        assert begins < records[0]
        assert lines[records[0] + 1].startswith("Stream is assumed to be unsorted")  # logged between the first two rows
        assert records[1:] == list(range(records[0] + 2, records[0] + ROWS + 1))
        assert lines.index("metric") > records[-1]
