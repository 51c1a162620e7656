"""What the state of one stream may say, and when."""

from datetime import datetime
from typing import Any

import pytest

from balog.tap.bookmarks import EveryN, EverySeconds, Progress, State, make_strategy
from balog.tap.errors import RecordError, SyncError

SCHEMA = {"properties": {"at": {"type": ["null", "string"], "format": "date-time"}, "no": {"type": "integer"}}}


class Log:
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, message: str, **fields: Any) -> None:
        self.warnings.append(message)


def at(second: int) -> str:
    return f"2026-11-20T00:00:{second:02}Z"


def progress_of(entry: dict[str, Any] | None = None, **settings: Any) -> Progress:
    """Return the progress of contacts, which has an entry in the state or none."""
    state = State({"bookmarks": {"contacts": entry}} if entry else None)
    return Progress(state, "contacts", **{"key": "at", "schema": SCHEMA, **settings})


def bookmark(progress: Progress, key: str = "at") -> Any:
    return progress.state.get("contacts", key)


def sync(progress: Progress, *seconds: int | None) -> list[Any]:
    """Give records with these seconds; give the bookmark after each."""
    said = []
    for second in seconds:
        if progress.see({"at": None if second is None else at(second)}):
            progress.checkpoint()
        said.append(bookmark(progress))
    return said


class TestStrategies:
    def test_the_end_alone_when_nothing_is_said(self) -> None:
        progress = progress_of()
        assert sync(progress, 1, 2, 3) == [None] * 3
        progress.finish()
        assert bookmark(progress) == at(3)

    def test_after_each_n_records(self) -> None:
        assert sync(progress_of(strategy=EveryN(2)), 1, 2, 3, 4, 5) == [None, at(2), at(2), at(4), at(4)]

    def test_when_the_seconds_are_over(self) -> None:
        times = iter([0.0, 5.0, 10.0, 12.0, 21.0])
        strategy = EverySeconds(10, clock=lambda: next(times))
        assert sync(progress_of(strategy=strategy), 1, 2, 3, 4) == [None, at(2), at(2), at(4)]

    def test_when_a_function_says_so(self) -> None:
        strategy = make_strategy(lambda record, count: record["at"] == at(2) or count == 4)
        assert sync(progress_of(strategy=strategy), 1, 2, 3, 4) == [None, at(2), at(2), at(4)]

    def test_a_source_without_order_has_no_bookmark_in_the_middle(self) -> None:
        assert sync(progress_of(strategy=EveryN(1), is_sorted=False), 1, 2) == [None, None]

    def test_the_taps_own_code_may_ask_whatever_the_strategy_is(self) -> None:
        progress = progress_of()
        sync(progress, 1, 2)
        progress.checkpoint(asked=True)
        assert bookmark(progress) == at(2)
        sync(progress, 3)
        progress.fail()
        assert bookmark(progress) == at(2)

    def test_the_taps_own_code_may_say_that_a_window_without_order_is_over(self) -> None:
        progress = progress_of(is_sorted=False)
        sync(progress, 2, 1)
        progress.checkpoint(asked=True)
        sync(progress, 7, 5)
        progress.fail()
        assert bookmark(progress) == at(2)


class TestForward:
    def test_never_back(self) -> None:
        """A lookback has the source give what is before the bookmark."""
        progress = progress_of({"at": at(30)}, strategy=EveryN(1))
        assert sync(progress, 10, 20) == [at(30), at(30)]
        progress.finish()
        assert bookmark(progress) == at(30)

    def test_not_by_another_form_of_the_same_instant(self) -> None:
        progress = progress_of({"at": "2026-11-20T01:00:30+01:00"})
        sync(progress, 30)
        progress.finish()
        assert bookmark(progress) == "2026-11-20T01:00:30+01:00"

    def test_null_values_leave_it(self) -> None:
        assert sync(progress_of(strategy=EveryN(1)), None, 1, None) == [None, at(1), at(1)]

    def test_a_record_without_the_key_is_refused_and_what_is_right_stays(self) -> None:
        progress = progress_of(strategy=EveryN(10))
        sync(progress, 1, 2)
        with pytest.raises(RecordError, match="missing"):
            progress.see({})
        progress.fail()
        assert bookmark(progress) == at(2)

    def test_unknown_parts_of_a_state_stay(self) -> None:
        given = {"bookmarks": {"contacts": {"at": at(1), "cursor": {"x": 1}}, "other": {"id": 5}}, "mine": [1]}
        state = State(given)
        progress = Progress(state, "contacts", key="at", schema=SCHEMA)
        sync(progress, 2)
        progress.finish()
        given["bookmarks"]["contacts"]["at"] = at(2)  # type: ignore[index]
        assert state.as_json() == given

    def test_times_that_are_objects_are_kept_as_json_has_them(self) -> None:
        progress = progress_of()
        progress.see({"at": datetime(2026, 11, 20, 0, 0, 1)})
        progress.finish()
        assert bookmark(progress) == at(1)


class TestDisorder:
    def test_the_first_record_out_of_order_takes_back_what_was_said_in_the_middle(self) -> None:
        log = Log()
        progress = progress_of({"at": at(1)}, strategy=EveryN(1), log=log)
        assert sync(progress, 5, 9, 7, 12) == [at(5), at(9), at(1), at(1)]
        assert len(log.warnings) == 1
        assert "is_sorted=False" in log.warnings[0]

    def test_the_bookmark_of_the_end_is_right_all_the_same(self) -> None:
        progress = progress_of(strategy=EveryN(1))
        sync(progress, 5, 9, 7)
        progress.finish()
        assert bookmark(progress) == at(9)

    def test_nothing_is_said_of_a_source_that_promised_no_order(self) -> None:
        log = Log()
        progress = progress_of(log=log)
        sync(progress, 5, 9, 7)
        progress.fail()
        assert log.warnings == []

    def test_what_the_tap_set_itself_is_not_taken_back(self) -> None:
        progress = progress_of(strategy=EveryN(1))
        progress.set(at(4))
        assert sync(progress, 5, 9, 7)[-1] == at(4)

    def test_another_try_begins_with_an_order_of_its_own(self) -> None:
        progress = progress_of(strategy=EveryN(1))
        sync(progress, 5, 9)
        progress.restart()
        assert sync(progress, 5, 10) == [at(9), at(10)]


class TestFromWhere:
    def test_from_the_bookmark_less_the_lookback(self) -> None:
        progress = progress_of({"at": at(30)}, lookback=10, start_date="2020-01-01")
        assert (progress.bookmark, bookmark(progress)) == (at(20), at(30))

    def test_from_the_start_date_when_there_is_none(self) -> None:
        assert progress_of(lookback=10, start_date="2020-01-01").bookmark == "2020-01-01T00:00:00Z"
        assert progress_of().bookmark is None

    @pytest.mark.parametrize(
        ("entry", "found", "warning"),
        [
            ({"updated": at(30)}, None, "another key"),
            ({"at": None}, None, ""),
            ({"version": 5, "rollup": {}, "position": 1}, None, ""),  # what versions and children keep
            ({"at": "2999-01-01T00:00:00Z"}, "2999-01-01T00:00:00Z", "future"),
        ],
    )
    def test_a_bookmark_of_another_key_or_in_the_future_is_told(self, entry: Any, found: Any, warning: str) -> None:
        log = Log()
        assert progress_of(entry, log=log).bookmark == found
        assert [warning in message for message in log.warnings] == [True] * bool(warning)

    @pytest.mark.parametrize("value", [5, "soon", [1], True])
    def test_a_bookmark_of_the_wrong_type_is_refused(self, value: Any) -> None:
        with pytest.raises(SyncError, match="contacts: the bookmark of 'at' in the state: expected a time"):
            progress_of({"at": value})

    def test_a_lookback_for_texts_is_refused(self) -> None:
        with pytest.raises(SyncError, match="lookback"):
            progress_of({"code": "b"}, key="code", schema={"properties": {"code": {"type": "string"}}}, lookback=1)


class TestSet:
    def test_moves_forward_alone(self) -> None:
        progress = progress_of()
        assert progress.set(at(5))
        assert not progress.set(at(3))
        assert bookmark(progress) == at(5)

    def test_the_end_of_a_window_may_be_later_than_any_record(self) -> None:
        progress = progress_of()
        sync(progress, 1)
        progress.set(at(9))
        progress.finish()
        assert bookmark(progress) == at(9)

    def test_that_of_a_child_waits_until_all_parents_are_done(self) -> None:
        parent = Progress(state := State(), "accounts")
        child = Progress(state, "contacts", key="at", schema=SCHEMA, parent=parent)
        assert not child.set(at(5))
        child.checkpoint(asked=True)
        assert bookmark(child) is None
        parent.finish()
        assert bookmark(child) == at(5)

    def test_is_of_the_keys_kind(self) -> None:
        with pytest.raises(SyncError, match="expected a time"):
            progress_of().set(5)

    def test_any_json_where_there_is_no_key(self) -> None:
        progress = progress_of(key=None)
        progress.set({"lsn": [1, 2]})
        progress.set({"lsn": [0]})
        assert progress.bookmark == {"lsn": [0]}
        assert progress.state.as_json()["bookmarks"] == {"contacts": {"position": {"lsn": [0]}}}


class TestUnknownKind:
    """Of a key whose schema does not say what it is."""

    def sync(self, entry: dict[str, Any], *values: Any) -> Progress:
        progress = progress_of(entry, key="code", schema={}, strategy=EveryN(1))
        for value in values:
            if progress.see({"code": value}):
                progress.checkpoint()
        return progress

    def test_numbers_and_texts_are_compared_as_they_come(self) -> None:
        for values in ((9, 10), ("10", "9")):
            progress = self.sync({}, *values)
            progress.finish()
            assert bookmark(progress, key="code") == values[1]

    def test_records_of_another_kind_than_the_bookmark_leave_it_and_are_told_at_the_end(self) -> None:
        progress = self.sync({"code": 5}, "a", "b")
        with pytest.raises(SyncError, match="contacts: the bookmark of 'code': numbers and texts cannot be compared"):
            progress.finish()
        progress.fail()
        assert bookmark(progress, key="code") == 5
