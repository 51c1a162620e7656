"""Streams of bulk APIs: jobs are created, polled, downloaded, resumed and replaced."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap import BulkStream, Tap
from balog.tap.endpoints.bulk import rows_of
from balog.tap.endpoints.bulk_job import JobReport
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, Policy
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.job_server import Jobs
from tests.tap.syncs import Ran, start_tap, sync

ROWS = [
    {"id": number, "name": f'n "{number}",\n', "updated": f"2026-01-{number:02}T00:00:00Z"} for number in range(1, 8)
]
IDS = list(range(1, 8))
QUICK = Policy(tries=3, first=0.001, longest=0.001)
DECLARED: dict[str, Any] = {
    "create": "exports",
    "body": {"table": "rows", "since": "{bookmark}"},
    "job": "job.id",
    "poll": "exports/{job}",
    "status": "state",
    "parts": "files.url",
    "reason": "why",
    "count": "rows",
    "poll_seconds": 0.001,
    "key_properties": ["id"],
    "replication_key": "updated",
}


def serve(server: HttpStandIn, jobs: Jobs) -> Jobs:
    server.respond = jobs.respond
    jobs.host = server.url
    return jobs


def tap_of(server: HttpStandIn, kind: type[BulkStream] = BulkStream, **more: Any) -> Tap:
    tap = Tap("tap-bulk")
    tap.client(lambda config: Client(f"{server.url}/v1", policy=QUICK))
    declared = {**DECLARED, **more}
    tap.add(kind("rows", **{name: value for name, value in declared.items() if value is not None}))
    return tap


def sorted_ids(ran: Ran) -> list[Any]:
    return sorted(ran.ids())


def state_after(server: HttpStandIn, parts: int) -> dict[str, Any]:
    """Return the state of a sync when so many parts were written."""
    states = sync(tap_of(server)).states
    return next(each for each in states if each["bookmarks"].get("rows", {}).get("job", {}).get("parts") == parts)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("parts", [0, 1, 3, 9])
def test_all_records_of_all_parts_come_once(server: HttpStandIn, parts: int, format: str, packed: bool) -> None:
    jobs = serve(server, Jobs(ROWS if parts else [], parts=parts, polls=2, format=format))
    jobs.is_packed = packed
    ran = sync(tap_of(server, format=format))

    assert (ran.failures, sorted_ids(ran)) == ([], IDS if parts else [])
    assert not parts or sorted(ran.records(), key=lambda row: row["id"]) == ROWS
    assert jobs.requests == ["create", *["poll 1"] * 3, *[f"part 1/{number}" for number in range(parts)]]
    assert ran.state["bookmarks"].get("rows", {}) == ({"updated": "2026-01-07T00:00:00Z"} if parts else {})


def test_the_bookmark_is_in_the_request_of_the_next_job(server: HttpStandIn) -> None:
    jobs = serve(server, Jobs(ROWS))
    first = sync(tap_of(server))
    second = sync(tap_of(server), first.state)

    assert jobs.jobs == {"1": {"table": "rows"}, "2": {"table": "rows", "since": "2026-01-07T00:00:00Z"}}
    assert second.ids() == [7]


def test_a_full_table_is_a_version_that_is_activated(server: HttpStandIn) -> None:
    serve(server, Jobs(ROWS, parts=2))
    ran = sync(tap_of(server, replication_key=None))
    versions = {message["version"] for message in ran.messages if "version" in message}

    assert (sorted_ids(ran), len(versions)) == (IDS, 1)
    assert [message for message in ran.messages if message["type"] != "STATE"][-1]["type"] == "ACTIVATE_VERSION"
    (version,) = versions
    assert ran.state["bookmarks"] == {"rows": {"initial_full_table_complete": True, "active_version": version}}


@pytest.mark.parametrize("fate", ["failed", "expired", "unknown"])
def test_a_lost_job_is_replaced_a_bounded_number_of_times(server: HttpStandIn, fate: str) -> None:
    jobs = serve(server, Jobs(ROWS))
    jobs.fates = [fate, fate]
    assert sorted_ids(sync(tap_of(server))) == IDS
    assert list(jobs.jobs) == ["1", "2", "3"]

    jobs = serve(server, Jobs(ROWS))
    jobs.fates = [fate] * 9
    ran = sync(tap_of(server, jobs=2))
    why = "the source does not know it any more" if fate == "unknown" else f"its status is {fate}: out of memory"
    assert ran.failures == [f"rows: 2 jobs were lost; the last one: {why}"]
    assert list(jobs.jobs) == ["1", "2"]
    assert "job" not in ran.state["bookmarks"].get("rows", {})


def test_a_lost_job_of_a_full_table_begins_another_version(server: HttpStandIn) -> None:
    jobs = serve(server, Jobs(ROWS, parts=2))
    jobs.answers = {"part 1/1": [Answer(404), Answer(404)]}
    ran = sync(tap_of(server, replication_key=None))
    versions = [message["version"] for message in ran.messages if message["type"] == "RECORD"]

    assert sorted(ran.ids()[4:]) == IDS
    assert len(set(versions[:4])) == 1
    assert set(versions[:4]).isdisjoint(versions[4:])
    assert ran.messages[-3]["type"] == "ACTIVATE_VERSION" or "ACTIVATE_VERSION" in str(ran.messages[-3:])


def test_a_file_whose_url_expired_is_asked_for_again(server: HttpStandIn) -> None:
    jobs = serve(server, Jobs(ROWS, polls=0))
    jobs.answers = {"part 1/1": [Answer(403)]}

    assert sorted_ids(sync(tap_of(server))) == IDS
    assert jobs.requests == ["create", "poll 1", "part 1/0", "part 1/1", "poll 1", "part 1/1", "part 1/2"]


def test_another_number_of_records_than_the_source_counts_loses_the_job(server: HttpStandIn) -> None:
    jobs = serve(server, Jobs(ROWS, polls=0))
    jobs.answers = {"part 1/2": [Answer(200, b"id,name,updated\n")]}
    ran = sync(tap_of(server))

    assert (ran.code, set(ran.ids()), list(jobs.jobs)) == (0, set(IDS), ["1", "2"])


def test_a_broken_download_is_tried_again(server: HttpStandIn) -> None:
    jobs = serve(server, Jobs(ROWS))
    body = b"id,name,updated\n" + b"1,x,2026-01-01T00:00:00Z\n" * 9000
    jobs.answers = {"part 1/0": [Answer(200, body, trouble="half"), Answer(503)]}

    assert sorted_ids(sync(tap_of(server))) == IDS


class TestDeadline:
    """Jobs that run for too long."""

    def test_the_stream_fails_and_the_next_run_polls_the_same_job(self, server: HttpStandIn) -> None:
        jobs = serve(server, Jobs(ROWS, polls=10_000))
        failed = sync(tap_of(server, deadline=0.2))
        assert failed.failures == [
            "rows: the job has been running for 0.2 s; the next run polls it again, or raise deadline="
        ]

        jobs.polls = 0
        assert sorted_ids(sync(tap_of(server, deadline=0.2), failed.state)) == IDS
        assert list(jobs.jobs) == ["1"]

    def test_a_job_that_still_runs_in_the_next_run_is_replaced(self, server: HttpStandIn) -> None:
        jobs = serve(server, Jobs(ROWS, polls=10_000))
        failed = sync(tap_of(server, deadline=0.1))
        failed.state["bookmarks"]["rows"]["job"]["created"] -= 60
        sync(tap_of(server, deadline=0.1), failed.state)

        assert list(jobs.jobs) == ["1", "2"]


class TestState:
    """The job in the state."""

    def test_it_is_there_before_and_after_each_step(self, server: HttpStandIn) -> None:
        serve(server, Jobs(ROWS, parts=2))
        kept = [state["bookmarks"].get("rows", {}) for state in sync(tap_of(server)).states]
        steps = [{name: entry["job"].get(name) for name in ("id", "parts")} for entry in kept if "job" in entry]

        assert steps == [
            {"id": None, "parts": None},
            {"id": "1", "parts": None},
            {"id": "1", "parts": 1},
            {"id": "1", "parts": 2},
        ]
        assert all("updated" not in entry for entry in kept if "job" in entry)

    def test_a_job_for_another_request_is_not_resumed(self, server: HttpStandIn) -> None:
        jobs = serve(server, Jobs(ROWS))
        state = state_after(server, parts=1)
        sync(tap_of(server, body={"table": "others"}), state)

        assert jobs.jobs["2"] == {"table": "others"}

    def test_a_job_with_fewer_parts_than_were_read_is_lost(self, server: HttpStandIn) -> None:
        jobs = serve(server, Jobs(ROWS))
        state = state_after(server, parts=3)
        jobs.count = 2

        assert sorted_ids(sync(tap_of(server), state)) == IDS
        assert list(jobs.jobs) == ["1", "2"]

    def test_a_state_that_is_no_job_is_one_line(self, server: HttpStandIn) -> None:
        serve(server, Jobs(ROWS))
        ran = sync(tap_of(server), {"bookmarks": {"rows": {"job": {"id": 5}}}})

        assert ran.failures == ["rows: the job in the state is not one of this stream; remove it"]


PROGRAM = """
import sys
from balog.tap import BulkStream, Tap
from balog.tap.http import Client, Policy
from balog.tap.schema.types import date_time, integer, obj, string

tap = Tap("tap-bulk")
tap.client(lambda config: Client(sys.argv[1], policy=Policy(tries=3, first=0.001, longest=0.001)))
tap.add(BulkStream("rows", schema=obj({{"id": integer(), "name": string(), "updated": date_time()}}), **{settings!r}))
tap.run(sys.argv[2:])
"""


class Runs:
    """Runs of a tap as a program, each from the last state, all messages in order."""

    def __init__(self, folder: Path, url: str, settings: dict[str, Any]) -> None:
        self.folder, self.url = folder, url
        (folder / "tap.py").write_text(PROGRAM.format(settings=settings))
        self.messages: list[dict[str, Any]] = []
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> int:
        states = [message["value"] for message in self.messages if message["type"] == "STATE"]
        (self.folder / "state.json").write_text(json.dumps(states[-1] if states else {}))
        self.process = start_tap(self.folder, f"{self.url}/v1", "--state", "state.json", stderr=subprocess.DEVNULL)
        out, _ = self.process.communicate(timeout=120)
        whole, _, _ = out.rpartition(b"\n")
        self.messages += [json.loads(line) for line in whole.splitlines()]
        return self.process.returncode

    def ids(self) -> set[int]:
        return {message["record"]["id"] for message in self.messages if message["type"] == "RECORD"}

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.parametrize("method", ["incremental", "full"])
def test_a_run_that_is_killed_at_each_step_goes_on_with_the_same_job(
    server: HttpStandIn, tmp_path: Path, method: str
) -> None:
    """Each request is answered only after the run was killed once; so each step is the last of some run."""
    jobs = serve(server, Jobs(ROWS, parts=2, polls=0))
    declared = {**DECLARED, "key_header": "Idempotency-Key"}
    if method == "full":
        del declared["replication_key"]
    runs = Runs(tmp_path, server.url, declared)
    killed: set[str] = set()

    def kill_once(request: str) -> None:
        if request not in killed:
            killed.add(request)
            if request == "create":  # the job is created, and the answer does not come
                jobs.before = lambda request: None
                jobs.respond(server.requests[-1])
                jobs.before = kill_once
            runs.kill()

    jobs.before = kill_once
    codes = [runs() for _ in range(5)]

    assert codes == [-9, -9, -9, -9, 0]
    assert list(jobs.jobs) == ["1"]
    assert runs.ids() == set(IDS)
    records = [message for message in runs.messages if message["type"] == "RECORD"]
    assert len(records) == len(ROWS)  # what a part has is written once, since its end is in the state
    assert len({record.get("version") for record in records}) == 1
    entry = runs.messages[-1]["value"]["bookmarks"]["rows"]
    entry.pop("active_version", None)
    assert entry == ({"initial_full_table_complete": True} if method == "full" else {"updated": "2026-01-07T00:00:00Z"})


def test_sigterm_ends_a_poll_and_the_next_run_polls_the_same_job(server: HttpStandIn, tmp_path: Path) -> None:
    jobs = serve(server, Jobs(ROWS, polls=10_000))
    runs = Runs(tmp_path, server.url, {**DECLARED, "poll_seconds": 0.05})

    def stop(request: str) -> None:
        if request == "poll 1" and runs.process is not None and jobs.requests.count(request) == 3:
            runs.process.terminate()

    jobs.before = stop
    assert runs() == 143
    jobs.polls = 0
    assert runs() == 0
    assert (runs.ids(), list(jobs.jobs)) == (set(IDS), ["1"])


class TestServers:
    """Which servers parts are downloaded from."""

    def test_another_server_gets_no_credentials_and_only_if_it_is_allowed(self, server: HttpStandIn) -> None:
        with HttpStandIn() as other:
            jobs = Jobs(ROWS)
            server.respond = other.respond = jobs.respond
            jobs.host = other.url
            refused, tap = tap_of(server), tap_of(server, part_hosts=["127.0.0.*"])
            for each in (refused, tap):
                each.client(lambda config: Client(f"{server.url}/v1", auth=lambda: {"X-Key": "secret"}, policy=QUICK))
            assert sync(refused).failures == [
                "rows: a part is on the server '127.0.0.1'; if it is the source's, add it to part_hosts= (https only)"
            ]
            server.requests.clear()
            assert sorted_ids(sync(tap)) == IDS
            assert not any(request.headers.get("X-Key") for request in other.requests)
            assert all(request.headers.get("X-Key") for request in server.requests)

    def test_a_download_is_bounded_and_leaves_nothing_of_a_failed_try(self, server: HttpStandIn) -> None:
        client = Client(server.url, policy=QUICK)
        with io.BytesIO() as file:
            server.will(Answer(200, b"a" * 3000, trouble="half"), Answer(200, b"b" * 10))
            assert client.download("x", file).body == b""
            assert file.getvalue() == b"b" * 10
            server.will(Answer(200, b"c" * 3000))
            with pytest.raises(SourceError, match="larger than 2000 bytes"):
                client.download("x", file, max_bytes=2000)
            server.will(Answer(404, b"gone"))
            assert client.download("x", file, allow=(404,)).body == b"gone"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"create": [Answer(200, b"{}")]}, "the answer to the creation of a job has no id at 'job.id'"),
        ({"poll 1": [Answer(200, b'{"state": 5}')]}, "the job has no status at 'state'"),
        ({"poll 1": [Answer(200, b'{"state": "done"}')]}, "the job has no number of records at 'rows'"),
        ({"poll 1": [Answer(200, b'{"state": "done", "rows": 1}')]}, "the job is done and has no URLs at 'files.url'"),
        ({"poll 1": [Answer(200, b'{"state": "done", "rows": 1, "files": [{}]}')]}, "has no URLs at 'files.url'"),
        (
            {"part 1/0": [Answer(200, b"id,name\n1\n")]},
            "part 1 of 3: the file: row 1: has 1 values for 2 columns",
        ),
        ({"part 1/0": [Answer(200, b"id,id\n1,2\n")]}, "the file: the first line has a name twice"),
        ({"part 1/0": [Answer(200, b'id,name\n1,"x\n')]}, "a quoted value in the row of line 2 has no end"),
        ({"part 1/0": [Answer(200, b"id\n\xff\n")]}, "the file: is not utf-8: invalid start byte"),
        ({"part 1/0": [Answer(200, b"\x1f\x8b\x08\x00")]}, "the file: is cut off: its gzip stream ends early"),
    ],
)
def test_answers_that_cannot_be_used_are_one_line(server: HttpStandIn, answers: dict[str, Any], reason: str) -> None:
    serve(server, Jobs(ROWS)).answers = answers
    [failure] = sync(tap_of(server)).failures

    assert reason in failure
    assert "\n" not in failure


def test_a_part_may_be_parquet(server: HttpStandIn) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    class Columns(BulkStream):
        """One part of Parquet."""

        def download_part(self, client: Any, context: Any, part: str, file: Any) -> None:
            parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)

    serve(server, Jobs(ROWS, parts=1))
    ran = sync(tap_of(server, Columns, format="parquet"))
    assert (ran.failures, ran.records()) == ([], ROWS)


def test_a_subclass_can_have_its_own_steps(server: HttpStandIn) -> None:
    class Own(BulkStream):
        """Jobs that need no HTTP."""

        def create_job(self, client: Any, context: Any, key: str) -> str:
            return "a"

        def poll_job(self, client: Any, context: Any, job: str) -> JobReport:
            return JobReport("done", ["x", "y"])

        def download_part(self, client: Any, context: Any, part: str, file: Any) -> None:
            file.write(b'{"id": 1}\n{"id": 2}\n' if part == "x" else b'\n{"id": 3}')

    nothing = dict.fromkeys(("create", "poll", "parts", "count", "replication_key"))
    assert sync(tap_of(server, Own, format="jsonl", **nothing)).ids() == [1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"create": None}, "set create=, or override create_job"),
        ({"poll": None}, "set poll=, or override poll_job"),
        ({"parts": None}, "set parts= or result=, and not both"),
        ({"result": "x"}, "set parts= or result=, and not both"),
        ({"poll": "exports/{jbo}"}, "{jbo} is a field of the parent's record"),
        ({"done": ("Failed",)}, "'failed' is in done and in failed"),
        ({"done": "done"}, "done='done': expected a tuple of texts"),
        ({"format": "xlsx"}, "format='xlsx': expected csv or tsv or jsonl or json or parquet or excel"),
        ({"jobs": 0}, "jobs=0: expected a whole number, at least 1"),
        ({"deadline": 0}, "deadline=0: expected seconds, more than 0"),
        ({"parent": "x"}, "a bulk stream has one job, so it has no parent= and no for_each="),
        ({"pol": "x"}, "there is no setting 'pol'; did you mean 'poll'?"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(
    server: HttpStandIn, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TapError) as found:
        tap_of(server, **settings)

    assert reason in str(found.value)
    assert "\n" not in str(found.value)


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.fixed_dictionaries({"a": _texts, "b": _texts}), max_size=6), st.sampled_from(["csv", "tsv"]))
@settings(max_examples=60, derandomize=True)
def test_csv_is_read_as_python_s_writer_wrote_it(rows: list[dict[str, str]], format: str) -> None:
    import csv

    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["a", "b"], delimiter="," if format == "csv" else "\t")
    writer.writeheader()
    writer.writerows(rows)
    file = io.BytesIO(text.getvalue().encode())
    found = list(rows_of(file, format, {"b"}))

    assert found == [{"a": row["a"] or None, "b": row["b"]} for row in rows]
