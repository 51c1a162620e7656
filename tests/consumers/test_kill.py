"""kill -9 at random moments: every event whose publish returned is handled, and the file stays whole."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.waiting import wait_for

HANDLERS = """
import os, time
from balog.consumers import consumer_config

file = os.open("handled", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@consumer_config(topic="orders")
def note(settings, event):
    time.sleep(0.001)
    os.write(file, (event.header.id + "\\n").encode())
"""

PUBLISHER = """
import sys, time
from balog.event import Event, encode
from balog.topics import Message, open_topics

with open_topics("local:topics") as home:
    while True:
        events = [Event.new("tests", {"n": n}) for n in range(7)]
        home.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])
        sys.stdout.write("".join(event.header.id + "\\n" for event in events))
        sys.stdout.flush()
        time.sleep(0.02)
"""

ROUNDS = 3
CONSUME = [sys.executable, "-m", "balog", "consume", "team", "--topics", "local:topics"]
SHORT_LEASE = ["--lease", "0.5"]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_no_event_is_lost_when_publisher_and_consumer_are_killed(tmp_path: Path) -> None:
    (tmp_path / "team.py").write_text(HANDLERS)
    with (tmp_path / "published").open("ab") as published, (tmp_path / "errors").open("ab") as errors:
        for _ in range(ROUNDS):
            before = [size(tmp_path / "published"), size(tmp_path / "handled")]
            processes = [
                subprocess.Popen([sys.executable, "-c", PUBLISHER], cwd=tmp_path, stdout=published, stderr=errors),
                subprocess.Popen([*CONSUME, *SHORT_LEASE], cwd=tmp_path, stderr=errors),
            ]
            wait_for(lambda old=before: size(tmp_path / "published") > old[0] and size(tmp_path / "handled") > old[1])
            for process in random.sample(processes, 2):
                time.sleep(random.uniform(0, 0.3))
                process.kill()
            assert [process.wait() for process in processes] == [-signal.SIGKILL] * 2, (tmp_path / "errors").read_text()
    again = [*CONSUME, *SHORT_LEASE, "--until-empty"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

    accepted = (tmp_path / "published").read_text().split()
    handled = Counter((tmp_path / "handled").read_text().split())
    assert len(accepted) > 7 * ROUNDS
    assert set(accepted) <= set(handled)
    # Only what was in hand at a kill may be handled again: a batch, or the second of acks that it had gathered.
    assert sum(count - 1 for count in handled.values()) <= ROUNDS * 1000
    with closing(sqlite3.connect(tmp_path / "topics" / "orders.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0] >= len(accepted)
        assert connection.execute("SELECT COUNT(*) FROM leases").fetchone() == (0,)
