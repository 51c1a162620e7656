"""A real watcher with the real clock: a run that does not come, before and after a restart."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from balog.event import Event, encode
from balog.topics import Message, open_topics

EVERY = timedelta(seconds=4)


def succeeded(at: datetime) -> Event:
    payload = {"cls_type": "run", "outcome": "succeeded", "duration": 1.0, "exit_code": 0, "command": "tap-shop"}
    return Event.new("tap-shop.run", payload, level="INFO", context={"application": "tap-shop"}, timestamp=at)


@contextmanager
def watcher(folder: Path):
    command = [sys.executable, "-m", "balog", "watch", "m.yaml", "--topics", "local:t", "--topic", "ev", "--lease", "1"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(is_done: Callable[[], bool]) -> None:
    while not is_done():
        time.sleep(0.05)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_that_does_not_come_is_noticed_after_its_deadline(tmp_path: Path, is_killed: bool) -> None:
    """Given a watcher that may be killed and started again, then the alert began at the deadline and came after it."""
    (tmp_path / "m.yaml").write_text(
        f"monitors: [{{name: late, pipeline: tap-shop, freshness: {{every: {EVERY.seconds}s}}}}]"
    )
    at = datetime.now(timezone.utc).replace(microsecond=0)
    with open_topics(f"local:{tmp_path}/t") as topics:
        topic = topics.topic("ev")
        event = succeeded(at)
        topic.publish([Message(event.header.id, encode(event))])
        with watcher(tmp_path) as process:
            if not is_killed:
                alert, came = json.loads(process.stdout.readline()), datetime.now(timezone.utc)
            else:
                wait_for(lambda: not topic.group_state("watch").pending)
        if is_killed:
            wait_for(lambda: datetime.now(timezone.utc) > at + EVERY)
            with watcher(tmp_path) as process:
                alert, came = json.loads(process.stdout.readline()), datetime.now(timezone.utc)
    payload = alert["payload"]
    assert (payload["monitor"], payload["state"]) == ("late", "firing")
    assert datetime.fromisoformat(payload["since"].replace("Z", "+00:00")) == at + EVERY <= came
