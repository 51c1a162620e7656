"""Which errors are the same, and which are not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.reading.scan import scan
from balog.analytics.reading.tasks import Slice
from balog.analytics.rollups.worker import RollupQuery
from balog.event.fingerprints import masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP 500 from source after 1,234.5 s", "HTTP <n> from source after <n> s"),
        ("row 7 of  users_2\n failed", "row <n> of users_<n> failed"),
        ("no user 6f1c2d7e-0a1b-4c3d-8e9f-001122334455 here", "no user <id> here"),
        ("event LG0Vbf3qsOW27E0nCW6M001d is late", "event <n> is late"),
        ("commit deadbeef12 at 0x7fA0", "commit <n> at <n>"),
        ("customer cus_NffrFeUfNV2Hib, charge ch_3NxYz1AbCdEf", "customer cus_<n>, charge ch_<n>"),
        ("took 500ms, 1.2e-05 s, 30s, 2h or 1.5GiB", "took <n>, <n> s, <n>, <n> or <n>"),
        ("KeyError: 'customer_id'", "KeyError: <value>"),
        ("column \"a b\" and `c`, not 'd'", "column <value> and <value>, not <value>"),
        ("can't read what isn't there", "can't read what isn't there"),
        ("at 2026-11-20T07:46:12.123Z, since 2026-11-19", "at <time>, since <time>"),
        ("mail to jo.doe+x@mail.example.com bounced", "mail to <email> bounced"),
        ("cannot open /var/lib/tap/state.json: denied", "cannot open <path>: denied"),
        (r"cannot open C:\Users\jo\state.json", "cannot open <path>"),
        ("GET https://api.example.com/v1/users?page=3 answered 502", "GET https://api.example.com/<path> answered <n>"),
        ("", ""),
    ],
)
def test_what_changes_from_one_event_to_the_next_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_a_masked_message_is_bounded_and_has_no_digit_left(text: str) -> None:
    found = masked(text)
    assert len(found) <= 300
    assert not any(char in "0123456789" for char in found)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_numbers_alone_make_no_other_message(one: int, other: int) -> None:
    assert masked(f"row {one}: gave up after {other} s") == masked(f"row {other}: gave up after {one} s")


@pytest.fixture
def prints(write: Any) -> Any:
    """Gives the errors' rows of some events."""

    def prints(*documents: dict[str, Any]) -> list[dict[str, Any]]:
        path: Path = write("errors.jsonl", *documents)
        rows = [row for batch in scan([Slice(str(path))], RollupQuery()) for row in batch.to_pylist()]
        return [row for row in rows if row["kind"] == "error"]

    return prints


def frames(*places: tuple[str, int, str]) -> list[dict[str, Any]]:
    return [{"file": file, "line": line, "function": function} for file, line, function in places]


def failed(original: str = "sync failed", **exception: Any) -> dict[str, Any]:
    return {"cls_type": "log", "message": original, "exception": {"type": "HTTPError", **exception}}


def test_a_fault_is_the_same_where_lines_and_folders_moved(prints: Any, make: Any) -> None:
    old = frames(("/opt/v1/tap/main.py", 10, "main"), ("/opt/v1/tap/sync.py", 90, "sync"))
    new = frames(("/opt/v2/lib/tap/main.py", 12, "main"), ("/opt/v2/lib/tap/sync.py", 117, "sync"))
    (row,) = prints(*(make(failed(message="500 of 3", frames=found), level="ERROR") for found in (old, new)))
    assert (row["events"], row["error_type"], row["message"]) == (2, "HTTPError", "sync failed: <n> of <n>")


def test_a_traceback_in_text_has_the_same_type_and_frames_as_one_in_parts(prints: Any, make: Any) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/a/tap/main.py", line 3, in main\n    sync()\n'
        '  File "/a/tap/sync.py", line 9, in <module>\n    get()\nHTTPError: 500 of 3\n'
    )
    parts = frames(("/b/main.py", 1, "main"), ("/b/sync.py", 2, "<module>"))
    told = {"cls_type": "log", "message": "sync failed", "exc_text": text}
    one, other = prints(make(told, level="ERROR"), make(failed(message="500 of 3", frames=parts), level="CRITICAL"))
    assert one["fingerprint"] == other["fingerprint"]
    assert one["error_type"] == other["error_type"] == "HTTPError"


def test_a_function_that_calls_itself_is_one_frame_however_deep(prints: Any, make: Any) -> None:
    walks = [frames(("a.py", 1, "main"), *[("a.py", 5, "walk")] * depth) for depth in (1, 3, 900)]
    (row,) = prints(*(make(failed(frames=found), level="ERROR") for found in walks))
    assert row["events"] == 3


@pytest.mark.parametrize(
    "other",
    [
        failed("load failed", message="x", frames=frames(("a.py", 1, "main"))),
        failed(message="y", frames=frames(("a.py", 1, "main"))),
        failed(message="x", frames=frames(("a.py", 1, "other"))),
        {**failed(frames=frames(("a.py", 1, "main"))), "exception": {"type": "KeyError", "message": "x"}},
    ],
)
def test_another_message_function_or_type_is_another_fault(prints: Any, make: Any, other: dict[str, Any]) -> None:
    one = failed(message="x", frames=frames(("a.py", 1, "main")))
    assert len(prints(make(one, level="ERROR"), make(other, level="ERROR"))) == 2


def test_a_consumers_failure_is_an_error_of_any_level_with_its_reason(prints: Any, make: Any) -> None:
    payload = {
        "cls_type": "consumer_failure",
        "outcome": "retry",
        "reason": "no route to 10.0.0.7",
        "error_type": "OSError",
    }
    (row,) = prints(make(payload, level="WARNING"), make(level="WARNING"))
    assert (row["error_type"], row["message"], row["level"]) == ("OSError", "no route to <n>", "WARNING")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({"exit_code": 1}, "tap-x ended with exit code <n>"),
        ({"exit_code": 137, "signal": "SIGKILL"}, "tap-x was ended by SIGKILL"),
        ({"exit_code": 127, "problem": "no such program"}, "no such program"),
    ],
)
def test_a_failed_run_says_how_it_ended(prints: Any, make: Any, end: dict[str, Any], message: str) -> None:
    report = {"cls_type": "run", "outcome": "failed", "duration": 1, "command": "tap-x", **end}
    (row,) = prints(make(report, level="ERROR"))
    assert row["message"] == message


def test_the_example_is_the_first_event_and_not_masked(prints: Any, make: Any) -> None:
    late, early = (
        make(
            {"cls_type": "log", "message": f"row {number} " + "x" * 500},
            level="ERROR",
            timestamp=f"2026-11-20T07:{number}:00Z",
        )
        for number in (46, 45)
    )
    (row,) = prints(late, early)
    assert row["example"]["id"] == early["header"]["id"]
    assert row["example"]["run_id"] == "r1"
    assert row["example"]["message"] == "row 45 " + "x" * 293
    assert row["message"] == "row <n> " + "x" * 292


@pytest.mark.parametrize("payload", [{}, {"cls_type": "own"}, {"cls_type": "log", "message": {"a": 1}, "exception": 5},
                                     {"cls_type": "log", "message": None, "exception": {"type": 3, "frames": "x"}},
                                     {"cls_type": "log", "exc_text": "x" * 10**6}])  # fmt: skip
def test_an_error_that_says_nothing_of_itself_has_a_fingerprint_too(prints: Any, make: Any, payload: Any) -> None:
    (row,) = prints(make(payload, level="ERROR"))
    assert len(row["fingerprint"]) == 16
    assert row["message"] is not None
