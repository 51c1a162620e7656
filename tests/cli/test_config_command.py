import json
import os
import threading
from datetime import datetime, timedelta, timezone

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.service.control import ServiceStatus, open_control
from balog.service.jobs import JobStatus

ONE = {"streams": [{"name": "orders", "types": ["order*"]}]}
TWO = {"streams": [{"name": "orders", "types": ["order*"], "rate": 5}], "callbacks": []}


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "control")


@pytest.fixture
def balog(place):
    def run(*arguments, code=0):
        done = CliRunner().invoke(main, ["config", *map(str, arguments), "--control", place])
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    return run


@pytest.fixture
def document(tmp_path):
    def write(content, name="doc.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_a_document_is_pushed_and_listed(balog, document):
    assert balog("push", document(ONE), "-m", "first") == "version 1: 1 change\n"
    assert balog("push", document(ONE)) == "version 1 is this document already\n"
    assert balog("push", document(TWO), "-m", "slower\x1b[31m") == "version 2: 1 change\n"

    head, newest, oldest = balog("history").splitlines()
    assert head.split() == ["VERSION", "WHEN", "WHO", "WHAT", "DOCUMENT", "WHY"]
    assert newest.startswith("2 ")
    assert newest.endswith("slower [31m")
    assert "push" in oldest
    assert oldest.endswith("first")
    assert json.loads(balog("show")) == TWO
    assert json.loads(balog("show", 1)) == ONE
    assert json.loads(balog("show", 0)) == {}


def test_a_document_may_come_through_a_pipe(balog, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words, said in ((["push"], "version 1: 1 change\n"), (["diff"], "")):
        writer = threading.Thread(target=pipe.write_text, args=(json.dumps(ONE),), daemon=True)
        writer.start()
        assert balog(*words, pipe) == said
        writer.join(10)


def test_a_bad_document_is_refused_with_all_that_is_wrong(balog, document, place):
    path = document({"streams": [{"name": "a", "where": "("}, {"name": "a", "rat": 5}], "filters": [{}]})
    told = balog("push", path, code=1)

    assert f"{path}:1:57: $.streams[1]: there is no field 'rat'" in told
    column = path.read_text().index("{}") + 1
    assert f"{path}:1:{column}: $.filters[0]: the field 'name' is missing" in told
    assert "nothing was pushed" in told
    path = document({"filters": [{"name": "f", "sources": ["a"], "to": "a"}], "streams": [{"name": "s", "where": "("}]})
    assert "2 problems" in balog("push", path, code=1)
    balog("push", document("{"), code=2)
    assert open_control(place).head() is None


def test_a_dry_run_shows_what_would_change_and_pushes_nothing(balog, document, place):
    balog("push", document(ONE))
    told = balog("push", document(TWO), "--dry-run")

    assert told.splitlines()[0] == "+ streams.orders.rate: 5"
    assert told.endswith("ok; 1 change to version 1; nothing was pushed\n")
    assert open_control(place).head().number == 1


def test_who_names_an_older_base_is_told(balog, document, place):
    balog("push", document(ONE), "--base", 0)
    told = balog("push", document(TWO), "--base", 0, code=1)

    assert "version 1 was pushed meanwhile" in told
    assert open_control(place).head().number == 1
    balog("push", document(TWO), "--base", 1)


def test_versions_and_files_are_compared(balog, document):
    balog("push", document(ONE))
    balog("push", document(TWO))
    three = document({"filters": [{"name": "f", "sources": ["orders"], "to": "b"}]}, "three.json")

    assert balog("diff", code=1) == "+ streams.orders.rate: 5\n"
    assert balog("diff", 1, 2, code=1) == balog("diff", 1, code=1) == balog("diff", code=1)
    assert balog("diff", 2, 2) == ""
    assert balog("diff", 0, 1, code=1) == '+ streams.orders: {"types":["order*"]}\n'
    assert balog("diff", three, code=1).splitlines() == [
        '- streams.orders: {"rate":5,"types":["order*"]}',
        '+ filters.f: {"sources":["orders"],"to":"b"}',
    ]
    assert "no version 9" in balog("diff", 1, 9, code=1)


def test_an_older_version_counts_again(balog, document, place):
    balog("push", document(ONE))
    balog("push", document(TWO))

    assert balog("rollback", "-m", "too slow") == "version 3: the document of version 1 again\n"
    assert balog("rollback", 1) == "version 3 has this document already\n"
    assert "rollback to 1" in balog("history")
    assert json.loads(balog("show")) == ONE


def status_of(**more):
    fields = {
        "service": "one",
        "number": 1,
        "sha": "",
        "head": 1,
        "state": "applied",
        "reason": "",
        "when": datetime.now(timezone.utc),
        "applied": None,
        "every": 10.0,
    }
    return ServiceStatus(**(fields | more))


@pytest.mark.parametrize(
    ("more", "trouble"),
    [
        ({}, None),
        ({"number": 0}, "behind by 1"),
        ({"number": 0, "state": "refused", "reason": "version 1: no KEY"}, "version 1: no KEY"),
        ({"when": timedelta(minutes=5)}, "silent for "),
        ({"when": timedelta(minutes=5), "state": "stopped"}, None),
        (
            {"jobs": [JobStatus(name="crm", kind="callback", state="running", error="answered 500")]},
            "callback crm: answered 500",
        ),
    ],
)
def test_the_status_tells_who_is_not_where_it_should_be(balog, document, place, more, trouble):
    balog("push", document(ONE))
    control = open_control(place)
    if "when" in more:  # it is how long ago
        more = {**more, "when": datetime.now(timezone.utc) - more["when"]}
    control.report(status_of(**more))
    control.report(status_of(service="two"))
    told = balog("status", code=1 if trouble else 0)

    assert told.startswith("newest: version 1, ")
    assert (trouble or "applied") in told


def test_who_is_behind_is_waited_for(balog, document, place):
    balog("push", document(ONE))
    control = open_control(place)
    control.report(status_of(number=0, head=0))
    timer = threading.Timer(0.2, lambda: control.report(status_of()))
    timer.start()
    told = balog("status", "--wait", 30)
    timer.join()

    assert "applied" in told
    control.report(status_of(number=0, head=0))
    assert "behind by 1" in balog("status", "--wait", 0.1, code=1)


def test_a_place_without_services_says_so(balog):
    assert balog("status") == "newest: version 0\nno service has reported in the last day\n"


def test_options_are_for_stores(document):
    arguments = ["config", "history", "--control", "http://127.0.0.1:9", "--options", str(document({}))]
    done = CliRunner().invoke(main, arguments)

    assert done.exit_code == 2
    assert "a service has its own" in done.output


def test_a_document_is_checked_without_a_place(document):
    good = document({**ONE, "filters": [{"name": "f", "sources": ["orders"], "to": "b"}]})
    done = CliRunner().invoke(main, ["check", "--for", "document", str(good)])
    assert (done.exit_code, done.output) == (0, f"{good}: ok, 1 stream, 1 filter, 0 tables, 0 callbacks\n")

    bad = document({"filters": [{"name": "f", "sources": ["orders"], "to": "orders"}]})
    done = CliRunner().invoke(main, ["check", "--for", "document", str(bad)])
    assert done.exit_code == 2
    assert f"{bad}:1:51: $.filters[0].to: " in done.output
    assert done.output.endswith(f"{bad}: 1 problem\n")
