"""Runs that are independent go side by side, and one by one where they must."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from balog.tap.verify import Options, VerifyReport, verify
from balog.tap.verify.rules import CHECKS
from tests.waiting import wait_for

TAP = Path(__file__).parent / "sinful_tap.py"
AROUND = """
import os, sys, time
RUNS = os.open(os.environ["RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(change): os.write(RUNS, b"%d %d\\n" % (change, time.monotonic_ns()))
note(1)
import atexit
atexit.register(note, -1)
time.sleep(0.15)
config = sys.argv[sys.argv.index("--config") + 1] if "--config" in sys.argv else ""
if "ROTATES" in os.environ and "--catalog" in sys.argv and config == os.environ["ROTATES"]:
    open(config, "a").write(" ")
sys.argv = sys.argv[1:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
"""
"""Runs a script, and notes when it begins and ends."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    path = tmp_path / "config.json"
    path.write_text('{"base": "x"}')
    return path


def verified(config: Path, jobs: int) -> VerifyReport:
    command = [sys.executable, "-S", "-E", "-c", AROUND, str(TAP), "--config", str(config)]
    return verify(command, Options(jobs=jobs, timeout=30, grace=5, skip=("interruption",)))


def most_at_a_time(config: Path, after: int = 0) -> int:
    """The largest number of runs at a time, of those that began after a number of others."""
    lines = [line.split() for line in (config.parent / "runs").read_text().splitlines()]
    running = begun = most = 0
    for change, _ in sorted(((int(change), int(when)) for change, when in lines), key=lambda each: each[1]):
        running += change
        begun += change > 0
        most = max(most, running if begun > after else 0)
    return most


def test_there_are_as_many_runs_at_a_time_as_jobs_and_the_findings_are_the_same(config: Path) -> None:
    found = []
    for jobs in (1, 3):
        report = verified(config, jobs)
        assert most_at_a_time(config) == jobs
        assert report.is_clean, report.failed
        found.append({(each.rule.id, each.outcome, each.stream, each.detail) for each in report.findings})
        (config.parent / "runs").unlink()

    assert found[0] == found[1]
    assert {rule for rule, *_ in found[0]} == {id for id, check in CHECKS.items() if check.rule.group != "interruption"}


def test_after_a_run_that_changed_the_config_runs_go_one_by_one(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a tap that stores a refresh token which can be used once, then two runs must not share it."""
    monkeypatch.setenv("ROTATES", str(config))

    verified(config, 3)

    assert most_at_a_time(config, after=6) == 1  # discover twice, --version, --about, and the first sync


def test_a_first_sync_that_hangs_is_the_only_one(config: Path) -> None:
    command = [sys.executable, "-S", "-E", str(TAP), "--config", str(config), "--sin", "hangs"]

    report = verify(command, Options(jobs=4, timeout=2.0, grace=0.2, rules=("selection", "state")))

    assert {run.name for run in report.runs} == {"discover", "sync"}
    [alone] = [finding.detail for finding in report.findings if finding.rule.id == "only-selected-streams-come"]
    assert re.fullmatch(r"a sync wrote nothing in \d s", alone)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_whatever_signal_ends_the_verification_no_run_goes_on(tmp_path: Path, number: int) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"token": "hush-hush"}))
    program = "import os, signal, sys, time\nsignal.signal(15, signal.SIG_IGN)\n"
    program += f"open(os.path.join({str(pids)!r}, str(os.getpid())), 'w')\ntime.sleep(60)"
    words = ["tap", "verify", "--jobs", "3", "--rules", "observability", "--rules", "discovery", "--timeout", "30"]
    command = [sys.executable, "-c", program, "--config", str(tmp_path / "config.json")]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    verification = subprocess.Popen(
        [sys.executable, "-m", "balog", *words, "--", *command],
        env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: len(list(pids.iterdir())) == 3)

    verification.send_signal(number)
    verification.wait(20)

    wait_for(lambda: not any(Path("/proc", pid.name).exists() for pid in pids.iterdir()))
    wait_for(lambda: list(temporary.iterdir()) == [])
