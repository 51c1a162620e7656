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


def entry(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(ENTRY), **changed}


def catalog(*entries: Any) -> dict[str, Any]:
    return {"streams": list(entries)}


def record(identity: int, at: Any = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"type": "RECORD", "stream": "s", "record": {"id": identity, "at": at}, **more}


def state(at: Any) -> dict[str, Any]:
    return {"type": "STATE", "value": {"bookmarks": {"s": {"at": at}}}}


def ran(*messages: Any, given: Any = None, stderr: str = "", code: int = 0, name: str = "sync") -> SyncRun:
    known = KnownStreams(replication_keys={"s": "at"}, state=given)
    output = OutputReader(Leaks(None), known, most=1000)
    output.stdout("".join(json.dumps(each) + "\n" for each in messages).encode())
    output.logs.feed(stderr.encode())
    output.close(cut=False)
    return SyncRun(name=name, output=output, result=ProcessResult(code=code))


def said(rule: str, sync: SyncRun | None = None, **more: Any) -> list[str]:
    """What a rule says is wrong; of what cannot be judged, the reason in brackets."""
    trials: Any = SimpleNamespace(
        sync=sync, made=[sync], entries={"s": ENTRY}, catalog=catalog(ENTRY), config={}, options=Options(), **more
    )
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
        (
            "breadcrumbs-exist",
            catalog(entry(metadata=[{"breadcrumb": [], "metadata": {}}] * 2)),
            "two items have the breadcrumb []",
        ),
        (
            "replication-is-valid",
            catalog(entry(metadata=[{"breadcrumb": [], "metadata": {"forced-replication-method": "INCREMENTAL"}}])),
            "INCREMENTAL without a replication key",
        ),
        *(
            (
                "replication-is-valid",
                catalog(entry(metadata=[{"breadcrumb": [], "metadata": {"forced-replication-method": method}}])),
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


A, B, C = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))


@pytest.mark.parametrize(
    ("rule", "messages", "detail"),
    [
        ("state-is-written", [SCHEMA, record(1), state(A), record(2)], "1 of 2 records follow the last STATE"),
        (
            "schema-has-the-catalog-keys",
            [{**SCHEMA, "key_properties": ["id", "no"]}],
            "the key no is not a property of",
        ),
        ("schema-has-the-catalog-keys", [{**SCHEMA, "key_properties": ["at"]}], "the catalog has id, SCHEMA has at"),
        ("versions-are-activated", [SCHEMA, record(1, version=1), record(2)], "1 of 2 records have no version"),
        ("versions-are-activated", [record(1, version=1), record(2, version=2)], "records of 2 versions in one run"),
        (
            "versions-are-activated",
            [record(1, version=1), {"type": "ACTIVATE_VERSION", "stream": "s", "version": 2}],
            "an ACTIVATE_VERSION has a version that no record has",
        ),
        ("message-types-are-known", [SCHEMA, {"type": "THING"}], "1 of 2 lines are not: line 2 is of an unknown type"),
        ("messages-are-whole", [{"type": "STATE"}], "line 1 is a STATE without a value"),
        ("state-is-an-object", [{"type": "STATE", "value": 5}], "line 1 is the first whose value is not an object"),
    ],
)
def test_what_is_wrong_with_messages_is_said(rule: str, messages: list[Any], detail: str) -> None:
    trials: Any = SimpleNamespace(sync=ran(*messages), made=[], entries={"s": ENTRY}, catalog={}, options=Options())

    found = [finding.detail for finding in CHECKS[rule].findings(trials)]

    assert any(each.startswith(detail) for each in found), found


@pytest.mark.parametrize(
    ("last", "detail"),
    [(B, "the bookmark did not advance, although newer records were written"), (A, "the bookmark went back"), (C, "")],
)
def test_a_bookmark_moves_from_the_one_that_was_given(last: str, detail: str) -> None:
    sync = ran(SCHEMA, record(1, C), state(last), given=state(B)["value"])

    assert said("bookmark-advances", sync) == ([detail] if detail else [])


def test_a_last_bookmark_that_is_older_than_one_on_the_way_is_said() -> None:
    fell_back = ran(SCHEMA, record(1, A), record(2, C), state(C), state(A))
    reverted = ran(SCHEMA, record(1, A), state(B), record(2, C), state(A), state(C))

    assert said("bookmark-advances", fell_back) == ["the last STATE has an older bookmark than a STATE before it"]
    assert said("bookmark-advances", reverted) == []


def test_a_bookmark_that_a_next_run_sets_back_is_said() -> None:
    before = ran(SCHEMA, record(1, C), state(C))
    again = ran(SCHEMA, state(A), name="resume")

    found = said("state-only-moves-forward", before, resumed=[(before.output.last_state, again)])

    assert found == ["its bookmark went back"]


def test_any_type_of_message_is_permitted_on_stdout_and_known_ones_are_in_any_case() -> None:
    sync = ran({**SCHEMA, "type": "schema"}, {"type": "THING"}, record(1))

    assert said("only-messages-on-stdout", sync) == []
    assert said("message-types-are-known", ran(SCHEMA)) == []
    assert sync.output.streams["s"].schemas == 1


def test_a_state_of_another_kind_is_told_by_one_rule() -> None:
    assert said("messages-are-whole", ran({"type": "STATE", "value": "later"})) == []


@pytest.mark.parametrize(
    ("method", "found"), [("FULL_TABLE", ["1 of 2 records repeat a key, the first is record 2"]), ("LOG_BASED", [])]
)
def test_a_row_of_a_log_may_come_again(method: str, found: list[str]) -> None:
    output = OutputReader(Leaks(None), KnownStreams(), most=10)
    output.stdout("".join(json.dumps(each) + "\n" for each in (SCHEMA, record(1), record(1))).encode())
    sync = SyncRun(name="sync", output=output, result=ProcessResult())
    metadata = [{"breadcrumb": [], "metadata": {"replication-method": method}}]
    trials: Any = SimpleNamespace(sync=sync, entries={"s": entry(metadata=metadata)})

    details = [each.detail for each in CHECKS["keys-are-unique"].findings(trials) if each.outcome == "failed"]

    assert details == found


def _second(*records: dict[str, Any]) -> dict[str, Any]:
    """A run that goes on from the last state of the first, and wrote these records."""
    return {"resumed": [(SimpleNamespace(line=1), ran(SCHEMA, *records))]}


@pytest.mark.parametrize(
    ("first", "second", "detail"),
    [
        ([record(1), record(2, B)], [record(1), record(2, B)], "all 2 records were written again"),
        (
            [record(1), record(1), record(2, B), record(2, B)],
            [record(1), record(2, B)],
            "all 4 records were written again",
        ),
        ([record(1), record(2, B)], [record(2, B), record(3, B), record(4, B)], ""),
        ([record(1), record(2, B)], [record(2, B)], ""),
    ],
)
def test_rows_that_come_again_are_compared_by_their_content(first: Any, second: Any, detail: str) -> None:
    """Given a source that has grown, or one whose rows came twice, then their number says nothing."""
    found = said("resumes-with-little", ran(SCHEMA, *first), **_second(*second))

    assert found == ([detail] if detail else [])


def test_rows_that_say_when_they_were_read_are_compared_by_key() -> None:
    def read_at(hour: int) -> list[dict[str, Any]]:
        found = [record(1), record(2, B)]
        for each in found:
            each["record"]["read_at"] = f"2026-02-01T{hour:02}:00:00Z"
        return found

    assert said("resumes-with-little", ran(SCHEMA, *read_at(1)), **_second(*read_at(2))) == [
        "all 2 records were written again"
    ]


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
    assert ran(SCHEMA, stderr=stderr).output.logs.tracebacks == count


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


def test_counts_without_the_name_of_a_stream_are_held_against_all_records() -> None:
    line = 'INFO METRIC: {"type": "counter", "metric": "record_count", "value": 3, "tags": {}}\n'

    assert said("counts-are-right", ran(SCHEMA, record(1), stderr=line)) == ["3 counted, 1 written"]


def test_a_timer_of_requests_is_enough_where_no_address_is_shown() -> None:
    timer = 'INFO METRIC: {"type": "timer", "metric": "http_request_duration", "value": 0.1, "tags": {}}\n'

    assert said("requests-are-timed", ran(SCHEMA, record(1), stderr=timer)) == []
    assert said("requests-are-timed", ran(SCHEMA, record(1))) == ["(nothing shows that its source uses HTTP)"]


def test_metrics_are_not_held_against_a_tap_that_asks_once_for_each_record() -> None:
    timer = 'INFO METRIC: {"type": "timer", "metric": "http_request_duration", "value": 0.1, "tags": {}}\n'
    records = [record(number) for number in range(300)]

    assert said("logs-are-bounded", ran(SCHEMA, *records, stderr=timer * 301)) == []
    assert said("logs-are-bounded", ran(SCHEMA, *records, stderr="INFO here is one\n" * 301)) != []


@pytest.mark.parametrize(
    ("alone", "detail"),
    [
        (ran(SCHEMA), "it writes records, but none when it is selected alone"),
        (ran(SCHEMA, code=1), "it cannot be synced alone: exit code 1, and nothing on stderr"),
        (ran(SCHEMA, record(1)), ""),
    ],
)
def test_a_stream_that_gives_records_gives_them_alone_too(alone: SyncRun, detail: str) -> None:
    found = said("only-selected-streams-come", ran(SCHEMA, record(1)), alone=("s", alone))

    assert found == ([detail] if detail else [])


def test_keys_are_not_looked_for_where_nothing_came() -> None:
    fewer = ran(code=1, name="sync of fewer properties")

    assert said("automatic-properties-come", ran(SCHEMA, record(1)), deselected=({}, fewer)) == [
        "(sync of fewer properties wrote no records: exit code 1, and nothing on stderr)"
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

    found = said(
        rule, dead, missing_config=dead, broken_config=dead, bare_config=dead, broken_state=dead, foreign_state=dead
    )

    assert len(found) == 1
    assert found[0].startswith("(")


@pytest.mark.parametrize(
    ("rule", "run", "detail"),
    [
        ("broken-state-is-refused", ran(SCHEMA, record(1), code=1), "1 records came"),
        ("state-of-another-tap-is-harmless", ran(SCHEMA), "nothing came"),
        ("state-of-another-tap-is-harmless", ran(code=1), "exit code 1 without output"),
        ("state-of-another-tap-is-harmless", ran(code=1, stderr="CRITICAL what a state\n"), ""),
    ],
)
def test_a_wrong_state_is_refused_in_words_before_records_come(rule: str, run: SyncRun, detail: str) -> None:
    found = said(rule, ran(SCHEMA, record(1)), broken_state=run, foreign_state=run)

    assert found == ([detail] if detail else [])


def test_a_broken_state_that_hangs_is_no_refusal() -> None:
    hung = ran()
    hung.result = ProcessResult(stopped="timeout", seconds=30, code=-15)

    assert said("broken-state-is-refused", ran(SCHEMA, record(1)), broken_state=hung) == ["still running after 30 s"]


@pytest.mark.parametrize(
    ("other", "detail"),
    [(ran(SCHEMA), "wrote no records"), (ran(SCHEMA, record(1), code=1), "exit code 1, and nothing on stderr")],
)
def test_the_older_form_gives_the_same_streams(other: SyncRun, detail: str) -> None:
    assert said("properties-form-works", ran(SCHEMA, record(1)), by_properties=other) == [detail]


def test_the_older_form_gives_no_streams_beside() -> None:
    found = said("properties-form-works", ran(SCHEMA), by_properties=ran(SCHEMA, record(1)))

    assert found == ["wrote records that it does not write with --catalog"]


@pytest.mark.parametrize(
    ("rest", "detail"), [('{"type": "REC', "is torn"), ('{"type": "STATE", "value": {}}', "has no newline")]
)
def test_the_last_line_of_an_interrupted_run_is_whole(rest: str, detail: str) -> None:
    cut = ran(SCHEMA, record(1), code=143)
    cut.output.stdout(rest.encode())
    cut.output.close(cut=False)

    assert said("interrupted-output-is-whole", ran(SCHEMA, record(1)), interrupted=cut) == [f"the last line {detail}"]


def test_a_run_that_fails_where_it_should_go_on_is_said() -> None:
    whole, failed = ran(SCHEMA, record(1), state(A)), ran(code=1, stderr="CRITICAL no\n")
    last = whole.output.last_state

    for rule, more, detail in (
        ("interrupted-resumes-without-a-gap", {"interrupted": whole, "after_interruption": failed}, ""),
        ("resumes-without-a-gap", {"resumed": [(last, failed)]}, "from the STATE in line 3: "),
        ("only-selected-properties-come", {"deselected": ({}, failed)}, ""),
    ):
        assert said(rule, whole, **more) == [f"{detail}exit code 1; said: no"], rule


def test_a_config_that_is_not_there_and_is_waited_for_is_not_refused() -> None:
    hung = ran(name="missing config")
    hung.result = ProcessResult(stopped="timeout", seconds=30, code=-15)

    found = said("bad-config-is-refused", ran(SCHEMA), missing_config=hung, broken_config=ran(code=1))

    assert found == ["missing config: still running after 30 s"]


@pytest.mark.parametrize(
    "values", [(0, 0, 1), ("9.5", "9.5", "10.5"), ("a", "a", "B"), ("Ä", "Ä", "z"), ("b-1", "b-1", "B_0")]
)
def test_values_that_sources_sort_their_own_way_are_not_out_of_order(values: tuple[Any, Any, Any]) -> None:
    """Given a bookmark of 0, decimals as text, or texts of any collation, then no record is lost by it."""
    first, bookmark, second = values
    sync = ran(SCHEMA, record(1, first), state(bookmark), record(2, second), state(second))

    for rule in ("bookmark-is-not-ahead", "bookmark-advances", "bookmark-reaches-the-records", "state-is-written"):
        assert said(rule, sync) == [], rule


def test_an_empty_stream_needs_no_state() -> None:
    full = {"type": "SCHEMA", "stream": "f", "schema": {"type": "object"}, "key_properties": []}
    row = {"type": "RECORD", "stream": "f", "record": {"a": 1}}

    assert said("state-is-written", ran(SCHEMA, full, row)) == ["(no stream is incremental)"]


def test_a_second_sync_with_fewer_records_shows_that_success_is_not_complete() -> None:
    rows = [record(number, A) for number in range(40)]

    def compared(first: list[Any], second: list[Any]) -> list[str]:
        other = ran(SCHEMA, *second, name="sync by both")
        trials: Any = SimpleNamespace(
            sync=(sync := ran(SCHEMA, *first)), made=[sync, other], catalog=None, resumed=[], options=Options()
        )
        return [each.detail for each in CHECKS["success-is-complete"].findings(trials) if each.outcome == "failed"]

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
    row = {"type": "RECORD", "stream": "s", "record": {"id": 1, "at": "2026-01-01T00:00:00Z", "share": share}}

    assert bool(said(rule, ran({**SCHEMA, "schema": schema}, row))) == is_broken
