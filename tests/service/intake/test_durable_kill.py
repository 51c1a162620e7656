"""kill -9 at each step of the durable path, under load: every event that was acked is downstream, once, in order."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from balog.event import decode
from balog.service.intake import drain as module
from balog.service.intake.fallback import open_fallback
from balog.service.intake.intake import EventIntake
from balog.topics import open_topics

CHILD = Path(__file__).with_name("durable_child.py")
STEPS = [
    ("before publish_new topics", 12),
    ("after publish_new topics", 12),
    ("told", 20),
    ("before publish_new fallback", 4),
    ("after publish_new fallback", 4),
    ("before receive fallback", 4),
    ("after receive fallback", 4),
    ("before ack fallback", 1),
    ("after ack fallback", 1),
    ("before trim fallback", 2),
    ("after trim fallback", 3),
]


def killed(folder: Path, step: str, count: int, first: int) -> set[str]:
    """Let a child take events until it kills itself; give the ids that it acked."""
    done = subprocess.run(
        [sys.executable, CHILD, folder, step, str(count), str(first)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    lines = done.stdout.splitlines(keepends=True)
    return {line.strip() for line in lines if line.endswith("\n")}


async def drain(folder: Path) -> None:
    with open_topics(f"local:{folder}/topics") as home:
        fallback = open_fallback(f"local:{folder}/fallback", home.url)
        intake = EventIntake(home, fallback=fallback)
        await intake.start()
        while any(lane.store == "fallback" for lane in intake.state().topics.values()):
            await asyncio.sleep(0.02)
        assert await intake.stop(5) == []
        assert fallback.waiting() == {}
        fallback.close()


@pytest.mark.parametrize(("step", "count"), STEPS, ids=[step.replace(" ", "_") for step, _ in STEPS])
def test_an_acked_event_survives_a_kill_and_is_there_once_in_order(
    step: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEASE", 0.5)
    acked: set[str] = set()
    for number in range(2):  # the second child finds what the first one left
        acked |= killed(tmp_path, step, count, number * 100_000)
    assert acked
    asyncio.run(asyncio.wait_for(drain(tmp_path), 60))
    found: list[str] = []
    with open_topics(f"local:{tmp_path}/topics") as home:
        for name in home.names():
            events = [decode(one.body) for one in home.topic(name).peek(1_000_000)]
            found += [event.header.id for event in events]
            numbers = [event.payload["n"] for event in events]
            assert numbers == sorted(numbers)
    assert len(found) == len(set(found))
    assert acked <= set(found)
