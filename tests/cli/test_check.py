import gzip
import json
import re

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.cli.check import KINDS
from tests.programs import call_balog
from tests.stand_ins.http_server import Answer, HttpStandIn


def check(path, *options, **env):
    return call_balog("check", path, *options, **env)


@pytest.fixture
def write(tmp_path):
    def write(config):
        path = tmp_path / "broker.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return path

    return write


def test_a_good_config_is_ok(write, tmp_path):
    path = write(
        {
            "sinks": [{"type": "store", "path": str(tmp_path / "a"), "topic": "e", "where": "level = 'ERROR'"}],
            "spool": {"path": str(tmp_path / "spool")},
            "quarantine": {"path": str(tmp_path / "quarantine.jsonl")},
            "records": [{"stream": "users", "mask": {"email": {"how": "sha256", "key": {"env": "MASK_KEY"}}}}],
        }
    )
    done = check(path, MASK_KEY="0123456789abcdef")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: ok, 1 sink\n", "")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["broker.json"], "checking leaves nothing behind"


def test_every_problem_is_told_at_once(write):
    path = write({"sinks": [{"type": "stor"}, {"type": "statsd", "prot": 1}], "drain": "long"})
    done = check(path)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"{path}:1:12: $.sinks[0]: there is no type 'stor'; did you mean 'store'?")
    assert "$.sinks[1]: there is no field 'prot'; did you mean 'port'?" in lines[1]
    assert "$.drain: " in lines[2]
    assert lines[3] == f"{path}: 3 problems"


def test_what_only_building_shows_is_told_at_once_too(write, tmp_path):
    (tmp_path / "file").touch()
    path = write(
        {
            "sinks": [
                {"type": "store", "path": "x", "topic": "../a"},
                {"type": "topic", "url": "nope:x", "topic": "a"},
                {"type": "store", "path": "x", "topic": "a", "where": "level ="},
                {"type": "pagerduty", "routing_key": {"env": "BALOG_TEST_NO_SUCH_KEY"}},
            ],
            "records": [{"stream": "users", "filter": "id >"}],
            "spool": {"path": str(tmp_path / "file" / "spool")},
        }
    )
    done = check(path)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    for line, place in zip(
        lines,
        [
            "$.sinks[0].topic: ",
            "$.sinks[1]",
            "$.sinks[2].where: ",
            "$.sinks[3].routing_key",
            "$.records[0].filter: ",
            "$.spool.path: ",
        ],
        strict=False,
    ):
        assert re.match(rf"{re.escape(str(path))}:1:\d+: {re.escape(place)}", line), line
    assert "BALOG_TEST_NO_SUCH_KEY" in lines[3]
    assert lines[-1] == f"{path}: 6 problems"


@pytest.mark.parametrize(("text", "says"), [("{", "not JSON"), ("", "not JSON"), ("[1]", "$: ")])
def test_a_file_that_is_no_config_is_one_line(write, text, says):
    done = check(write(text))
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize("kind", ["broker", "run", "logger", "serve", "cases", "document", "monitors"])
def test_a_syntax_error_has_its_line_as_other_problems_have(write, kind):
    path = write('{"sinks": [\n}')
    done = check(path, "--for", kind)
    assert (done.returncode, done.stderr) == (
        2,
        f"{path}:2:1: not JSON: expecting value\n{path}: 1 problem\n",
    )


@pytest.mark.parametrize(
    ("sink", "says"),
    [
        (
            {"type": "webhook", "url": "http://h/x", "retry": {"first": 60, "longest": 1}},
            "$.sinks[0].retry: longest (1) is less than first (60); expected at least first",
        ),
        (
            {"type": "prometheus", "textfile": {"path": "x"}},
            "$.sinks[0].textfile.path: the node exporter reads only files that end in .prom",
        ),
    ],
)
def test_options_that_contradict_their_purpose_are_refused(write, sink, says):
    done = check(write({"sinks": [sink]}))
    assert done.returncode == 2
    assert says in done.stderr


def test_a_missing_spool_is_worth_a_note(write, tmp_path):
    done = check(write({"sinks": [{"type": "store", "path": str(tmp_path), "topic": "e"}]}))
    assert done.returncode == 0
    assert "note: without a spool" in done.stderr
    assert check(tmp_path / "broker.json", "--for", "forward").stderr == ""  # the topic is its spool


def test_other_configs_are_checked_by_their_own_form(write):
    assert check(write({"host": "localhost", "strip": True}), "--for", "broker-statsd").returncode == 0
    done = check(write({"hots": "localhost"}), "--for", "broker-statsd")
    assert done.returncode == 2
    assert "did you mean 'host'?" in done.stderr
    done = check(write({"count": "yes"}), "--for", "run")
    assert done.returncode == 2
    assert "$.count: " in done.stderr


def test_what_is_wrong_with_one_part_hides_nothing_of_another(write, tmp_path):
    (tmp_path / "file").touch()
    path = write(
        {
            "sinks": [],
            "records": [{"stream": "users", "filter": "id >"}],
            "batch": {"to": "records", "allowed": ["s3:///x"]},
            "state": {"store": "nope://x/state.json"},
            "quarantine": {"path": str(tmp_path / "file" / "quarantine")},
        }
    )
    done = check(path)
    assert done.returncode == 2
    places = [line.removeprefix(str(path)).split(": ")[:2] for line in done.stderr.splitlines()]
    text = path.read_text()
    keys = {"filter": "$.records[0].filter", "allowed": "$.batch.allowed", "store": "$.state.store"}
    expected = [[f":1:{text.index(json.dumps(key)) + 1}", place] for key, place in keys.items()]
    quarantine = [f":1:{text.rindex(json.dumps('path')) + 1}", "$.quarantine.path"]
    assert places == [*expected, quarantine, ["", "4 problems"]]


def test_connect_tries_each_sink(write, tmp_path):
    (tmp_path / "file").touch()
    path = write(
        {
            "sinks": [
                {"type": "store", "path": str(tmp_path / "archive"), "topic": "e"},
                {"type": "store", "path": str(tmp_path / "file" / "archive"), "topic": "e"},
                {"type": "elastic", "url": "http://127.0.0.1:9"},
            ]
        }
    )
    done = check(path, "--connect")
    assert done.returncode == 1
    first, second, third = done.stdout.splitlines()[1:]
    assert first == f"store {tmp_path}/archive: does not exist yet; the first event creates it"
    assert not (tmp_path / "archive").exists()
    assert "Not a directory" in second
    assert "http://127.0.0.1:9" in third
    assert "cannot connect" in third


@pytest.mark.parametrize(
    ("sink", "status", "is_there"),
    [
        ({"type": "webhook"}, 405, True),
        ({"type": "webhook"}, 503, False),
        ({"type": "elastic", "api_key": {"env": "BALOG_TEST_KEY"}}, 200, True),
        ({"type": "elastic", "api_key": {"env": "BALOG_TEST_KEY"}}, 401, False),
        ({"type": "pagerduty", "routing_key": {"env": "BALOG_TEST_KEY"}}, 404, True),
        ({"type": "datadog", "api_key": {"env": "BALOG_TEST_KEY"}}, 200, True),
        ({"type": "datadog", "api_key": {"env": "BALOG_TEST_KEY"}}, 403, False),
        ({"type": "prometheus"}, 200, True),
        ({"type": "prometheus"}, 500, False),
    ],
)
def test_connect_asks_a_server_and_gives_it_nothing(write, sink, status, is_there):
    with HttpStandIn(lambda request: Answer(status)) as server:
        if sink["type"] == "prometheus":
            sink = {**sink, "pushgateway": {"url": server.url, "job": "balog"}}
        else:
            sink = {**sink, "url": server.url}
        done = check(write({"sinks": [sink]}), "--connect", BALOG_TEST_KEY="0123456789abcdef0123456789abcdef")
    assert done.returncode == (0 if is_there else 1), done.stderr
    assert ("is there" in done.stdout) == is_there
    assert len(server.requests) == 1
    assert all(not request.body for request in server.requests)


def test_redaction_shows_each_secret_s_place_and_rule_and_never_the_secret(tmp_path):
    events = tmp_path / "run.jsonl"
    events.write_text(
        '{"payload":{"token":"hunter2","n":1}}\n{"n":2}\nGET https://bob:hunter2@example.com\n{"pet":"rex"}\n'
    )
    (tmp_path / "logger.json").write_text('{"redact":{"extra_keys":["pet"]}}')
    done = check(events, "--redaction", "--rules", str(tmp_path / "logger.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{events}:1: $.payload.token: suffixes: token",
        f"{events}:3: $: patterns: credentials in a URL",
        f"{events}:4: $.pet: names: pet",
        f"{events}: 3 secrets in 4 lines would be replaced",
    ]
    wrong = check(tmp_path / "none.jsonl", "--redaction")
    assert wrong.returncode == 2
    assert "cannot be read" in wrong.stderr
    (tmp_path / "logger.json").write_text('{"extra_keys":["pet"]}')
    wrong = check(events, "--redaction", "--rules", str(tmp_path / "logger.json"))
    assert (wrong.returncode, 'has no "redact"' in wrong.stderr) == (2, True)


def test_redaction_reads_gzip_and_reports_a_damaged_file(tmp_path):
    lines = b'{"token":"hunter2"}\n' * 3
    archive = tmp_path / "run.jsonl.gz"
    archive.write_bytes(gzip.compress(lines))
    assert check(archive, "--redaction").stdout.splitlines()[-1] == f"{archive}: 3 secrets in 3 lines would be replaced"

    archive.write_bytes(gzip.compress(lines)[:-9])
    damaged = check(archive, "--redaction")
    assert (damaged.returncode, "is damaged or cut off" in damaged.stderr) == (2, True)


def test_outputs_of_a_logger_are_checked_beside_all_else(tmp_path):
    document = {
        "output": ["nope", "file:x?y=1", {"to": {"type": "webhook"}}, "local:s3://x", "https://h?spool=s&sync=x"],
        "redact": {"extra_keys": 3},
    }
    (tmp_path / "logger.json").write_text(json.dumps(document))
    done = check(tmp_path / "logger.json", "--for", "logger")
    assert done.returncode == 2
    for place in (
        *("$.output[0]: ", "$.output[1]: ", "$.output[2].to: ", "$.output[3]: ", "$.output[4]: "),
        "$.redact",
    ):
        assert place in done.stdout + done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["logger.json"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_each_config_is_printed_for_editors(kind):
    done = CliRunner().invoke(main, ["check", "--schema", "--for", kind])
    assert done.exit_code == 0
    assert json.loads(done.output)["$id"].startswith("urn:balog:config:")


def test_without_a_config_there_is_nothing_to_check():
    done = CliRunner().invoke(main, ["check"])
    assert (done.exit_code, "Missing argument 'CONFIG'." in done.output) == (2, True)
