"""Versions in a folder: numbered without gaps, whoever pushes at once and whoever is killed."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.storage import StorageError
from balog.service.control import ControlError, ServiceStatus, VersionConflict, open_control
from balog.service.control.store import canonical, sha_of
from balog.service.jobs import JobStatus

ONE = b'{"streams": [{"name": "orders"}]}'
TWO = b'{"streams": [{"name": "orders", "rate": 5}]}'


@pytest.fixture(params=["folder", "memory"])
def control(request, tmp_path):
    opened = open_control(str(tmp_path / "control") if request.param == "folder" else f"memory://{uuid4().hex}")
    yield opened
    opened.close()


def push(control, data=ONE, base=None):
    return control.push(data, who="ann", message="why", base=base)


def test_a_place_where_nothing_was_pushed_has_no_version(control):
    assert control.head() is None
    assert control.entries() == []
    assert control.services() == []
    with pytest.raises(ControlError, match="no version yet"):
        control.rollback(1, who="ann", message="")


def test_what_is_pushed_is_the_head_with_who_when_and_why(control):
    entry = push(control)

    assert control.head() == entry
    assert (entry.number, entry.who, entry.message, entry.action) == (1, "ann", "why", "push")
    assert abs(entry.when - datetime.now(timezone.utc)) < timedelta(minutes=5)
    assert control.document(entry.sha) == canonical(ONE)
    assert entry.sha == sha_of(canonical(ONE))


def test_the_same_document_otherwise_written_is_no_new_version(control):
    first = push(control)

    assert push(control, b'{ "streams":\n[{"name":"orders"}] }') == first
    assert len(control.entries()) == 1


def test_who_knew_an_older_version_is_told_of_the_newer(control):
    push(control)
    push(control, TWO, base=1)
    with pytest.raises(VersionConflict, match="version 2 was pushed meanwhile") as caught:
        push(control, b"{}", base=1)
    assert caught.value.head == 2
    assert control.head().number == 2


def test_a_rollback_is_a_new_version_of_an_older_document(control):
    push(control)
    push(control, TWO)
    entry = control.rollback(who="bob", message="no")

    assert (entry.number, entry.origin, entry.action) == (3, 1, "rollback")
    assert control.document(entry.sha) == canonical(ONE)
    assert [one.number for one in control.entries(2)] == [3, 2]


def test_a_rollback_goes_to_any_version_and_to_the_empty_document(control):
    push(control)
    push(control, TWO)
    push(control, b'{"streams": []}')
    assert control.rollback(2, who="x", message="").sha == sha_of(canonical(TWO))
    assert control.document(control.rollback(0, who="x", message="").sha) == b"{}"
    with pytest.raises(ControlError, match="no version 9; the newest is 5"):
        control.rollback(9, who="x", message="")


def test_a_second_rollback_goes_on_where_the_document_differs(control):
    push(control)
    push(control, TWO)
    assert control.rollback(who="x", message="").origin == 1
    assert control.rollback(who="x", message="").origin == 2


def test_a_head_is_found_by_who_has_never_looked_before(control, tmp_path):
    for number in range(12):
        push(control, b'{"watch": {"events": %d}}' % (number + 1))
    fresh = open_control(control.place)

    assert fresh.head().number == 12
    push(control, TWO)
    assert fresh.head().number == 13


def test_a_document_that_was_changed_by_hand_is_not_taken(tmp_path):
    control = open_control(str(tmp_path))
    entry = push(control)
    (tmp_path / "documents" / f"{entry.sha}.json").write_bytes(b"{}")
    with pytest.raises(ControlError, match="does not match its name"):
        control.document(entry.sha)
    (tmp_path / "documents" / f"{entry.sha}.json").unlink()
    with pytest.raises(ControlError, match="is missing"):
        control.document(entry.sha)


def test_an_entry_that_is_none_is_said(tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "00000001.json").write_bytes(b"{")
    with pytest.raises(ControlError, match="not an entry of the log"):
        open_control(str(tmp_path)).head()


@pytest.mark.parametrize("name", ["a/b: c", "ü" * 100])
def test_a_service_s_report_is_there_until_the_next_and_for_a_day(control, name):
    job = JobStatus(name="big", kind="filter", state="running", taken=3)
    status = ServiceStatus(
        service=name,
        number=1,
        sha="x",
        head=2,
        state="refused",
        reason="no",
        when=datetime.now(timezone.utc),
        applied=None,
        every=10.0,
        jobs=[job],
    )
    control.report(status)
    control.report(msgspec.structs.replace(status, number=2))
    control.report(msgspec.structs.replace(status, service="old", when=datetime.now(timezone.utc) - timedelta(days=2)))

    assert control.services() == [msgspec.structs.replace(status, number=2)]


def test_of_many_who_push_onto_one_version_one_wins(tmp_path):
    push(open_control(str(tmp_path)))
    start = threading.Barrier(8)

    def attempt(number):
        control = open_control(str(tmp_path))
        start.wait(30)
        try:
            return push(control, b'{"watch": {"events": %d}}' % number, base=1).number
        except VersionConflict:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert sorted(filter(None, pool.map(attempt, range(1, 9)))) == [2]


PUSHER = """
import sys
from balog.service.control import open_control
place, who = sys.argv[1:]
control = open_control(place)
print("ready", flush=True)
sys.stdin.readline()
for number in range(10_000):
    document = b'{"streams": [{"name": "%s-%d"}]}' % (who.encode(), number)
    print(control.push(document, who=who, message=str(number)).number, flush=True)
"""


def start_pushing(place, who):
    command = [sys.executable, "-c", PUSHER, str(place), who]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def test_who_is_killed_while_pushing_leaves_whole_versions_without_gaps(tmp_path):
    """Given a pusher that is killed at some moment, again and again, then what it was told is there."""
    for round in range(4):
        child = start_pushing(tmp_path, f"r{round}")
        child.stdin.write("go\n")
        child.stdin.flush()
        told = [int(child.stdout.readline()) for _ in range(3 + round)]
        child.kill()
        told += [int(line) for line in child.stdout.read().split("\n")[:-1]]
        child.stdout.close()
        child.stdin.close()
        child.wait()
        control = open_control(str(tmp_path))
        entries = control.entries(10_000)
        assert [entry.number for entry in reversed(entries)] == list(range(1, len(entries) + 1))
        assert set(told) <= {entry.number for entry in entries if entry.who == f"r{round}"}
        for entry in entries:
            json.loads(control.document(entry.sha))
    assert push(control).number == len(entries) + 1


@pytest.mark.parametrize("step", ["document", "entry"])
def test_who_is_killed_at_a_step_of_a_push_leaves_the_old_head(tmp_path, step):
    push(open_control(str(tmp_path)))
    child = os.fork()
    if child == 0:
        if step == "document":
            os.rename = lambda *_: os._exit(0)
        else:
            os.link = lambda *_: os._exit(0)
        push(open_control(str(tmp_path)), TWO)
    os.waitpid(child, 0)

    assert open_control(str(tmp_path)).head().number == 1
    assert push(open_control(str(tmp_path)), TWO).number == 2


def test_a_winner_who_is_told_that_it_lost_knows_better(tmp_path, monkeypatch):
    """Given a network that asks twice, then the second answer is no, and the entry there is ours."""
    control = open_control(str(tmp_path))
    create = control._storage.create
    monkeypatch.setattr(control._storage, "create", lambda data, name: create(data, name) and create(data, name))

    assert push(control).number == 1


def test_a_place_that_cannot_keep_numbers_apart_takes_no_version(tmp_path, monkeypatch):
    control = open_control(str(tmp_path))

    def refuse(data, name):
        raise StorageError("no", retryable=False)

    monkeypatch.setattr(control._storage, "create", refuse)
    with pytest.raises(StorageError):
        push(control)
    assert control.head() is None


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(document=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), values, max_size=4))
def test_a_document_s_name_is_of_its_content_alone(document):
    spaced = json.dumps(document, indent=3).encode()
    turned = json.dumps(dict(reversed(document.items()))).encode()

    assert canonical(spaced) == canonical(turned)
    assert json.loads(canonical(spaced)) == document
