"""A tap that waits within a pattern, and is asked to end: as a program, by SIGTERM."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.tap.syncs import start_tap

TAP = """
import os
import sys
import time

from balog.tap import Tap
from balog.tap.http import Policy
from balog.tap.patterns import concurrently

tap = Tap("tap-slow")


def wait(number):
    if number < 2:
        return [{"id": number}]
    sys.stderr.write("waiting\\n")
    sys.stderr.flush()
    %s
    return []


@tap.stream("rows", key_properties=["id"], schema={"type": "object", "properties": {"id": {"type": "integer"}}})
def rows():
    %s


tap.run()
"""

WAITS = {
    "a request": "time.sleep(500)",
    "another try": """
    for attempt in Policy(first=500, longest=500, chance=lambda: 1.0).attempts():
        with attempt:
            raise TimeoutError
    """,
}


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("a request", "yield from concurrently(range(9), wait)"),
        ("another try", "for number in range(9): yield wait(number)"),
    ],
)
def test_a_wait_ends_when_the_run_does(what: str, how: str, tmp_path: Path) -> None:
    (tmp_path / "tap.py").write_text(TAP % (WAITS[what], how))
    process = start_tap(tmp_path, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        while b"waiting" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        if "Policy" in WAITS[what]:
            while b"trying again" not in process.stderr.readline():
                pass
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=100)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143
    messages = [json.loads(line) for line in out.splitlines()]
    found = [one["record"]["id"] for one in messages if one["type"] == "RECORD"]
    # Threads wait before this one has taken the first results: those may be missing, but only from the end.
    assert found == ([0, 1][: len(found)] if "concurrently" in how else [0, 1])
    assert messages[-1]["type"] == "STATE"
    assert messages[-1]["value"]["currently_syncing"] == "rows"
