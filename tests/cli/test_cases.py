"""``balog test CASES``."""

import json
import sys

import pytest

from tests.programs import call_balog, run_program

CONFIG = {
    "sinks": [
        {"type": "pagerduty", "routing_key": {"env": "BALOG_TEST_NO_SUCH_KEY"}, "where": "level = 'ERROR'"},
        {"type": "webhook", "url": "https://hooks.example.com"},
    ],
    "strip": True,
    "records": [{"stream": "users", "filter": "id > 0", "mask": {"email": "null"}}],
}
BROKEN = '{"type": "RECORD", "stream": "users", "record": {'
CASE = {
    "name": "users are masked, errors alert",
    "input": [
        {"type": "RECORD", "stream": "users", "record": {"id": 0, "email": "a@example.com"}},
        {"type": "RECORD", "stream": "users", "record": {"id": 1, "email": "b@example.com"}},
        {"type": "LOG", "level": "ERROR", "value": {"message": "oops", "code": 7}},
        {"type": "LOG", "level": "INFO", "value": {"message": "fine"}},
        '{"type": "STATE",  "value": 1}',
    ],
    "output": [
        {"type": "RECORD", "stream": "users", "record": {"id": 1, "email": None}},
        '{"type": "STATE",  "value": 1}',
    ],
    "events": [
        [{"header": {"level": "ERROR"}, "payload": {"message": "oops"}}],
        [{"payload": {"message": "oops", "fields": {"code": 7}}}, {"payload": {"message": "fine"}}],
    ],
}


@pytest.fixture
def test_it(tmp_path):
    def run(*cases, config=CONFIG):
        path = tmp_path / "cases.json"
        path.write_text(json.dumps({"config": config, "cases": cases}))
        return call_balog("test", path)

    return run


def test_a_case_that_holds_passes_though_no_secret_is_there(test_it, tmp_path):
    done = test_it(CASE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"ok      {tmp_path}/cases.json: {CASE['name']}\n1 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"output": [*CASE["output"], "more"]}, "output, line 3 is not there, expected more"),
        ({"output": CASE["output"][:1]}, 'output, line 2: {"type": "STATE",  "value": 1}, expected no more'),
        ({"output": [{"type": "RECORD"}, CASE["output"][1]]}, "output, line 1: "),
        ({"events": [[], CASE["events"][1]]}, "events of sink 0, line 1: "),
        (
            {"events": [[{"payload": {"message": "ooops"}}], CASE["events"][1]]},
            'expected {"payload":{"message":"ooops"}}',
        ),
        ({"events": [[]]}, "events has 1 lists, and the config 2 sinks"),
        ({"input": [BROKEN]}, "exit code 1; the broker reported: "),
    ],
)
def test_a_case_that_does_not_hold_says_what_came(test_it, change, says):
    done = test_it(CASE, {**CASE, **change, "name": "changed"})
    assert done.returncode == 1
    assert says in done.stdout
    assert done.stdout.endswith("1 passed, 1 failed\n")


METRIC = {"cls_type": "metric", "version": "1.0.0", "type": "counter", "metric": "rows", "value": 1, "tags": {}}


def test_a_sink_gets_only_the_events_that_it_sends(test_it):
    """Statsd sends metrics only, and PagerDuty errors and runs: a case shows no other events for them."""
    config = {"sinks": [{"type": "statsd"}, {"type": "pagerduty", "routing_key": {"env": "BALOG_TEST_NO_SUCH_KEY"}}]}
    lines = [
        {"type": "LOG", "level": "INFO", "value": {"message": "fine"}},
        {"type": "LOG", "level": "INFO", "value": METRIC},
        {"type": "LOG", "level": "ERROR", "value": {"message": "oops"}},
    ]
    events = [[{"payload": {"metric": "rows"}}], [{"payload": {"message": "oops"}}]]
    done = test_it({"name": "each its own", "input": lines, "events": events}, config=config)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_a_dry_run_shows_only_the_events_that_a_sink_sends(tmp_path):
    path = tmp_path / "broker.json"
    path.write_text(json.dumps({"sinks": [{"type": "statsd"}], "strip": True}))
    lines = [{"type": "LOG", "level": "INFO", "value": value} for value in ({"message": "fine"}, METRIC)]
    command = [sys.executable, "-m", "balog", "broker", "--dry-run", "--config", str(path)]
    done = run_program(*command, feed="".join(json.dumps(line) + "\n" for line in lines))
    (shown,) = done.stderr.splitlines()
    assert shown.startswith("statsd localhost:8125 would get ")
    assert '"metric":"rows"' in shown.replace('": "', '":"')


def test_the_lines_of_a_case_do_not_go_to_the_config_s_quarantine(test_it, tmp_path):
    config = {**CONFIG, "quarantine": {"path": str(tmp_path / "real-quarantine")}}
    assert test_it({"name": "broken", "input": [BROKEN], "output": []}, config=config).returncode == 0
    assert not (tmp_path / "real-quarantine").exists()


def test_a_carriage_return_ends_no_line(test_it):
    texts = ["not\rjson", '{"type": "STATE", "value": 1}\r', ""]
    done = test_it({"name": "passes", "input": texts, "output": texts}, config={"sinks": []})
    assert done.returncode == 0, done.stdout


def test_new_files_of_a_batch_do_not_go_to_its_location(test_it, tmp_path):
    rows = [{"type": "RECORD", "stream": "users", "record": {"id": 1}}]
    location = tmp_path / "batches"
    for place in ({"location": str(location)}, {"location": "s3://no-such-bucket/x", "options": {"anon": True}}):
        done = test_it(
            {"name": "a file", "input": rows, "events": []}, config={"sinks": [], "batch": {"to": "batch", **place}}
        )
        assert done.returncode == 0, done.stdout
    assert not location.exists()


def test_the_config_is_relative_to_the_cases(test_it, tmp_path):
    (tmp_path / "broker.json").write_text(json.dumps(CONFIG))
    assert test_it(CASE, config="broker.json").returncode == 0


@pytest.mark.parametrize(
    ("config", "case", "says"),
    [
        ({"sinks": 1}, CASE, "$.config.sinks: "),
        (CONFIG, {"name": "x", "input": []}, "the case 'x' states nothing"),
        (CONFIG, {"name": "x", "input": [], "outputs": []}, "outputs"),
        ({"sinks": [], "records": [{"stream": "a", "filter": "("}]}, CASE, "$.records[0].filter"),
    ],
)
def test_a_file_that_is_no_cases_is_one_line(test_it, config, case, says):
    done = test_it(case, config=config)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
