"""Topics that keep order keep it for the watcher, too, when the one before it was killed with events in flight."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from balog.event import encode
from balog.topics import Message, open_topics
from balog.watch.state.sqlite import SqliteWatchStore
from tests.services.servers.kafka import KafkaServer
from tests.watch.events import evaluate
from tests.watch.test_evaluation import MONITORS, events_of, plain
from tests.watch.test_merging import watch_all

pytestmark = pytest.mark.service
LEASE = 3.0
HOLD = """
import sys, time
from balog.topics import open_topics
with open_topics(sys.argv[1]) as topics:
    received = []
    while len(received) < 60:
        received += topics.topic("watched-runs").receive("watch", 60 - len(received), lease=float(sys.argv[2]))
    print(len(received), flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["local", "kafka"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return f"local:{tmp_path}/topics"
    server: KafkaServer = request.getfixturevalue("kafka")
    return server.url(partitions=1)


def test_events_that_a_killed_process_held_come_before_later_ones(url: str, tmp_path: Path) -> None:
    events = sorted(events_of(4, 120), key=lambda one: one.header.timestamp)
    with open_topics(url) as topics:
        topics.topic("watched-runs").publish([Message(one.header.id, encode(one)) for one in events])
    with subprocess.Popen([sys.executable, "-c", HOLD, url, str(LEASE)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"60\n"
        finally:
            os.kill(holder.pid, signal.SIGKILL)
    with open_topics(url) as topics:
        alerts, _ = watch_all(
            tmp_path, topics, SqliteWatchStore(tmp_path / "w.sqlite"), lease=LEASE, name="watched-runs"
        )
    assert alerts == plain(evaluate(MONITORS, events, until=400))
