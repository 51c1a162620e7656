"""Commands whose stdout takes nothing."""

import subprocess
import sys

import pytest


@pytest.fixture
def state(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"bookmarks": {"users": {"id": 7}}}')
    return path


@pytest.mark.parametrize("command", ["load", "show"])
@pytest.mark.parametrize(
    ("stdout", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_stdout_that_takes_nothing_is_one_line(state, command, stdout, reason):
    shell = f'"$0" -m balog state {command} "$1" {stdout}'
    done = subprocess.run(["bash", "-c", shell, sys.executable, str(state)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"balog state: writing failed: {reason}\n")


def test_a_reader_that_has_seen_enough_is_no_error(state):
    shell = 'set -o pipefail; { sleep 0.5; "$0" -m balog state load "$1"; } | true'
    done = subprocess.run(["bash", "-c", shell, sys.executable, str(state)], capture_output=True, text=True)
    assert done.stderr == ""
