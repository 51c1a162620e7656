"""The program of the page log-in-pyspark: functions on executors log, and one attempt of a task fails."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from balog.event import Event
from tests.services.hosts import (
    contexts,
    environment,
    file_events,
    on_channel,
    topic_events,
    write_page_files,
)

pytest.importorskip("pyspark", reason="pyspark is not installed")
from balog.analytics.sessions import find_java, wrap
from tests.programs import run_program


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the program's outputs, and what it printed on stderr."""
    folder = tmp_path_factory.mktemp("executors")
    write_page_files("log-in-pyspark.md", folder, "prices.py")
    own = environment(folder, JAVA_HOME=str(wrap(find_java(), folder / "java")), SPARK_LOCAL_IP="127.0.0.1")
    config = json.loads((folder / "logger.json").read_text())
    (folder / "logger.json").write_text(json.dumps({"output": [*config["output"], "stderr"]}))
    done = run_program(sys.executable, "prices.py", cwd=folder, env=own)
    assert done.stdout.splitlines() == ["20", str([2 * number for number in range(20)])]
    return folder, done.stderr


@pytest.fixture(scope="module")
def events(ran: tuple[Path, str]) -> list[Event]:
    return file_events(ran[0])


def test_each_attempt_of_a_partition_has_its_events_once(events: list[Event]) -> None:
    loaded = [
        (event.header.context["partition"], event.header.context["attempt"], event.payload["number"])
        for event in on_channel(events, "prices.loaded")
    ]
    whole = [(number // 5, 0, number) for number in range(20)]
    assert sorted(loaded) == sorted([*whole, *((1, 1, number) for number in range(5, 10))])


def test_a_partition_has_delivered_its_queue_when_it_ends(ran: tuple[Path, str], events: list[Event]) -> None:
    expected = [event.header.id for event in events if event.header.channel in ("prices", "prices.loaded")]
    assert sorted(event.header.id for event in topic_events(ran[0])) == sorted(expected)


def test_a_scalar_udf_logs_into_the_drivers_output(ran: tuple[Path, str], events: list[Event]) -> None:
    doubled = on_channel(events, "prices.doubled")
    assert sorted(event.payload["number"] for event in doubled) == list(range(20))
    assert {event.header.id for event in doubled} <= set(re.findall(r'"id":"(LG\w{22})"', ran[1]))


def test_executors_belong_to_the_drivers_run_and_state_their_own_process(events: list[Event]) -> None:
    assert len(set(contexts(events, "run_id"))) == 1
    (driver,) = contexts(on_channel(events, "prices"), "process")
    workers = set(contexts(on_channel(events, "prices.loaded"), "process"))
    assert driver not in workers
    assert os.getpid() not in workers
