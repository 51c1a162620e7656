"""Full tables in a run, and positions that a tap sets itself: in a table, in a log."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap import Tap
from balog.tap.syncing import Stop
from tests.tap.syncs import Ran, sync

LATER = {"bookmarks": {name: {"initial_full_table_complete": True} for name in ("contacts", "rows")}}
"""The state after a first full table."""


class TestFullTables:
    def test_records_carry_the_version_that_is_activated_at_the_end(self, tap: Tap) -> None:
        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            with context.full_table():
                yield {"id": 1}
            yield {"id": 2}

        ran = sync(tap, LATER)

        assert ran.shape() == ["SCHEMA contacts", "contacts 1", "ACTIVATE_VERSION contacts", "contacts 2"]
        first, activated, second = ran.messages[2:5]
        assert first["version"] == activated["version"] > 1_700_000_000_000
        assert second["version"] == first["version"]
        assert "version" not in ran.state["bookmarks"]["contacts"]

    def test_nothing_is_activated_when_the_body_fails(self, tap: Tap) -> None:
        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            with context.full_table():
                yield {"id": 1}
                raise ValueError("no")

        ran = sync(tap, LATER)

        assert ran.shape() == ["SCHEMA contacts", "contacts 1"]

    def test_one_that_can_go_on_does_so_with_its_version(self, tap: Tap) -> None:
        broken = [True]

        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            with context.full_table():
                for number in range(context.log_position or 0, 4):
                    yield {"id": number}
                    context.set_bookmark(number + 1)
                    if broken[0] and number == 1:
                        raise ConnectionError("gone away")

        first = sync(tap)
        broken[0] = False
        second = sync(tap, first.state)

        assert (first.ids(), second.ids(), len(_versions(first, second))) == ([0, 1], [2, 3], 1)
        assert _without_version(second.state["bookmarks"]["contacts"]) == {"initial_full_table_complete": True}

    @pytest.mark.parametrize("selected", [["rows"], ["notes"], ["rows", "notes"]])
    def test_it_goes_on_where_all_that_are_selected_then_were_written(self, selected: list[str]) -> None:
        first = sync(_table(fail_at=3), selected=selected)
        second = sync(_table(), first.state)

        assert {*first.ids("notes"), *second.ids("notes")} == {*range(0, 60, 10)}
        activated = next(message["version"] for message in second.messages if "version" in message)
        versions = {
            message["record"]["id"]
            for ran in (first, second)
            for message in ran.messages
            if message["type"] == "RECORD" and message.get("version") == activated
        }
        assert versions == {*range(6)}

    def test_it_goes_on_before_the_row_whose_children_failed(self) -> None:
        first = sync(_table(fail_at=3, bad=1))
        second = sync(_table(), first.state)

        assert first.state["bookmarks"]["rows"]["position"] == 1
        assert {*first.ids("notes"), *second.ids("notes")} == {*range(0, 60, 10)}

    def test_the_version_stays_with_the_position_when_children_failed(self) -> None:
        first = sync(_table(bad=4))
        second = sync(_table(), first.state)

        assert (first.ids("rows"), second.ids("rows")) == ([*range(6)], [4, 5])
        assert len(_versions(first, second)) == 1
        assert _without_version(second.state["bookmarks"]["rows"]) == {"initial_full_table_complete": True}

    def test_rows_of_before_stay_when_records_were_set_aside(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tap: Tap
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

        @tap.stream("rows")
        def rows(context: Any) -> Any:
            with context.full_table():
                yield [{"id": 1}, {"id": "two"}]

        ran = sync(tap, LATER)

        assert ran.shape() == ["SCHEMA rows", "rows 1"]
        assert "rows: the rows of the previous version are kept" in capsys.readouterr().err

    def test_a_body_that_ends_because_the_run_does_activates_nothing(self, tap: Tap) -> None:
        stop = Stop()

        @tap.stream("rows")
        def rows(context: Any) -> Any:
            with context.full_table():
                for number in range(5):
                    if not context.is_stopping:
                        context.emit({"id": number})
                    stop.number = 15
            yield from ()

        ran = sync(tap, LATER, stop=stop)

        assert (ran.code, ran.shape()) == (143, ["SCHEMA rows", "rows 0"])

    def test_one_is_not_within_another(self, tap: Tap) -> None:
        @tap.stream("rows")
        def rows(context: Any) -> Any:
            with context.full_table():
                yield {"id": 1}
                with context.full_table():
                    yield {"id": 2}

        ran = sync(tap, LATER)

        assert ran.shape() == ["SCHEMA rows", "rows 1"]
        assert ran.failures[0].endswith("full_table() within full_table()")

    def test_what_is_returned_out_of_it_would_come_after_its_end(self, tap: Tap) -> None:
        @tap.stream("rows")
        def rows(context: Any) -> Any:
            with context.full_table():
                return [{"id": 1}]

        ran = sync(tap)

        assert ran.shape() == ["SCHEMA rows"]
        assert "full_table() needs a function that yields" in ran.failures[0]


def _versions(*runs: Ran) -> set[int]:
    return {message["version"] for ran in runs for message in ran.messages if "version" in message}


def _without_version(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "active_version"}


class _SdkTarget:
    """What a target of the Meltano SDK does: ACTIVATE_VERSION deletes rows of smaller versions, not those without."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int | None, int]] = {}

    def take(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if message["type"] == "RECORD":
                self.rows[message["record"]["id"]] = message.get("version"), message["record"]["parent_id"]
            elif message["type"] == "ACTIVATE_VERSION":
                self.rows = {
                    key: row for key, row in self.rows.items() if row[0] is None or row[0] >= message["version"]
                }


class TestIncrementalWithFullTables:
    @settings(max_examples=60, deadline=None)
    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["full", "changes", "broken full"]),
                st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["put", "drop"])), max_size=6),
            ),
            max_size=7,
        )
    )
    def test_after_each_full_table_a_target_has_the_rows_of_the_source(self, steps: list[Any]) -> None:
        """Given a first full table, whatever comes between two of them is replaced by the second one."""
        source: dict[int, int] = {1: 0, 2: 0}
        target, state = _SdkTarget(), None
        for number, (kind, changes) in enumerate([("full", []), *steps, ("full", [])], 1):
            for key, what in changes:
                if what == "put":
                    source[key] = number
                else:
                    source.pop(key, None)
            ran = sync(_incremental(source, kind), state, selected=["rows"])
            state = ran.state
            target.take(ran.messages)
            assert all(message["version"] for message in ran.messages if message["type"] == "RECORD")
            if kind == "full":
                assert {key: value for key, (_, value) in target.rows.items()} == source


def _incremental(source: dict[int, int], kind: str) -> Tap:
    """An incremental stream that reads what changed, or all."""
    tap = Tap("tap-cool")

    @tap.stream("rows", key_properties=["id"], replication_key="parent_id", is_sorted=False)
    def rows(context: Any) -> Any:
        since = context.bookmark or 0
        changed = (
            []
            if context.is_first_run
            else [{"id": key, "parent_id": value} for key, value in source.items() if value >= since]
        )
        if kind == "changes":
            yield from changed
            return
        yield from changed[:1]
        with context.full_table():
            for count, (key, value) in enumerate(source.items()):
                if kind != "full" and count == 1:
                    raise ConnectionError("gone away")
                yield {"id": key, "parent_id": value}
        yield from changed[-1:]

    return tap


def _table(fail_at: int | None = None, bad: int | None = None) -> Tap:
    """Six rows with notes; a run can go on in it."""
    tap = Tap("tap-cool")

    @tap.stream("rows", key_properties=["id"])
    def rows(context: Any) -> Any:
        with context.full_table():
            for number in range(context.log_position or 0, 6):
                yield {"id": number}
                context.set_bookmark(number + 1)
                if number == fail_at:
                    raise ConnectionError("gone away")

    @rows.substream("notes")
    def notes(parent: Any) -> Any:
        if parent["id"] == bad:
            raise ValueError("no notes")
        return [{"id": 10 * parent["id"]}]

    return tap


class _Log:
    """A small source with a log: each change has a number; rows are as the last change left them."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, int, str]] = []

    def write(self, kind: str, id: int, name: str = "") -> None:
        self.changes.append((kind, id, name))

    def rows(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for kind, id, name in self.changes:
            if kind == "delete":
                found.pop(id, None)
            else:
                found[id] = name
        return found


class TestLogBased:
    def _tap(self, log: _Log, fail_at: int | None = None) -> Tap:
        tap = Tap("tap-cool")

        @tap.stream("contacts", key_properties=["id"], replication_method="LOG_BASED", bookmark_strategy=tap.every_n(1))
        def contacts(context: Any) -> Any:
            if context.is_first_run:
                end = len(log.changes)
                with context.full_table():
                    for id, name in log.rows().items():
                        yield {"id": id, "name": name, "_sdc_deleted_at": None}
                context.set_bookmark({"lsn": end})
            start = context.log_position["lsn"]
            for number, (kind, id, name) in enumerate(log.changes[start:], start):
                if number == fail_at:
                    raise ConnectionError("gone away")
                deleted = context.now.isoformat() if kind == "delete" else None
                yield {"id": id, "name": name, "_sdc_deleted_at": deleted}
                context.set_bookmark({"lsn": number + 1})

        return tap

    def _target(self, *runs: Any) -> dict[int, str]:
        rows: dict[int, str] = {}
        for ran in runs:
            for record in ran.records():
                if record["_sdc_deleted_at"]:
                    rows.pop(record["id"], None)
                else:
                    rows[record["id"]] = record["name"]
        return rows

    def test_a_snapshot_first_then_the_log_from_its_position(self) -> None:
        log = _Log()
        log.write("insert", 1, "a")
        log.write("insert", 2, "b")
        first = sync(self._tap(log))
        log.write("update", 1, "c")
        log.write("delete", 2)
        log.write("insert", 3, "d")
        second = sync(self._tap(log), first.state)

        assert first.shape()[-1] == "ACTIVATE_VERSION contacts"
        assert first.state["bookmarks"]["contacts"]["position"] == {"lsn": 2}
        assert second.ids() == [1, 2, 3]
        assert self._target(first, second) == log.rows() == {1: "c", 3: "d"}

    def test_a_log_that_breaks_off_goes_on_where_it_was(self) -> None:
        log = _Log()
        first = sync(self._tap(log))
        for number in range(5):
            log.write("insert", number, "x")
        second = sync(self._tap(log, fail_at=3), first.state)
        third = sync(self._tap(log), second.state)

        assert (second.code, second.ids(), third.ids()) == (1, [0, 1, 2], [3, 4])
        assert self._target(first, second, third) == log.rows()

    def test_children_that_are_newly_selected_get_a_snapshot_too(self, tap: Tap) -> None:
        asked = []

        @tap.stream("rows", replication_method="LOG_BASED")
        def rows(context: Any) -> Any:
            asked.append((context.is_first_run, context.log_position))
            yield {"id": 1}
            context.set_bookmark(5)

        rows.substream("notes")(lambda parent: [{"id": 10}])

        state = None
        for selected in (["rows"], ["rows"], ["rows", "notes"], ["rows", "notes"], ["notes"]):
            state = sync(tap, state, selected=selected).state

        assert asked == [(True, None), (False, 5), (True, None), (False, 5), (False, 5)]
