"""Taps that do their worst: each run ends in bounded time and memory, and what was done is said."""

import json
import sys
import time
from pathlib import Path

import pytest

from balog.tap.verify import Options, VerifyReport, verify
from balog.tap.verify.catalogs import read_discovery
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.output_reader import MAX_LINE, KnownStreams, OutputReader
from balog.tap.verify.process import Guard, ProcessResult, run
from tests.tap.verify.defects import verified
from tests.waiting import wait_for


def ran(program: str, timeout: float = 20, most: int = 1000) -> tuple[OutputReader, ProcessResult]:
    output = OutputReader(Leaks(None), KnownStreams(), most=most)
    result = run([sys.executable, "-S", "-E", "-c", program], output, Guard(), timeout=timeout, grace=0.2)
    output.close(cut=result.stopped not in ("", "interrupt"))
    return output, result


def details(report: VerifyReport) -> dict[str, str]:
    return {finding.rule.id: finding.detail for finding in report.failed}


def test_endless_junk_ends_the_run(config: Path) -> None:
    found = details(verified(config, "endless invalid", rules=("only-messages-on-stdout",)))

    assert found["only-messages-on-stdout"].startswith("10000 of 10000 lines are not: line 1 is no JSON object")


def test_a_line_without_an_end_ends_the_run(config: Path) -> None:
    found = details(
        verified(
            config,
            "endless line",
            rules=(
                "only-messages-on-stdout",
                "sync-succeeds",
            ),
        )
    )

    assert f"longer than {MAX_LINE >> 20} MiB" in found["only-messages-on-stdout"]
    assert "sync-succeeds" in found


def test_endless_records_end_at_the_number_that_was_asked_for() -> None:
    output, result = ran(
        "import json\nwhile True: print(json.dumps({'type': 'RECORD', 'stream': 'a', 'record': {'x': 'y'}}))"
    )

    assert output.records == 1000
    assert result.stopped == "records"
    assert not output.invalid


def test_40_mb_of_stderr_pass(config: Path) -> None:
    report = verified(config, "loud", rules=("logs-are-bounded",))

    assert "40.0 MB on stderr" in details(report)["logs-are-bounded"]


def test_what_ignores_sigterm_is_killed() -> None:
    program = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('x', flush=True)\ntime.sleep(60)"

    _, result = ran(program, timeout=0.3)

    assert result.was_killed
    assert result.code == -9


def test_a_child_that_holds_the_pipe_is_not_waited_for() -> None:
    _, result = ran("import subprocess\nsubprocess.Popen(['sleep', '60'])")

    assert (result.left_running, result.code) == (True, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_made_itself_independent_is_found_and_ended() -> None:
    guard = Guard()
    program = (
        "import subprocess\n"
        "away = subprocess.DEVNULL\n"
        "subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=away, stderr=away)"
    )

    output = OutputReader(Leaks(None), KnownStreams(), most=10)
    result = run([sys.executable, "-S", "-E", "-c", program], output, guard, timeout=20, grace=0.2)

    assert result.left_running
    wait_for(lambda: not guard.marked_processes(f"{guard._mark}-1"))


def test_a_tap_that_closes_its_outputs_and_goes_on_is_ended() -> None:
    _, result = ran("import os, time\nos.close(1); os.close(2); time.sleep(60)", timeout=0.3)

    assert result.stopped == "timeout"


def test_a_tap_that_a_signal_ends_is_no_success(config: Path) -> None:
    program = "import os\nos.kill(os.getpid(), 11)"
    report = verify([sys.executable, "-c", program, "--config", str(config)], Options(rules=("discovery-succeeds",)))

    assert details(report)["discovery-succeeds"] == "ended by signal 11, and nothing on stderr"


def test_streams_without_end_end_the_run() -> None:
    program = 'n = 0\nwhile True:\n print(\'{"type": "RECORD", "stream": "s%d", "record": {}}\' % n); n += 1'
    output, result = ran(program, most=100_000)

    assert result.stopped == "streams"
    assert output.records == len(output.streams) == 10_001


def test_large_states_are_not_held() -> None:
    output = OutputReader(Leaks(None), KnownStreams(), most=10)

    for number in range(60):
        value = json.dumps({"type": "STATE", "value": {"n": number, "x": "y" * 1_000_000}})
        output.stdout(value.encode() + b"\n")

    assert sum(state.size for state in output.states) < 10_000_000
    assert output.states[0].value["n"] == 0
    assert output.last_state is not None
    assert output.last_state.value["n"] == 59


def test_names_without_end_are_not_held() -> None:
    output = OutputReader(Leaks(None), KnownStreams(), most=100)
    output.stdout(
        b'{"type":"SCHEMA","stream":"s","schema":{"additionalProperties":{"type":"null"}},"key_properties":[]}\n'
    )

    for number in range(60):
        record = {str(number) + "x" * 100_000: 1, "short": None}
        output.stdout(json.dumps({"type": "RECORD", "stream": "s", "record": record}).encode() + b"\n")

    assert list(output.streams["s"].properties) == ["short"]
    assert all(len(fault) <= 1000 for fault in output.streams["s"].faults)


def test_places_where_a_catalog_could_begin_are_not_tried_for_ever() -> None:
    began = time.monotonic()

    found = read_discovery(b"\n{" * 1_000_000)

    assert found.fault == "stdout holds no catalog"
    assert read_discovery(b'{"streams": []}\n\nx\n' + b" " * 1_000_000 + b"y").noise == (0, 2)
    assert time.monotonic() - began < 5


def test_a_catalog_nested_too_deep_is_told() -> None:
    deep = b'{"properties":{"a":' * 300 + b"{}" + b"}}" * 300

    found = read_discovery(b'{"streams":[{"tap_stream_id":"a","stream":"a","schema":' + deep + b"}]}")

    assert found.fault in ("its catalog is nested too deep", "stdout holds no catalog")


def test_a_secret_is_found_in_what_was_captured_by_its_line() -> None:
    leaks = Leaks({"token": "hush-hush"})

    leaks.search_output(b"\n" * 1_000_000 + b"a hush-hush", "stdout")

    assert leaks.found == {("$.token", "stdout"): 1_000_001}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"\xff\xfe\n", "not UTF-8"),
        (b"\n", "an empty line"),
        (b"[]\n", "no JSON object"),
        (b'{"a": 1}\n', "an object without a type"),
        (b'{"type": "STATE", "value": {"x": NaN}}\n', "JSON only for Python (NaN, Infinity or half a surrogate pair)"),
        (b"[" * 100_000 + b"\n", "no JSON object"),
        (b'{"type": "RECORD"', "no JSON object"),
    ],
    ids=["bytes", "empty", "list", "typeless", "nan", "deep", "torn"],
)
def test_junk_is_told_by_its_kind(written: bytes, reason: str) -> None:
    output = OutputReader(Leaks(None), KnownStreams(), most=10)

    output.stdout(written)
    output.close(cut=False)

    assert [(invalid.line, invalid.reason) for invalid in output.invalid] == [(1, reason)]
