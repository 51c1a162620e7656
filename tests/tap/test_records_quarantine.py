"""Records that break their schema, in a whole run of a tap."""

import json
import stat
from decimal import Decimal

import pytest

from balog.tap import Tap
from balog.tap.records import RecordQuarantine, default_quarantine
from tests.tap.programs import Ran

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
GIVEN = [{"id": 1}, {"id": "someone@example.com"}, {"id": 3, "at": 1_763_624_772}]


def run(capfd, *, policy="coerce", given=GIVEN, **settings):
    tap = Tap("tap-cool", **settings)

    @tap.stream("users", key_properties=["id"], schema=SCHEMA, policy=policy, epoch="seconds")
    def users():
        yield from given

    ran = Ran(capfd, tap)
    return ran.code, ran.records, ran.err


def test_the_run_goes_on_and_says_what_was_set_aside_where(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, records, err = run(capfd)
    assert code == 0
    assert records == [{"id": 1}, {"id": 3, "at": "2025-11-20T07:46:12Z"}]
    path = tmp_path / "balog" / "quarantine" / "tap-cool-users.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (kept,) = map(json.loads, path.read_text().splitlines())
    assert kept["reason"] == "$.id: expected an integer, got a string"
    assert json.loads(kept["raw"]) == {"type": "RECORD", "stream": "users", "record": GIVEN[1]}
    assert f"a record was set aside, in {path}: $.id: expected an integer, got a string" in err
    assert "someone@example.com" not in err


def test_streams_may_share_a_file_that_the_tap_names(tmp_path, capfd):
    path = tmp_path / "aside.jsonl"
    run(capfd, quarantine=str(path))
    run(capfd, quarantine=str(path))
    assert len(path.read_text().splitlines()) == 2


def test_too_many_fail_the_stream(tmp_path, capfd):
    path = str(tmp_path / "aside.jsonl")
    given = [{"id": 1}, {"id": "x"}, {"id": [object()]}, {"id": "x"}]
    code, records, err = run(capfd, given=given, quarantine=path, max_quarantined=2)
    assert code == 1
    assert records == [{"id": 1}]
    assert "CRITICAL users: $.id: expected an integer, got a string; 2 records are set aside already" in err


def test_the_first_one_fails_the_stream_by_the_policy_fail(tmp_path, capfd):
    code, records, err = run(capfd, policy="fail", quarantine=str(tmp_path / "aside.jsonl"))
    assert code == 1
    assert records == [{"id": 1}]
    assert "CRITICAL users: $.id: expected an integer, got a string" in err
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_is_nested_too_deep_is_set_aside(tmp_path, capfd):
    deep = {}
    for _ in range(20_000):
        deep = {"a": deep}
    path = tmp_path / "aside.jsonl"
    code, records, err = run(capfd, given=[{"id": 1}, {"id": 2, "at": deep}, {"id": 3}], quarantine=str(path))
    assert code == 0, err
    assert records == [{"id": 1}, {"id": 3}]
    (kept,) = map(json.loads, path.read_text().splitlines())
    assert "RecursionError" in json.loads(kept["raw"])["record"]["repr"]


def test_what_is_set_aside_is_json(tmp_path, capfd):
    path = tmp_path / "aside.jsonl"
    given = [{"id": Decimal("NaN")}, {"id": Decimal("-Infinity")}, {"id": "NaN"}]
    run(capfd, given=given, quarantine=str(path))
    kept = [json.loads(json.loads(line)["raw"], parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    assert [message["record"] for message in kept] == [
        {"repr": "{'id': Decimal('NaN')}"},
        {"repr": "{'id': Decimal('-Infinity')}"},
        {"id": "NaN"},
    ]


def test_a_file_that_cannot_be_written_fails_the_stream(tmp_path, capfd):
    code, _, err = run(capfd, quarantine=str(tmp_path))
    assert code == 1
    assert "expected an integer, got a string, and quarantine: " in err
    assert "cannot be opened" in err


def test_a_name_of_a_stream_makes_no_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_quarantine("tap", "a/../b") == str(tmp_path / "balog" / "quarantine" / "tap-a_.._b.jsonl")


def test_one_that_nothing_came_to_makes_no_file(tmp_path):
    RecordQuarantine(str(tmp_path / "q.jsonl"), None).close()
    assert list(tmp_path.iterdir()) == []
