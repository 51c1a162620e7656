"""Substreams, and what a stream's function does by its context."""

import itertools
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from balog.tap import Stream, Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import CatalogEntry
from balog.tap.errors import TapError
from balog.tap.streams.context import Context
from balog.tap.syncing import Sync
from tests.tap.syncs import SCHEMA, at_day, stopping, sync


def _contacts(tap: Tap, *days: int, **settings: Any) -> Stream:
    rows = [{"id": day, "updated": at_day(day)} for day in days]
    made: Stream = tap.stream("contacts", key_properties=["id"], **settings)(lambda: iter(rows))
    return made


class TestSubstreams:
    def test_schemas_come_first_parents_before_children_and_records_after_those_they_belong_to(self, tap: Tap) -> None:
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

    def test_a_parent_that_is_not_selected_is_walked_and_not_written(self, tap: Tap) -> None:
        contacts = _contacts(tap, 1, 2, replication_key="updated", bookmark_strategy=tap.every_n(1))
        contacts.substream("notes")(lambda parent: [{"id": parent["id"] * 10}])

        ran = sync(tap, selected=["notes"])

        assert ran.shape() == ["SCHEMA notes", "notes 10", "notes 20"]
        assert "updated" not in ran.state["bookmarks"].get("contacts", {})

    def test_a_child_that_is_not_selected_is_not_asked(self, tap: Tap) -> None:
        contacts = _contacts(tap, 1)
        asked: list[Any] = []
        contacts.substream("notes")(lambda parent: asked.append(parent))

        assert (sync(tap, selected=["contacts"]).code, asked) == (0, [])

    def test_the_parent_is_as_its_source_gave_it(self, tap: Tap) -> None:
        given = {"id": 1, "hidden": object()}
        seen: list[Any] = []
        stream = tap.stream("contacts", after=lambda record: None)(lambda: [given])
        stream.substream("notes")(lambda parent, context: seen.append((parent, context.parent)))

        sync(tap)

        assert seen[0][0] is seen[0][1] is given

    def test_each_parent_is_asked_with_the_childs_bookmark_of_the_start(self, tap: Tap) -> None:
        contacts = _contacts(tap, 1, 2, 3)
        since: list[Any] = []

        @contacts.substream("notes", replication_key="updated")
        def notes(parent: Any, context: Any) -> Any:
            since.append(context.bookmark)
            yield {"id": parent["id"], "updated": at_day(20 - parent["id"])}

        ran = sync(tap, {"bookmarks": {"notes": {"updated": at_day(5)}}})

        assert since == [at_day(5)] * 3
        assert ran.state["bookmarks"]["notes"]["updated"] == at_day(19)

    def test_a_failed_child_is_not_asked_again_and_keeps_its_parents_bookmark_back(self, tap: Tap) -> None:
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
        assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(1)}

    def test_the_next_run_gives_what_the_failed_child_missed(self, tap: Tap) -> None:
        broken = [True]

        @tap.stream("contacts", replication_key="updated", bookmark_strategy=tap.every_n(1))
        def contacts(context: Any) -> Any:
            since = context.bookmark or ""
            yield from ({"id": day, "updated": at_day(day)} for day in (1, 2, 3) if at_day(day) >= since)

        @contacts.substream("notes")
        def notes(parent: Any) -> Any:
            if broken[0] and parent["id"] == 2:
                raise ValueError("no notes")
            yield {"id": parent["id"] * 10}

        first = sync(tap)
        broken[0] = False
        second = sync(tap, first.state)

        assert {*first.ids("notes"), *second.ids("notes")} == {10, 20, 30}
        assert second.state["bookmarks"]["contacts"] == {"updated": at_day(3)}

    def test_a_long_child_lets_states_out_up_to_the_parent_before(
        self, monkeypatch: pytest.MonkeyPatch, tap: Tap
    ) -> None:
        monkeypatch.setattr("balog.tap.syncing.stream_sync._FLUSH_SECONDS", 0.0)
        contacts = _contacts(tap, 1, 2, replication_key="updated", bookmark_strategy=tap.every_n(1000))
        contacts.substream("notes")(lambda parent: ({"id": parent["id"] * 10 + n} for n in range(3)))

        ran = sync(tap)

        second = ran.messages.index({"type": "RECORD", "stream": "notes", "record": {"id": 20}})
        assert ran.messages[second + 1]["type"] == "STATE"
        assert ran.messages[second + 1]["value"]["bookmarks"]["contacts"] == {"updated": at_day(1)}

    def test_walking_ends_when_there_is_nobody_left_to_walk_for(self, tap: Tap) -> None:
        walked = []

        @tap.stream("contacts")
        def contacts() -> Any:
            for number in itertools.count():
                walked.append(number)
                yield {"id": number}

        contacts.substream("notes")(lambda: 1 / 0)

        ran = sync(tap, selected=["notes"])

        assert (ran.code, walked) == (1, [0])

    def test_a_child_without_end_holds_nothing_in_memory(self, tap: Tap) -> None:
        contacts = _contacts(tap, 1)
        asked = []

        @contacts.substream("notes")
        def notes() -> Any:
            for number in itertools.count():
                if number == 3:
                    raise ConnectionError("gone away")
                asked.append(number)
                yield {"id": number}

        ran = sync(tap)

        assert (ran.ids("notes"), len(asked)) == ([0, 1, 2], 3)

    def test_the_children_of_a_record_that_was_set_aside_are_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tap: Tap
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        rows: Any = [{"id": 1}, {"id": "two", "updated": at_day(1)}, {"id": 3, "updated": at_day(2)}]
        stream = tap.stream("contacts", replication_key="updated")(lambda: iter(rows))
        stream.substream("notes")(lambda parent: [{"id": 9, "name": str(parent["id"])}])

        ran = sync(tap)

        assert ran.ids("contacts") == [3]
        assert [note["name"] for note in ran.records("notes")] == ["1", "two", "3"]

    def test_a_parent_that_is_walked_may_have_times_that_are_none(self, tap: Tap) -> None:
        rows = [{"id": 1, "updated": at_day(1)}, {"id": 2, "updated": "2026-99-99T99:99:99Z"}]
        stream = tap.stream("contacts", replication_key="updated")(lambda: iter(rows))
        stream.substream("notes")(lambda parent: [{"id": parent["id"]}])

        ran = sync(tap, selected=["notes"])

        assert (ran.ids("notes"), ran.failures) == ([1, 2], [])

    def test_a_position_waits_until_all_parents_are_done(self, tap: Tap) -> None:
        asked = []
        stream = _contacts(tap, 1, 2, 3, replication_key="updated", bookmark_strategy=tap.every_n(1))

        @stream.substream("notes", replication_method="LOG_BASED")
        def notes(context: Any, parent: Any) -> Any:
            asked.append(context.log_position)
            yield {"id": parent["id"]}
            context.set_bookmark(parent["id"])

        ran = sync(tap, {"bookmarks": {"notes": {"position": 0}}})

        assert asked == [0, 0, 0]
        assert [state["bookmarks"]["notes"]["position"] for state in ran.states] == [0, 0, 0, 0, 3, 3]


class TestCurrentlySyncing:
    def test_it_names_the_substream_that_is_read_and_then_its_parent_again(self, tap: Tap) -> None:
        contacts = _contacts(tap, 1, 2)

        @contacts.substream("notes")
        def notes(parent: Any, context: Any) -> Any:
            yield {"id": parent["id"] * 10}
            context.checkpoint()

        @tap.streams["notes"].substream("files")
        def files(parent: Any, context: Any) -> Any:
            yield {"id": parent["id"] * 10}
            context.checkpoint()

        tap.stream("deals")(lambda: [{"id": 1}])
        named = [state.get("currently_syncing") for state in sync(tap).states]
        assert [name for name, _ in itertools.groupby(named)] == [
            *("contacts", "files", "notes", "files", "notes", "contacts", "deals", None)
        ]

    def test_an_interrupted_run_names_it_and_the_next_one_begins_there(self, tap: Tap) -> None:
        tap.stream("deals")(lambda: [{"id": 1}])
        stop, hook = stopping(2)
        _contacts(tap, 1, 2).substream("notes", after=hook)(lambda parent: [{"id": parent["id"] * 10}])
        first = sync(tap, stop=stop)
        assert (first.code, first.state["currently_syncing"]) == (143, "notes")
        assert sync(tap, first.state).shape()[0] == "SCHEMA contacts"

    def test_a_substream_that_fails_gives_the_name_back(self, tap: Tap) -> None:
        _contacts(tap, 1, 2).substream("notes")(lambda parent: 1 / 0)
        ran = sync(tap)
        assert ran.code == 1
        assert {state.get("currently_syncing") for state in ran.states} == {"contacts", None}


class TestContext:
    def test_a_first_run_begins_at_the_start_date(self, tap: Tap) -> None:
        seen: list[Any] = []
        tap.stream("contacts", replication_key="updated")(
            lambda context: seen.append((context.bookmark, context.start_date, context.is_first_run))
        )

        sync(tap, config={"start_date": at_day(7)})
        sync(tap, {"bookmarks": {"contacts": {"updated": at_day(9)}}}, config={"start_date": at_day(7)})

        assert seen == [(at_day(7), at_day(7), True), (at_day(9), at_day(7), False)]

    @settings(max_examples=60)
    @given(
        day=st.integers(1, 27),
        offset=st.none() | st.integers(-14 * 60, 14 * 60),
        form=st.sampled_from(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]),
        has_seconds=st.booleans(),
    )
    @example(day=1, offset=None, form="%Y-%m-%dT%H:%M:%S", has_seconds=False)
    @example(day=1, offset=120, form="%Y-%m-%dT%H:%M:%S", has_seconds=False)
    def test_a_start_date_of_any_form_loses_no_row(
        self, day: int, offset: int | None, form: str, has_seconds: bool
    ) -> None:
        local = datetime(2026, 1, day, 10 if has_seconds else 0)
        text = local.strftime(form)
        start = datetime.strptime(text, form) - timedelta(minutes=offset or 0)
        if form == "%Y-%m-%d":
            start = datetime(2026, 1, day)
        elif offset is not None:
            text += f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
        instants = [datetime(2025, 12, 30) + timedelta(hours=hours) for hours in range(0, 24 * 32, 7)]
        properties = {
            "id": {"type": "integer"},
            "day": {"type": "string", "format": "date"},
            "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        }
        rows = [{"id": id, "day": f"{when:%Y-%m-%d}", "at": f"{when.isoformat()}Z"} for id, when in enumerate(instants)]
        tap = Tap("tap-cool")

        def records(key: str) -> Any:
            return lambda context: [row for row in rows if context.bookmark is None or row[key] >= context.bookmark]

        for key in properties:
            tap.stream(key, replication_key=key, schema={"type": "object", "properties": properties})(records(key))
        ran = sync(tap, config={"start_date": text})
        assert ran.failures == []
        assert ran.ids("at") == [id for id, when in enumerate(instants) if when >= start]
        assert ran.ids("day") == [id for id, when in enumerate(instants) if when.date() >= start.date()]
        assert ran.ids("id") == [*range(len(rows))]

    @pytest.mark.parametrize("stored", ["2026-11-20T00:00:00.000000Z", "2026-11-20", "2026-11-20T05:00:00+02:00"])
    def test_a_time_in_the_state_for_a_date_key_loses_no_row_of_its_day(self, stored: str, tap: Tap) -> None:
        """Other toolkits write such states."""
        rows = [{"day": f"2026-11-{day}"} for day in (19, 20, 21)]
        schema = {"properties": {"day": {"type": "string", "format": "date"}}}
        tap.stream("days", replication_key="day", schema=schema)(
            lambda context: [row for row in rows if row["day"] >= context.bookmark]
        )

        ran = sync(tap, {"bookmarks": {"days": {"day": stored}}})

        assert [record["day"] for record in ran.records()] == ["2026-11-20", "2026-11-21"]

    def test_the_lookback_is_for_asking_alone(self, tap: Tap) -> None:
        seen: list[Any] = []
        tap.stream("contacts", replication_key="updated", lookback=3600)(lambda context: seen.append(context.bookmark))

        ran = sync(tap, {"bookmarks": {"contacts": {"updated": at_day(9)}}})

        assert seen == ["2026-01-08T23:00:00Z"]
        assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(9)}

    def test_it_knows_what_is_selected(self, tap: Tap) -> None:
        seen: list[Any] = []
        tap.stream("contacts", key_properties=["id"], metadata={("properties", "name"): {"selected": False}})(
            lambda context: seen.append((context.selected, context.metadata["table-key-properties"]))
        )

        sync(tap)

        assert seen == [(frozenset(SCHEMA["properties"]) - {"name"}, ["id"])]

    def test_one_instant_for_the_whole_run(self, tap: Tap) -> None:
        seen: list[datetime] = []
        tap.stream("one", "two")(lambda context: seen.append(context.now))

        sync(tap)

        assert seen[0] is seen[1]
        assert seen[0].tzinfo is timezone.utc

    def test_a_window_that_is_over_is_in_the_state_also_without_order(self, tap: Tap) -> None:
        @tap.stream("contacts", replication_key="updated", is_sorted=False)
        def contacts(context: Any) -> Any:
            for end in (3, 6):
                yield {"id": end, "updated": at_day(end)}
                yield {"id": end - 1, "updated": at_day(end - 1)}
                context.checkpoint(at_day(end + 1))
            raise ValueError("the third window")

        ran = sync(tap)

        marks = [state["bookmarks"].get("contacts", {}).get("updated") for state in ran.states]
        assert marks == [None, at_day(4), at_day(7), at_day(7), at_day(7)]

    def test_a_stream_may_have_a_client_of_its_own(self, tap: Tap) -> None:
        tap.client(lambda config: "the tap's")
        tap.stream("one", client=lambda config: config["other"])(lambda client: [{"id": 1, "name": client}])
        tap.stream("two")(lambda context: [{"id": 2, "name": context.client}])

        names = [record["name"] for record in sync(tap, config={"other": "its own"}).records()]

        assert names == ["its own", "the tap's"]

    def test_without_a_run_nothing_can_be_written(self) -> None:
        entry = CatalogEntry(tap_stream_id="contacts", stream="contacts", schema=SCHEMA)
        context = Context(Stream("contacts"), entry, {}, State(), None)

        assert context.bookmark is None
        with pytest.raises(TapError, match="this context belongs to no run"):
            context.emit({"id": 1})


def test_streams_of_two_taps_do_not_mix() -> None:
    one, other = Stream("contacts", schema=SCHEMA), Stream("contacts", schema=SCHEMA)

    with pytest.raises(TapError, match="there is a stream of this name already"):
        Sync([one, other], {}, None, State(), None)  # type: ignore[arg-type]
