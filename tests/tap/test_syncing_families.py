"""Substreams, streams that another gives, and what a stream's function does by its context."""

import itertools
from datetime import datetime, timezone
from typing import Any

import pytest

from balog.tap import Stream, Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import Entry
from balog.tap.context import Context
from balog.tap.errors import TapError
from balog.tap.syncing import Sync
from tests.tap.syncs import SCHEMA, sync


def _day(number: int) -> str:
    return f"2026-01-{number:02}T00:00:00Z"


def _contacts(tap: Tap, *days: int, **settings: Any) -> Stream:
    rows = [{"id": day, "updated": _day(day)} for day in days]
    made: Stream = tap.stream("contacts", key_properties=["id"], **settings)(lambda: iter(rows))
    return made


class TestSubstreams:
    def test_schemas_come_first_parents_before_children_and_records_after_those_they_belong_to(self) -> None:
        tap = Tap("tap-cool")

        contacts = _contacts(tap, 1, 2)

        @contacts.substream("notes")
        def notes(parent: Any) -> Any:
            yield {"id": parent["id"] * 10}

        @notes.substream("files")
        def files(parent: Any) -> Any:
            yield [{"id": parent["id"] * 10}, {"id": parent["id"] * 10 + 1}]

        assert sync(tap).shape() == [
            *("SCHEMA contacts", "SCHEMA notes", "SCHEMA files"),
            *("contacts 1", "notes 10", "files 100", "files 101"),
            *("contacts 2", "notes 20", "files 200", "files 201"),
        ]

    def test_a_parent_that_is_not_selected_is_walked_and_not_written(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1, 2, replication_key="updated", bookmark_strategy=tap.every_n(1))
        contacts.substream("notes")(lambda parent: [{"id": parent["id"] * 10}])

        ran = sync(tap, selected=["notes"])

        assert ran.shape() == ["SCHEMA notes", "notes 10", "notes 20"]
        assert "updated" not in ran.state["bookmarks"].get("contacts", {})

    def test_a_child_that_is_not_selected_is_not_asked(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1)
        asked: list[Any] = []
        contacts.substream("notes")(lambda parent: asked.append(parent))

        assert (sync(tap, selected=["contacts"]).code, asked) == (0, [])

    def test_the_parent_is_as_its_source_gave_it(self) -> None:
        tap = Tap("tap-cool")
        given = {"id": 1, "hidden": object()}
        seen: list[Any] = []
        stream = tap.stream("contacts", after=lambda record: None)(lambda: [given])
        stream.substream("notes")(lambda parent, context: seen.append((parent, context.parent)))

        sync(tap)

        assert seen[0][0] is seen[0][1] is given

    def test_each_parent_is_asked_with_the_childs_bookmark_of_the_start(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1, 2, 3)
        since: list[Any] = []

        @contacts.substream("notes", replication_key="updated")
        def notes(parent: Any, context: Any) -> Any:
            since.append(context.bookmark)
            yield {"id": parent["id"], "updated": _day(20 - parent["id"])}

        ran = sync(tap, {"bookmarks": {"notes": {"updated": _day(5)}}})

        assert since == [_day(5)] * 3
        assert ran.state["bookmarks"]["notes"]["updated"] == _day(19)

    def test_a_failed_child_is_not_asked_again_and_keeps_its_parents_bookmark_back(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1, 2, 3, replication_key="updated", bookmark_strategy=tap.every_n(1))
        asked = []

        @contacts.substream("notes")
        def notes(parent: Any) -> Any:
            asked.append(parent["id"])
            yield {"id": parent["id"] * 10}
            if parent["id"] == 2:
                raise ValueError("no notes")

        contacts.substream("files")(lambda parent: [{"id": parent["id"] * 100}])

        ran = sync(tap)

        assert (ran.code, ran.failures) == (1, ["notes: no notes"])
        assert (asked, ran.ids("contacts"), ran.ids("files")) == ([1, 2], [1, 2, 3], [100, 200, 300])
        assert ran.state["bookmarks"]["contacts"] == {"updated": _day(1)}

    def test_the_next_run_gives_what_the_failed_child_missed(self) -> None:
        tap = Tap("tap-cool")
        broken = [True]

        @tap.stream("contacts", replication_key="updated", bookmark_strategy=tap.every_n(1))
        def contacts(context: Any) -> Any:
            since = context.bookmark or ""
            yield from ({"id": day, "updated": _day(day)} for day in (1, 2, 3) if _day(day) >= since)

        @contacts.substream("notes")
        def notes(parent: Any) -> Any:
            if broken[0] and parent["id"] == 2:
                raise ValueError("no notes")
            yield {"id": parent["id"] * 10}

        first = sync(tap)
        broken[0] = False
        second = sync(tap, first.state)

        assert {*first.ids("notes"), *second.ids("notes")} == {10, 20, 30}
        assert second.state["bookmarks"]["contacts"] == {"updated": _day(3)}

    def test_a_child_is_retried_for_its_parent_alone(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1, 2)
        tries: list[int] = []

        @contacts.substream("notes", retry_on=OSError, retries=1, replication_key="updated")
        def notes(parent: Any) -> Any:
            tries.append(parent["id"])
            if tries == [1, 2]:
                raise ConnectionError("gone away")
            yield {"id": parent["id"] * 10, "updated": _day(9 - parent["id"])}

        ran = sync(tap)

        assert (tries, ran.ids("notes"), ran.code) == ([1, 2, 2], [10, 20], 0)
        assert ran.state["bookmarks"]["notes"]["updated"] == _day(8)

    def test_a_failed_child_stays_failed_when_its_parent_is_begun_again(self) -> None:
        tap = Tap("tap-cool")
        tries = []

        @tap.stream("contacts", replication_key="updated", retry_on=OSError, retries=1)
        def contacts() -> Any:
            tries.append(1)
            yield {"id": 1, "updated": _day(1)}
            if len(tries) == 1:
                raise ConnectionError("gone away")

        contacts.substream("notes")(lambda: 1 / 0)

        ran = sync(tap)

        assert ran.failures == ["notes: division by zero"]
        assert "updated" not in ran.state["bookmarks"].get("contacts", {})

    def test_a_long_child_lets_states_out_up_to_the_parent_before(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1, 2, replication_key="updated", bookmark_strategy=tap.every_n(1000))
        contacts.substream("notes", buffer_seconds=0)(lambda parent: ({"id": parent["id"] * 10 + n} for n in range(3)))

        ran = sync(tap)

        second = ran.messages.index({"type": "RECORD", "stream": "notes", "record": {"id": 20}})
        assert ran.messages[second + 1]["type"] == "STATE"
        assert ran.messages[second + 1]["value"]["bookmarks"]["contacts"] == {"updated": _day(1)}

    def test_walking_ends_when_there_is_nobody_left_to_walk_for(self) -> None:
        tap = Tap("tap-cool")
        walked = []

        @tap.stream("contacts")
        def contacts() -> Any:
            for number in itertools.count():
                walked.append(number)
                yield {"id": number}

        contacts.substream("notes")(lambda: 1 / 0)

        ran = sync(tap, selected=["notes"])

        assert (ran.code, walked) == (1, [0])

    def test_a_child_without_end_holds_nothing_in_memory(self) -> None:
        tap = Tap("tap-cool")
        contacts = _contacts(tap, 1)
        asked = []

        @contacts.substream("notes")
        def notes() -> Any:
            for number in itertools.count():
                asked.append(number)
                yield {"id": number}

        ran = sync(tap, max_records=3)

        assert (ran.ids("notes"), len(asked)) == ([0, 1, 2], 3)


class TestTwoStreamsOfOneSource:
    def _tap(self) -> Tap:
        tap = Tap("tap-cool")

        @tap.stream("contacts", replication_key="updated")
        def contacts(context: Any) -> Any:
            yield {"id": 1, "updated": _day(1), "name": context.of("leads").bookmark}
            yield context.to("leads", {"id": 10, "updated": _day(4)})
            context.emit([{"id": 11, "updated": _day(3)}, {"id": 12, "updated": _day(2)}], stream="leads")
            context.emit({"id": 2, "updated": _day(2)})

        tap.add(Stream("leads", replication_key="updated", given_by="contacts"))
        return tap

    def test_each_has_its_schema_records_and_bookmark(self) -> None:
        ran = sync(self._tap(), {"bookmarks": {"leads": {"updated": _day(1)}}})

        assert ran.shape() == [
            *("SCHEMA contacts", "SCHEMA leads"),
            *("contacts 1", "leads 10", "leads 11", "leads 12", "contacts 2"),
        ]
        assert ran.records()[0]["name"] == _day(1)
        assert ran.state["bookmarks"] == {"contacts": {"updated": _day(2)}, "leads": {"updated": _day(4)}}

    def test_the_source_is_asked_for_the_other_one_alone(self) -> None:
        ran = sync(self._tap(), selected=["leads"])

        assert ran.shape() == ["SCHEMA leads", "leads 10", "leads 11", "leads 12"]
        assert ran.state["bookmarks"] == {"leads": {"updated": _day(4)}}

    def test_what_is_not_selected_is_left_out(self) -> None:
        assert sync(self._tap(), selected=["contacts"]).shape() == ["SCHEMA contacts", "contacts 1", "contacts 2"]

    def test_neither_bookmark_moves_when_the_source_fails(self) -> None:
        tap = Tap("tap-cool")

        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            context.emit({"id": 10, "updated": _day(4)}, stream="leads")
            raise ValueError("no")

        tap.add(Stream("leads", replication_key="updated", given_by=contacts))

        ran = sync(tap)

        assert ran.ids("leads") == [10]
        assert "updated" not in ran.state["bookmarks"].get("leads", {})

    def test_a_record_for_a_stream_of_its_own_brings_its_schema_along(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("one")(lambda context: context.emit({"id": 20}, stream="two"))
        tap.stream("two")(lambda: [{"id": 21}])

        assert sync(tap).shape() == ["SCHEMA one", "SCHEMA two", "two 20", "SCHEMA two", "two 21"]

    def test_lists_may_hold_records_of_both(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("orders")(lambda context: iter([[{"id": 1}, context.to("lines", {"id": 11})], [{"id": 2}]]))
        tap.add(Stream("lines", given_by="orders"))

        assert sync(tap).shape()[2:] == ["orders 1", "lines 11", "orders 2"]

    def test_an_unknown_stream_is_a_fault(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("one")(lambda context: context.emit({"id": 20}, stream="too"))

        assert sync(tap).failures == ["one: there is no stream 'too' to emit for; there are: one"]


class TestContext:
    def test_a_first_run_begins_at_the_start_date(self) -> None:
        tap = Tap("tap-cool")
        seen: list[Any] = []
        tap.stream("contacts", replication_key="updated")(
            lambda context: seen.append((context.bookmark, context.start_date, context.is_first_run))
        )

        sync(tap, config={"start_date": _day(7)})
        sync(tap, {"bookmarks": {"contacts": {"updated": _day(9)}}}, config={"start_date": _day(7)})

        assert seen == [(_day(7), _day(7), True), (_day(9), _day(7), False)]

    def test_the_lookback_is_for_asking_alone(self) -> None:
        tap = Tap("tap-cool")
        seen: list[Any] = []
        tap.stream("contacts", replication_key="updated", lookback=3600)(lambda context: seen.append(context.bookmark))

        ran = sync(tap, {"bookmarks": {"contacts": {"updated": _day(9)}}})

        assert seen == ["2026-01-08T23:00:00Z"]
        assert ran.state["bookmarks"]["contacts"] == {"updated": _day(9)}

    def test_it_knows_what_is_selected(self) -> None:
        tap = Tap("tap-cool")
        seen: list[Any] = []
        tap.stream("contacts", key_properties=["id"], metadata={("properties", "name"): {"selected": False}})(
            lambda context: seen.append((context.selected, context.metadata["table-key-properties"]))
        )

        sync(tap)

        assert seen == [(frozenset(SCHEMA["properties"]) - {"name"}, ["id"])]

    def test_one_instant_for_the_whole_run(self) -> None:
        tap = Tap("tap-cool")
        seen: list[datetime] = []
        tap.stream("one", "two")(lambda context: seen.append(context.now))

        sync(tap)

        assert seen[0] is seen[1]
        assert seen[0].tzinfo is timezone.utc

    def test_a_window_that_is_over_is_in_the_state_also_without_order(self) -> None:
        tap = Tap("tap-cool")

        @tap.stream("contacts", replication_key="updated", is_sorted=False)
        def contacts(context: Any) -> Any:
            for end in (3, 6):
                yield {"id": end, "updated": _day(end)}
                yield {"id": end - 1, "updated": _day(end - 1)}
                context.checkpoint(_day(end + 1))
            raise ValueError("the third window")

        ran = sync(tap)

        marks = [state["bookmarks"].get("contacts", {}).get("updated") for state in ran.states]
        assert marks == [None, _day(4), _day(7), _day(7), _day(7)]

    def test_a_stream_may_have_a_client_of_its_own(self) -> None:
        tap = Tap("tap-cool")
        tap.client(lambda config: "the tap's")
        tap.stream("one", client=lambda config: config["other"])(lambda client: [{"id": 1, "name": client}])
        tap.stream("two")(lambda context: [{"id": 2, "name": context.client}])

        names = [record["name"] for record in sync(tap, config={"other": "its own"}).records()]

        assert names == ["its own", "the tap's"]

    def test_without_a_run_nothing_can_be_written(self) -> None:
        entry = Entry(tap_stream_id="contacts", stream="contacts", schema=SCHEMA)
        context = Context(Stream("contacts"), entry, {}, State(), None)

        assert context.bookmark is None
        with pytest.raises(TapError, match="this context is of no run"):
            context.emit({"id": 1})


class TestFullTables:
    def test_records_carry_the_version_that_is_activated_at_the_end(self) -> None:
        tap = Tap("tap-cool")

        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            with context.full_table():
                yield {"id": 1}
            yield {"id": 2}

        ran = sync(tap, {"bookmarks": {"contacts": {"initial_full_table_complete": True}}})

        assert ran.shape() == ["SCHEMA contacts", "contacts 1", "ACTIVATE_VERSION contacts", "contacts 2"]
        first, activated, second = ran.messages[2:5]
        assert first["version"] == activated["version"] > 1_700_000_000_000
        assert "version" not in second
        assert "version" not in ran.state["bookmarks"]["contacts"]

    def test_nothing_is_activated_when_the_body_fails(self) -> None:
        tap = Tap("tap-cool")

        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            with context.full_table():
                yield {"id": 1}
                raise ValueError("no")

        ran = sync(tap, {"bookmarks": {"contacts": {"initial_full_table_complete": True}}})

        assert ran.shape() == ["SCHEMA contacts", "contacts 1"]

    def test_one_that_can_go_on_does_so_with_its_version(self) -> None:
        tap = Tap("tap-cool")
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

        versions = {message["version"] for ran in (first, second) for message in ran.messages if "version" in message}
        assert (first.ids(), second.ids(), len(versions)) == ([0, 1], [2, 3], 1)
        assert second.state["bookmarks"]["contacts"] == {"initial_full_table_complete": True}


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


def test_streams_of_two_taps_do_not_mix() -> None:
    one, other = Stream("contacts", schema=SCHEMA), Stream("contacts", schema=SCHEMA)

    with pytest.raises(TapError, match="there is a stream of this name already"):
        Sync([one, other], {}, None, State(), None)  # type: ignore[arg-type]
