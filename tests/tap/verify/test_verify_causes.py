"""One cause is one finding, and it is quoted: the tap's line, its exception, and the place in its code."""

from pathlib import Path

import pytest

from balog.tap.verify.leaks import Leaks
from balog.tap.verify.logs import Logs, place_of
from balog.tap.verify.process import ProcessResult
from balog.tap.verify.runs import Capture, CommandRun
from tests.tap.verify.defects import verified

OWN = 'File "/venv/lib/python3.11/site-packages/tap_foo/client.py", line 31, in get'
SDK = 'File "/venv/lib/python3.11/site-packages/singer_sdk/tap_base.py", line 482, in sync'
STANDARD = 'File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode'
SCRIPT = 'File "/venv/bin/tap-foo", line 8, in <module>'


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ((SCRIPT, OWN, SDK, STANDARD), "tap_foo/client.py:31"),
        ((SCRIPT, SDK, STANDARD), "singer_sdk/tap_base.py:482"),
        ((SCRIPT, STANDARD), "json/decoder.py:355"),
        ((f'File "{Path.cwd()}/src/own.py", line 7, in f', STANDARD), "src/own.py:7"),
        ((), ""),
    ],
)
def test_the_place_is_the_innermost_frame_of_the_tap_itself(frames: tuple[str, ...], place: str) -> None:
    trace = "Traceback (most recent call last):\n" + "".join(f"  {frame}\n    x()\n" for frame in frames)

    assert place_of(trace + "KeyError: 'id'") == place


def outcome(stderr: str, code: int = 1) -> str:
    output = Capture(Leaks(None))
    output.logs.feed(stderr.encode())
    output.close(cut=False)
    return CommandRun(name="x", output=output, result=ProcessResult(code=code)).outcome


@pytest.mark.parametrize(
    ("stderr", "quoted"),
    [
        ("INFO a\nCRITICAL no such account\nINFO b\n", "exit code 1; said: no such account"),
        (
            f"INFO a\nTraceback (most recent call last):\n  {OWN}\nKeyError: 'id'\n",
            "exit code 1; said: KeyError: 'id' (in tap_foo/client.py:31)",
        ),
        ("INFO starting\n", "exit code 1, and no line says why; the last: starting"),
        ("config.json: no such file\n", "exit code 1; said: config.json: no such file"),
        ("", "exit code 1, and nothing on stderr"),
    ],
)
def test_the_reason_of_a_failure_is_quoted(stderr: str, quoted: str) -> None:
    assert outcome(stderr) == quoted
    assert outcome(stderr, code=0) == "exit code 0"


@pytest.mark.parametrize("defect", ["crashes", "is killed"])
def test_a_tap_that_crashes_has_one_finding_for_it(config: Path, defect: str) -> None:
    report = verified(config, defect, rules=("selection", "state", "interruption", "records", "output"))

    assert [result.rule.id for result in report.failed] == ["sync-succeeds"]


def test_a_crash_of_any_sync_is_not_a_finding_about_configs(config: Path) -> None:
    report = verified(config, "crashes", rules=("bad-config-is-explained",))

    assert [result.rule.id for result in report.failed if result.rule.id != "sync-succeeds"] == []


@pytest.mark.parametrize(
    ("defect", "rule", "others"),
    [
        ("half odd time", "formats-hold", ("times-have-an-offset",)),
        ("no state", "state-is-written", ("bookmark-advances",)),
        ("text state", "state-is-an-object", ("currently-syncing-is-cleared",)),
        ("a thread dies", "failure-is-not-success", ("clean-run-has-no-errors",)),
        ("schema is a text", "catalog-is-valid", ("breadcrumbs-exist", "keys-exist")),
    ],
)
def test_a_violation_is_reported_by_one_rule(config: Path, defect: str, rule: str, others: tuple[str, ...]) -> None:
    report = verified(config, defect, rules=(rule, *others))

    assert {result.rule.id for result in report.failed} == {rule}


def test_a_link_in_a_warning_of_a_library_is_no_request(config: Path) -> None:
    logs = Logs(Leaks(None))
    logs.feed(b"UserWarning: x is deprecated. See https://docs.example/x\n")
    logs.close()
    from balog.tap.verify.rules.observability import _REQUEST

    assert not any(map(_REQUEST.search, logs.excerpts))
    assert _REQUEST.search("INFO GET https://api.example/v1")
