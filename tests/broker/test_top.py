"""``balog top`` beside real pipelines."""

import json
import os
import pty
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from balog.distribution import install_command

BALOG = [sys.executable, "-m", "balog"]
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")

TAP = """
import sys, time
line = '{"type": "RECORD", "stream": "a", "record": "' + 'x' * 1000 + '"}\\n'
while True:
    sys.stdout.write(line); sys.stdout.flush(); time.sleep(float(sys.argv[1]))
"""
TARGET = """
import sys, time
while sys.stdin.buffer.read(1000): time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BALOG_STATUS_DIR", str(tmp_path / "status"))
    (tmp_path / "tap-x").write_text(TAP)
    (tmp_path / "target-x").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def pipeline(tap_pause, target_pause):
    """Run ``balog run --count -- tap-x | target-x`` while the block lasts; give the two processes."""
    tap = [*BALOG, "run", "--count", "--", sys.executable, "tap-x", str(tap_pause)]
    with subprocess.Popen(tap, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as sidecar:
        with subprocess.Popen([sys.executable, "target-x", str(target_pause)], stdin=sidecar.stdout) as target:
            sidecar.stdout.close()
            try:
                yield sidecar, target
            finally:
                target.kill()
                sidecar.terminate()


def top(*options, **more):
    return subprocess.run([*BALOG, "top", *options], capture_output=True, timeout=120, **more)


def stages(*options):
    """Look until the sidecar is there and what it waits for is known."""
    end = time.monotonic() + 60
    while True:
        done = top("--json", *options)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["stages"]
        if any(row["waiting"] for row in found):
            return found
        assert time.monotonic() < end, found


def test_a_slow_tap_is_waited_for_in_reading(folder):
    with pipeline(0.05, 0) as (sidecar, target):
        first, second = stages()
    assert (first["stage"], first["pid"], first["waiting"]) == ("run", sidecar.pid, "reading")
    assert first["reading"] > first["writing"]
    assert 0 < first["records_per_second"] < 25
    assert first["bytes_per_second"] > 0
    assert (second["stage"], second["label"], second["pid"]) == ("other", "target-x", target.pid)
    assert (first["pipeline"], second["pipeline"]) == (1, 1)


def test_a_slow_target_is_waited_for_in_writing(folder):
    with pipeline(0, 0.1) as (sidecar, _):
        first, second = stages()
    assert (first["pid"], first["waiting"]) == (sidecar.pid, "writing")
    assert first["writing"] > 0.5
    assert second["label"] == "target-x"


def test_the_table_is_for_people(folder):
    with pipeline(0.01, 0):
        stages()
        said = top("--once", env={**os.environ, "COLUMNS": "160"}).stdout.decode()
    head, *rows = [line for line in said.splitlines() if line.strip()]
    assert head.split() == ["pipeline", "stage", "pid", "records/s", "bytes/s", "bytes", "waits", "for", "sinks"]
    (ours,) = [row.split() for row in rows if "run python" in row]
    assert ours[:2] == ["1", "run"]
    assert "reading" in ours
    assert [row.split()[0] for row in rows if "–" in row] == ["target-x"]


def test_a_table_in_a_file_is_not_cut(folder):
    """Given no terminal, then a long line of figures stands there whole."""
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with pipeline(0.01, 0):
        stages()
        said = top("--once", env=env).stdout.decode()
    head = next(line for line in said.splitlines() if line.strip())
    assert head.split() == ["pipeline", "stage", "pid", "records/s", "bytes/s", "bytes", "waits", "for", "sinks"]
    assert "…" not in said


def test_a_live_table_ends_with_ctrl_c(folder):
    """Given a terminal, then the table is drawn there again and again until Ctrl-C, which is no failure."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*BALOG, "top", "--every", "0.2"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        preexec_fn=lambda: __import__("fcntl").ioctl(slave, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(slave)
    seen = b""
    while seen.count(b"pipeline") < 3:
        seen += os.read(master, 65536)
    os.write(master, b"\x03")
    while True:
        try:
            if not os.read(master, 65536):
                break
        except OSError:
            break
    os.close(master)
    assert process.wait(60) == 0


def test_nothing_running_is_said(folder):
    done = top("--once", env={**os.environ, "COLUMNS": "200"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert "no broker and no sidecar is running" in done.stdout.decode()
    assert json.loads(top("--json").stdout) == {"stages": []}


def test_a_folder_that_is_not_safe_is_one_line(folder):
    (folder / "status").mkdir()
    (folder / "status").chmod(0o777)
    done = top("--once")
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert "others may write to it" in line


def test_without_rich_the_table_names_the_extra_and_json_works(folder):
    (folder / "rich.py").write_text("raise ImportError('not here')")
    there = {**os.environ, "PYTHONPATH": str(folder)}
    done = top("--once", env=there)
    assert done.returncode == 1
    assert install_command("top").encode() in done.stderr
    assert top("--json", env=there).returncode == 0
