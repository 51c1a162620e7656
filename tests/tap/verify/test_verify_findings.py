"""What each rule says, branch by branch, of a catalog and of messages; no tap is run for it."""

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest

from balog.tap.verify import Options
from balog.tap.verify.catalogs import DiscoveryOutput
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.output_reader import KnownStreams, OutputReader
from balog.tap.verify.process import ProcessResult
from balog.tap.verify.rules import CHECKS
from balog.tap.verify.runs import SyncRun

ENTRY: dict[str, Any] = {
    "tap_stream_id": "s",
    "stream": "s",
    "schema": {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}},
    "metadata": [
        {
            "breadcrumb": [],
            "metadata": {
                "table-key-properties": ["id"],
                "forced-replication-method": "INCREMENTAL",
                "valid-replication-keys": ["at"],
            },
        },
        {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}},
        {"breadcrumb": ["properties", "at"], "metadata": {"inclusion": "automatic"}},
    ],
}
SCHEMA = {"type": "SCHEMA", "stream": "s", "schema": ENTRY["schema"], "key_properties": ["id"]}
THING = {"type": "THING"}
A, B, C = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))


def entry(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(ENTRY), **changed}


def rooted(**metadata: Any) -> dict[str, Any]:
    """Return an entry whose metadata is that of the stream alone."""
    return entry(
        metadata=[{"breadcrumb": [], "metadata": {name.replace("_", "-"): value for name, value in metadata.items()}}]
    )


def catalog(*entries: Any) -> dict[str, Any]:
    return {"streams": list(entries)}


def record(identity: int, at: Any = A, **more: Any) -> dict[str, Any]:
    return {"type": "RECORD", "stream": "s", "record": {"id": identity, "at": at}, **more}


def state(at: Any) -> dict[str, Any]:
    return {"type": "STATE", "value": {"bookmarks": {"s": {"at": at}}}}


def ran(*messages: Any, given: Any = None, stderr: str = "", name: str = "sync", rest: str = "", **end: Any) -> SyncRun:
    """Return a run that wrote messages and the ``rest`` of a line."""
    known = KnownStreams(replication_keys={"s": "at"}, state=given)
    output = OutputReader(Leaks(None), known, most=1000)
    output.stdout(("".join(json.dumps(each) + "\n" for each in messages) + rest).encode())
    output.logs.feed(stderr.encode())
    output.close(cut=False)
    return SyncRun(name=name, output=output, result=ProcessResult(**end))


def said(rule: str, sync: SyncRun | None = None, **more: Any) -> list[str]:
    """What a rule says is wrong; of what cannot be judged, the reason in brackets."""
    usual = {"sync": sync, "made": [sync], "entries": {"s": ENTRY}, "catalog": catalog(ENTRY), "config": {}}
    trials: Any = SimpleNamespace(**{**usual, "options": Options(), **more})
    found = [(each.outcome, each.detail) for each in CHECKS[rule].findings(trials)]
    return [f"({detail})" if outcome == "skipped" else detail for outcome, detail in found if outcome != "passed"]


@pytest.mark.parametrize(
    ("rule", "document", "detail"),
    [
        ("catalog-is-valid", catalog(), "the catalog has no stream"),
        ("catalog-is-valid", catalog(ENTRY, 5), "streams[1] is not an object"),
        ("catalog-is-valid", catalog(entry(stream="")), "has no stream that is a string"),
        ("catalog-is-valid", catalog(entry(tap_stream_id=7)), "has no tap_stream_id that is a string"),
        ("catalog-is-valid", catalog(entry(metadata={})), "its metadata is not a list"),
        ("schemas-are-json-schema", catalog(entry(schema={"type": "array"})), "its type is not object"),
        ("schemas-are-json-schema", catalog(entry(schema={"type": ["null", "object"]})), "it has no properties"),
        (
            "breadcrumbs-exist",
            catalog(entry(metadata=[{"breadcrumb": "properties", "metadata": {}}])),
            "metadata[0] is not a breadcrumb (list) with metadata (object)",
        ),
        ("breadcrumbs-exist", catalog(entry(metadata=rooted()["metadata"] * 2)), "two items have the breadcrumb []"),
        (
            "replication-is-valid",
            catalog(rooted(forced_replication_method="INCREMENTAL")),
            "INCREMENTAL without a replication key",
        ),
        *(
            (
                "replication-is-valid",
                catalog(rooted(forced_replication_method=method)),
                "the replication method is not one of FULL_TABLE, INCREMENTAL, LOG_BASED",
            )
            for method in ("", {"x": 1}, {}, [], 0, False, {"replication-method": ""})
        ),
    ],
)
def test_what_is_wrong_with_a_catalog_is_said(rule: str, document: dict[str, Any], detail: str) -> None:
    assert said(rule, discovered=DiscoveryOutput(document=document)) == [detail]
    assert said(rule, discovered=DiscoveryOutput(document=catalog(ENTRY))) == []


@pytest.mark.parametrize(
    ("second", "detail"),
    [
        (DiscoveryOutput(fault="nothing was written to stdout"), "the second time nothing was written to stdout"),
        (DiscoveryOutput(document=catalog(ENTRY)), "is in only one of two discoveries"),
        (
            DiscoveryOutput(document=catalog(entry(tap_stream_id="t", stream="t"), ENTRY)),
            "the second discovery has another order of streams",
        ),
    ],
)
def test_a_second_discovery_is_held_against_the_first(second: DiscoveryOutput, detail: str) -> None:
    first = DiscoveryOutput(document=catalog(ENTRY, entry(tap_stream_id="t", stream="t")))

    assert said("discovery-is-repeatable", discovered=first, second_discovery=second) == [detail]


@pytest.mark.parametrize(
    ("rule", "messages", "detail"),
    [
        ("state-is-written", [SCHEMA, record(1), state(A), record(2)], "1 of 2 records follow the last STATE"),
        ("schema-has-the-catalog-keys", [{**SCHEMA, "key_properties": ["id", "no"]}], "the key no is not a property"),
        ("schema-has-the-catalog-keys", [{**SCHEMA, "key_properties": ["at"]}], "the catalog has id, SCHEMA has at"),
        ("versions-are-activated", [SCHEMA, record(1, version=1), record(2)], "1 of 2 records have no version"),
        ("versions-are-activated", [record(1, version=1), record(2, version=2)], "records of 2 versions in one run"),
        (
            "versions-are-activated",
            [record(1, version=1), {"type": "ACTIVATE_VERSION", "stream": "s", "version": 2}],
            "an ACTIVATE_VERSION has a version that no record has",
        ),
        ("message-types-are-known", [SCHEMA, THING], "1 of 2 lines are not: line 2 is of an unknown type"),
        ("messages-are-whole", [{"type": "STATE"}], "line 1 is a STATE without a value"),
        ("state-is-an-object", [{"type": "STATE", "value": 5}], "line 1 is the first whose value is not an object"),
    ],
)
def test_what_is_wrong_with_messages_is_said(rule: str, messages: list[Any], detail: str) -> None:
    found = said(rule, ran(*messages))

    assert any(each.startswith(detail) for each in found), found


FULL = {"type": "SCHEMA", "stream": "f", "schema": {"type": "object"}, "key_properties": []}
ROW = {"type": "RECORD", "stream": "f", "record": {"a": 1}}
COUNT = 'INFO METRIC: {"type": "counter", "metric": "record_count", "value": 3, "tags": {}}\n'
TIMER = 'INFO METRIC: {"type": "timer", "metric": "http_request_duration", "value": 0.1, "tags": {}}\n'
MANY = [record(number) for number in range(300)]
GIVEN = state(B)["value"]
REVERTED = "the last STATE has an older bookmark than a STATE before it"
STUCK = "the bookmark did not advance, although newer records were written"
REPEATED = "1 of 2 records repeat a key, the first is record 2"


@pytest.mark.parametrize(
    ("rule", "sync", "detail"),
    [
        pytest.param(*case[1:], id=case[0])
        for case in (
            ("stuck", "bookmark-advances", ran(SCHEMA, record(1, C), state(B), given=GIVEN), STUCK),
            ("back", "bookmark-advances", ran(SCHEMA, record(1, C), state(A), given=GIVEN), "the bookmark went back"),
            ("forward", "bookmark-advances", ran(SCHEMA, record(1, C), state(C), given=GIVEN), ""),
            ("fell", "bookmark-advances", ran(SCHEMA, record(1, A), record(2, C), state(C), state(A)), REVERTED),
            (
                "recovered",
                "bookmark-advances",
                ran(SCHEMA, record(1, A), state(B), record(2, C), state(A), state(C)),
                "",
            ),
            ("any type", "only-messages-on-stdout", ran({**SCHEMA, "type": "schema"}, THING, record(1)), ""),
            ("any case", "message-types-are-known", ran({**SCHEMA, "type": "schema"}), ""),
            ("by one rule", "messages-are-whole", ran({"type": "STATE", "value": "later"}), ""),
            ("no name", "counts-are-right", ran(SCHEMA, record(1), stderr=COUNT), "3 counted, 1 written"),
            ("a timer", "requests-are-timed", ran(SCHEMA, record(1), stderr=TIMER), ""),
            (
                "no HTTP",
                "requests-are-timed",
                ran(SCHEMA, record(1)),
                "(nothing shows that its source uses HTTP)",
            ),
            ("metrics", "logs-are-bounded", ran(SCHEMA, *MANY, stderr=TIMER * 301), ""),
            (
                "lines",
                "logs-are-bounded",
                ran(SCHEMA, *MANY, stderr="INFO here is one\n" * 301),
                "301 lines besides metrics, 0.0 MB on stderr for 300 records, 0.0 MB",
            ),
            ("empty", "state-is-written", ran(SCHEMA, FULL, ROW), "(no stream is incremental)"),
        )
    ],
)
def test_what_a_rule_says_of_one_sync(rule: str, sync: SyncRun, detail: str) -> None:
    assert said(rule, sync) == ([detail] if detail else [])


def test_a_bookmark_that_a_next_run_sets_back_is_said() -> None:
    before = ran(SCHEMA, record(1, C), state(C))
    again = ran(SCHEMA, state(A), name="resume")

    found = said("state-only-moves-forward", before, resumed=[(before.output.last_state, again)])

    assert found == ["its bookmark went back"]


@pytest.mark.parametrize(("method", "found"), [("FULL_TABLE", [REPEATED]), ("LOG_BASED", [])])
def test_a_row_of_a_log_may_come_again(method: str, found: list[str]) -> None:
    sync = ran(SCHEMA, record(1), record(1))
    sync.output.streams["s"].replication_key = ""

    said_of_it = said("keys-are-unique", sync, entries={"s": rooted(replication_method=method)})

    assert [detail for detail in said_of_it if detail[0] != "("] == found


def read_at(hour: int) -> list[dict[str, Any]]:
    """Return records that have the time at which they were read."""
    rows = [record(1), record(2, B)]
    for each in rows:
        each["record"]["read_at"] = f"2026-02-01T{hour:02}:00:00Z"
    return rows


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ([record(1), record(2, B)], [record(1), record(2, B)], 2),
        ([record(1), record(1), record(2, B), record(2, B)], [record(1), record(2, B)], 4),
        ([record(1), record(2, B)], [record(2, B), record(3, B), record(4, B)], 0),
        ([record(1), record(2, B)], [record(2, B)], 0),
        (read_at(1), read_at(2), 2),
    ],
)
def test_rows_that_come_again_are_compared_by_their_content_or_key(first: Any, second: Any, count: int) -> None:
    """Given a source that has grown, or one whose rows came twice, then their number says nothing."""
    resumed = [(SimpleNamespace(line=1), ran(SCHEMA, *second))]

    found = said("resumes-with-little", ran(SCHEMA, *first), resumed=resumed)

    assert found == ([f"all {count} records were written again"] if count else [])


TRACE = "Traceback (most recent call last):\n  File 'x.py', line 1, in <module>\nKeyError: 'id'\n"


@pytest.mark.parametrize(
    ("stderr", "count"),
    [
        (TRACE, 1),
        ("INFO reading\n" + TRACE, 1),
        ("INFO:tap-x:reading\n" + TRACE, 1),
        ("WARNING odd\n" + TRACE, 1),
        ("WARNING odd\n" + TRACE.replace("<module>", "f") + "INFO going on\n", 0),
        ("ERROR failed\n" + TRACE, 0),
        ("ERROR failed\n" + TRACE + TRACE, 1),
    ],
)
def test_a_traceback_is_the_interpreters_own_where_no_logger_wrote_it(stderr: str, count: int) -> None:
    failed = ran(stderr=stderr, code=1, name="no config")

    assert failed.output.logs.tracebacks == count
    if "ERROR" not in stderr:
        found = said("bad-config-is-explained", ran(code=1), missing_config=failed, broken_config=ran())
        assert any("a traceback, and no line at ERROR" in each for each in found) == bool(count)


def test_the_last_line_of_a_bare_traceback_is_not_called_missing() -> None:
    crashed = ran(
        stderr=TRACE.replace("KeyError: 'id'", "Exception: Config is missing 'url'"), code=1, name="no config"
    )

    assert said("bad-config-is-explained", ran(code=1), missing_config=crashed, broken_config=crashed)[:1] == [
        "no config: a traceback, and no line at ERROR or CRITICAL: Exception: Config is missing 'url'"
    ]


@pytest.mark.parametrize(
    ("line", "is_failure"),
    [
        ("ERROR page 3 failed", True),
        ("ERROR:tap-x:503 Server Error", True),
        ("CRITICAL the rest could not be read", True),
        ("ERROR done\n" + TRACE, True),
        ("ERROR something is odd", False),
        ("WARNING page 3 failed", False),
        ("INFO 0 failed", False),
    ],
)
def test_a_failure_that_is_logged_does_not_end_with_0(line: str, is_failure: bool) -> None:
    assert bool(said("failure-is-not-success", ran(SCHEMA, record(1), stderr=line + "\n"))) == is_failure
    assert said("failure-is-not-success", ran(SCHEMA, record(1), stderr=line + "\n", code=1)) == [
        "(no sync was complete)"
    ]


@pytest.mark.parametrize(
    "rule",
    [
        *("only-messages-on-stdout", "lines-end", "nothing-is-left-running"),
        *("bad-config-is-refused", "broken-state-is-refused", "state-of-another-tap-is-harmless"),
    ],
)
def test_a_tap_that_cannot_start_keeps_nothing_by_that(rule: str) -> None:
    dead = ran(code=1)

    [found] = said(
        rule, dead, missing_config=dead, broken_config=dead, bare_config=dead, broken_state=dead, foreign_state=dead
    )

    assert found.startswith("(")


ONE, NONE, FAILED = ran(SCHEMA, record(1)), ran(SCHEMA), ran(SCHEMA, code=1)
HUNG = {"stopped": "timeout", "seconds": 30, "code": -15}
SILENT = "exit code 1, and nothing on stderr"


@pytest.mark.parametrize(
    ("rule", "runs", "detail"),
    [
        ("only-selected-streams-come", {"alone": ("s", NONE)}, "it writes records, but none when it is selected alone"),
        ("only-selected-streams-come", {"alone": ("s", FAILED)}, f"it cannot be synced alone: {SILENT}"),
        ("only-selected-streams-come", {"alone": ("s", ONE)}, ""),
        (
            "automatic-properties-come",
            {"deselected": ({}, ran(code=1, name="sync of fewer properties"))},
            f"(sync of fewer properties wrote no records: {SILENT})",
        ),
        ("broken-state-is-refused", {"broken_state": ran(SCHEMA, record(1), code=1)}, "1 records came"),
        ("broken-state-is-refused", {"broken_state": ran(**HUNG)}, "still running after 30 s"),
        ("state-of-another-tap-is-harmless", {"foreign_state": NONE}, "nothing came"),
        ("state-of-another-tap-is-harmless", {"foreign_state": ran(code=1)}, "exit code 1 without output"),
        ("state-of-another-tap-is-harmless", {"foreign_state": ran(code=1, stderr="CRITICAL what a state\n")}, ""),
        ("properties-form-works", {"by_properties": NONE}, "wrote no records"),
        ("properties-form-works", {"by_properties": ran(SCHEMA, record(1), code=1)}, SILENT),
        (
            "properties-form-works",
            {"sync": NONE, "by_properties": ONE},
            "wrote records that it does not write with --catalog",
        ),
        (
            "interrupted-output-is-whole",
            {"interrupted": ran(SCHEMA, record(1), code=143, rest='{"type": "REC')},
            "the last line is torn",
        ),
        (
            "interrupted-output-is-whole",
            {"interrupted": ran(SCHEMA, record(1), code=143, rest='{"type": "STATE", "value": {}}')},
            "the last line has no newline",
        ),
        (
            "bad-config-is-refused",
            {"missing_config": ran(name="missing config", **HUNG), "broken_config": ran(code=1)},
            "missing config: still running after 30 s",
        ),
    ],
)
def test_what_a_rule_says_of_another_run(rule: str, runs: dict[str, Any], detail: str) -> None:
    assert said(rule, **{"sync": ONE, **runs}) == ([detail] if detail else [])


def test_a_run_that_fails_where_it_should_go_on_is_said() -> None:
    whole, failed = ran(SCHEMA, record(1), state(A)), ran(code=1, stderr="CRITICAL no\n")
    last = whole.output.last_state

    for rule, more, detail in (
        ("interrupted-resumes-without-a-gap", {"interrupted": whole, "after_interruption": failed}, ""),
        ("resumes-without-a-gap", {"resumed": [(last, failed)]}, "from the STATE in line 3: "),
        ("only-selected-properties-come", {"deselected": ({}, failed)}, ""),
    ):
        assert said(rule, whole, **more) == [f"{detail}exit code 1; said: no"], rule


@pytest.mark.parametrize(
    "values", [(0, 0, 1), ("9.5", "9.5", "10.5"), ("a", "a", "B"), ("Ä", "Ä", "z"), ("b-1", "b-1", "B_0")]
)
def test_values_that_sources_sort_their_own_way_are_not_out_of_order(values: tuple[Any, Any, Any]) -> None:
    """Given a bookmark of 0, decimals as text, or texts of any collation, then no record is lost by it."""
    first, bookmark, second = values
    sync = ran(SCHEMA, record(1, first), state(bookmark), record(2, second), state(second))

    for rule in ("bookmark-is-not-ahead", "bookmark-advances", "bookmark-reaches-the-records", "state-is-written"):
        assert said(rule, sync) == [], rule


def test_a_second_sync_with_fewer_records_shows_that_success_is_not_complete() -> None:
    rows = [record(number, A) for number in range(40)]

    def compared(first: list[Any], second: list[Any]) -> list[str]:
        sync, other = ran(SCHEMA, *first), ran(SCHEMA, *second, name="sync by both")
        return said("success-is-complete", sync, made=[sync, other], catalog=None, resumed=[])

    assert compared(rows, rows) == []
    assert compared(rows, rows[:30]) == ["the run 'sync by both' ended with exit code 0 without 10 of 40 records"]
    assert compared(rows[:30], rows) == [
        "the first sync ended with exit code 0 without 10 of 40 records that came later"
    ]
    assert compared(rows, [*rows, record(99, B)]) == []  # the source got one
    assert compared(rows, [*rows[5:], record(99, B)]) == []  # and lost others


@pytest.mark.parametrize(
    ("draft", "share", "rule", "is_broken"),
    [
        ({}, 0.9, "records-match-schema", False),
        ({}, 1.0, "records-match-schema", True),
        ({}, 0.9, "schema-messages-are-json-schema", False),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, 0.9, "schema-messages-are-json-schema", True),
    ],
)
def test_a_schema_that_names_no_draft_may_be_of_draft_4(draft: Any, share: float, rule: str, is_broken: bool) -> None:
    schema = {**draft, "type": "object", "properties": {"share": {"maximum": 1, "exclusiveMaximum": True}}}
    row = {"type": "RECORD", "stream": "s", "record": {"id": 1, "at": A, "share": share}}

    assert bool(said(rule, ran({**SCHEMA, "schema": schema}, row))) == is_broken
