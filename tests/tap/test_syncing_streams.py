"""A run over streams: order, failures, retries, resuming, what observers hear."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Tap
from balog.tap.errors import OutputError, RecordError
from balog.tap.syncing import Stop
from tests.tap.syncs import Messages, Watching, at_day, stopping, sync


def _rows(*days: int) -> list[dict[str, Any]]:
    return [{"id": day, "updated": at_day(day)} for day in days]


def _numbered(tap: Tap, *names: str) -> None:
    """Declare streams of two records each."""
    tap.stream(*names)(lambda context: [{"id": 1}, {"id": 2}])


def test_a_strategy_that_raises_ends_the_stream_before_its_record(tap: Tap) -> None:
    """No STATE is ahead of the records, and the error names the strategy."""

    def strategy(record: dict[str, Any], count: int) -> bool:
        return bool(1 / (4 - count) and count == 2)

    tap.stream("days", replication_key="updated", bookmark_strategy=strategy)(lambda context: _rows(1, 2, 3, 4, 5))

    ran = sync(tap)

    assert ran.ids() == [1, 2, 3]
    assert ran.state["bookmarks"]["days"]["updated"] == at_day(2)
    assert ran.failures == ["days: bookmark_strategy: ZeroDivisionError: division by zero"]


class TestOrder:
    def test_streams_run_as_they_were_declared_each_with_its_schema_first(self, tap: Tap) -> None:
        _numbered(tap, "one", "two")

        assert sync(tap).shape() == ["SCHEMA one", "one 1", "one 2", "SCHEMA two", "two 1", "two 2"]

    def test_what_is_not_selected_is_not_asked(self, tap: Tap) -> None:
        asked = []
        tap.stream("one", "two")(lambda context: asked.append(context.stream))

        sync(tap, selected=["two"])

        assert asked == ["two"]

    def test_the_state_says_which_stream_is_being_synced_and_none_at_the_end(self, tap: Tap) -> None:
        _numbered(tap, "one", "two")

        said = [state.get("currently_syncing") for state in sync(tap).states]

        assert said == ["one", "one", "two", "two", None]

    def test_a_run_goes_on_at_the_stream_at_which_the_one_before_was_interrupted(self, tap: Tap) -> None:
        _numbered(tap, "one", "two", "three")

        ran = sync(tap, {"currently_syncing": "two"})

        assert [word for word in ran.shape() if "SCHEMA" in word] == ["SCHEMA two", "SCHEMA three", "SCHEMA one"]

    @pytest.mark.parametrize("at", ["gone", "not_selected"])
    def test_it_begins_at_the_first_when_that_stream_is_not_synced(self, at: str, tap: Tap) -> None:
        _numbered(tap, "one", "two", "not_selected")

        ran = sync(tap, {"currently_syncing": at}, selected=["one", "two"])

        assert ran.shape()[0] == "SCHEMA one"

    def test_interrupted_at_a_substream_means_its_parent(self, tap: Tap) -> None:
        _numbered(tap, "one")
        _numbered(tap, "two")
        tap.stream("below", parent="two")(lambda: ())

        assert sync(tap, {"currently_syncing": "below"}).shape()[0] == "SCHEMA two"


class TestFailures:
    def test_the_other_streams_run_and_the_failed_ones_are_told_at_the_end(
        self, capsys: pytest.CaptureFixture[str], tap: Tap
    ) -> None:
        @tap.stream("bad")
        def bad() -> Any:
            yield {"id": 1}
            raise ValueError("it is\nbroken")

        _numbered(tap, "good")
        tap.stream("worse")(lambda: {}["key"])

        ran = sync(tap)

        assert ran.code == 1
        assert ran.shape() == ["SCHEMA bad", "bad 1", "SCHEMA good", "good 1", "good 2", "SCHEMA worse"]
        lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("CRITICAL")]
        assert lines == ["CRITICAL bad: it is broken", "CRITICAL worse: KeyError: 'key'"]

    def test_each_is_an_event_with_its_exception(self, capsys: pytest.CaptureFixture[str], tap: Tap) -> None:
        tap.stream("bad")(lambda: 1 / 0)

        sync(tap)

        events = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
        (event,) = [event for event in events if event["header"]["level"] == "CRITICAL"]
        assert event["payload"]["message"] == "bad: division by zero"
        assert event["payload"]["exception"]["type"] == "ZeroDivisionError"

    def test_what_looks_like_a_secret_is_not_said(self, capsys: pytest.CaptureFixture[str], tap: Tap) -> None:
        @tap.stream("bad")
        def bad() -> Any:
            raise ValueError("GET /contacts?access_token=abcdefghijklmnop gave 401")

        sync(tap)

        assert "abcdefghijklmnop" not in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("settings", "last"), [({"bookmark_strategy": Tap.every_n(100)}, 3), ({}, 1), ({"is_sorted": False}, 1)]
    )
    def test_records_before_a_failure_count_only_where_they_come_in_order(
        self, settings: dict[str, Any], last: int, tap: Tap
    ) -> None:
        @tap.stream("contacts", replication_key="updated", **settings)
        def contacts() -> Any:
            yield from _rows(1, 2, 3)
            raise ConnectionError("gone away")

        ran = sync(tap, {"bookmarks": {"contacts": {"updated": at_day(1)}}})
        assert ran.state["bookmarks"] == {"contacts": {"updated": at_day(last)}}

    @pytest.mark.parametrize(
        ("error", "said"),
        [(PermissionError("wrong password"), "wrong password"), (SystemExit(2), "its source ended the process (2)")],
    )
    def test_a_client_that_cannot_be_made_is_not_tried_again(self, error: BaseException, said: str, tap: Tap) -> None:
        tried = []

        @tap.client
        def client(config: Any) -> Any:
            tried.append(1)
            raise error

        tap.stream("one", "two")(lambda client: ())
        tap.stream("free")(lambda: [{"id": 1}])

        ran = sync(tap)

        assert ran.failures == [f"one: {said}", f"two: {said}"]
        assert (tried, ran.ids()) == ([1], [1])

    @pytest.mark.parametrize("item", [({"id": 1}, {"id": 2}), iter([{"id": 1}])])
    def test_a_page_that_is_no_list_is_a_fault_of_the_tap(self, item: Any, tap: Tap) -> None:
        tap.stream("contacts")(lambda: [item])

        ran = sync(tap)

        assert ran.failures[0].endswith(f"yielded a {type(item).__name__}: expected a record, or a list of them")

    def test_a_source_that_ends_the_process_is_a_failed_stream(self, tap: Tap) -> None:
        tap.stream("one")(lambda: sys.exit(3))
        _numbered(tap, "two")

        ran = sync(tap)

        assert ran.failures == ["one: its source ended the process (3)"]
        assert ran.ids("two") == [1, 2]

    def test_a_generator_is_closed_at_a_record_that_fails(self, tap: Tap) -> None:
        closed = []

        @tap.stream("contacts", policy="fail")
        def contacts() -> Any:
            try:
                yield {"id": "no number"}
                yield {"id": 2}
            finally:
                closed.append(1)

        ran = sync(tap)

        assert (ran.code, ran.ids(), closed) == (1, [], [1])

    def test_output_that_nobody_takes_is_no_fault_of_a_stream(self, tap: Tap) -> None:
        class Broken(Messages):
            def records(self, stream: str, version: int | None = None, **_: Any) -> Any:
                def write(record: Any) -> None:
                    raise OutputError("stdout: Broken pipe")

                return write

        asked = []

        @tap.stream("one", "two")
        def rows(context: Any) -> Any:
            asked.append(context.stream)
            yield {"id": 1}

        with pytest.raises(OutputError):
            sync(tap, output=Broken())
        assert asked == ["one"]


class TestBookmarksThatDoNotFit:
    def test_a_bookmark_of_another_kind_fails_its_stream_alone_and_observers_hear_of_it(self, tap: Tap) -> None:
        watching = Watching()
        tap.stream("contacts", replication_key="updated")(lambda: _rows(1))
        _numbered(tap, "other")

        ran = sync(tap, {"bookmarks": {"contacts": {"updated": "yesterday"}}}, observer=watching)

        assert (ran.code, ran.ids()) == (1, [1, 2])
        assert watching.told[:2] == [
            ("started", "contacts"),
            ("ended", "contacts", 0, None, None, ran.failures[0]),
        ]
        assert "bookmark of 'updated'" in ran.failures[0]
        assert ran.state["bookmarks"]["contacts"] == {"updated": "yesterday"}


class TestErrorsWithoutText:
    def test_an_error_whose_text_cannot_be_made_fails_its_stream_alone(self, tap: Tap) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        @tap.stream("contacts")
        def contacts() -> Any:
            yield {"id": 7}
            raise Mute

        _numbered(tap, "other")

        ran = sync(tap)

        assert (ran.code, ran.ids()) == (1, [7, 1, 2])
        assert ran.failures == ["contacts: <Mute, whose str raised ValueError>"]


class TestStopping:
    def test_the_record_in_hand_is_written_and_the_stream_is_kept(self, tap: Tap) -> None:
        stop, hook = stopping(2)
        tap.stream("contacts", replication_key="updated", bookmark_strategy=tap.every_n(100), after=hook)(
            lambda: iter(_rows(1, 2, 3))
        )
        _numbered(tap, "next")

        ran = sync(tap, stop=stop)

        assert (ran.code, ran.ids()) == (143, [1, 2])
        assert ran.state == {"currently_syncing": "contacts", "bookmarks": {"contacts": {"updated": at_day(2)}}}

    @pytest.mark.parametrize("is_polite", [True, False])
    def test_a_source_that_ends_for_it_is_not_at_its_end(self, is_polite: bool, tap: Tap) -> None:
        stop = Stop()

        @tap.stream("contacts", replication_key="updated", is_sorted=False)
        def contacts(context: Any) -> Any:
            context.emit({"id": 5, "updated": at_day(5)})
            stop.number = 15
            try:
                if is_polite:
                    return
                yield {"id": 4, "updated": at_day(4)}
            except BaseException:
                return

        ran = sync(tap, stop=stop)

        assert (ran.code, ran.state["currently_syncing"]) == (143, "contacts")
        assert not ran.state["bookmarks"].get("contacts")

    def test_in_a_substream_the_parents_bookmark_is_that_of_the_record_before(self, tap: Tap) -> None:
        stop, hook = stopping(3)
        tap.stream("contacts", replication_key="updated", bookmark_strategy=tap.every_n(1))(lambda: iter(_rows(1, 2)))
        tap.stream("notes", parent="contacts", after=hook)(
            lambda parent: iter([{"id": parent["id"] * 10 + n} for n in (1, 2)])
        )

        ran = sync(tap, stop=stop)

        assert ran.ids() == [1, 11, 12, 2, 21]
        assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(1)}

    def test_failures_before_are_told(self, capsys: pytest.CaptureFixture[str], tap: Tap) -> None:
        stop, hook = stopping(1)
        tap.stream("bad")(lambda: 1 / 0)
        tap.stream("contacts", after=hook)(lambda: [{"id": 1}, {"id": 2}])

        ran = sync(tap, stop=stop)

        assert ran.code == 143
        assert "CRITICAL bad: division by zero" in capsys.readouterr().err


class TestObservers:
    def test_they_hear_of_each_stream_what_came_of_it(self, tap: Tap) -> None:
        watching = Watching()
        _numbered(tap, "good")
        tap.stream("bad")(lambda: open(os.devnull + "/none"))  # noqa: SIM115
        tap.stream("below", parent="good")(lambda parent: [{"id": parent["id"]}])

        sync(tap, observer=watching)

        assert watching.told == [
            ("started", "good"),
            ("started", "below"),
            ("ended", "good", 2, 2, 0, None),
            ("ended", "below", 2, 2, 0, None),
            ("started", "bad"),
            ("ended", "bad", 0, 0, 0, f"bad: [Errno 20] Not a directory: '{os.devnull}/none'"),
        ]

    def test_records_made_after_the_bookmark_are_new(self, tap: Tap) -> None:
        watching = Watching()
        tap.stream("contacts", replication_key="updated", created_key="created")(
            lambda: [
                {"id": 1, "updated": at_day(5), "created": at_day(1)},
                {"id": 2, "updated": at_day(5), "created": "2026-01-03T01:00:00+01:00"},
                {"id": 3, "updated": at_day(6), "created": "2026-01-03T02:00:00+01:00"},
                {"id": 4, "updated": at_day(6), "created": None},
            ]
        )

        sync(tap, {"bookmarks": {"contacts": {"updated": at_day(3)}}}, observer=watching)

        assert watching.told[-1] == ("ended", "contacts", 4, 1, 2, None)

    def test_nobody_knows_without_a_created_key(self, tap: Tap) -> None:
        watching = Watching()
        tap.stream("contacts", replication_key="updated")(lambda: _rows(4))

        sync(tap, {"bookmarks": {"contacts": {"updated": at_day(3)}}}, observer=watching)

        assert watching.told[-1] == ("ended", "contacts", 1, None, None, None)


def test_a_tap_needs_the_base_install_and_starts_without_what_it_does_not_use(tmp_path: Path) -> None:
    tap = tmp_path / "tap_cool.py"
    tap.write_text(
        "from balog.tap import Tap\n"
        "tap = Tap('tap-cool')\n"
        "@tap.stream('contacts', schema={'type': 'object', 'properties': {'id': {'type': 'integer'}}})\n"
        "def contacts(): yield {'id': 1}\n"
        "import atexit, sys\n"
        "heavy = ('sqlglot', 'http.client', 'urllib.request', 'jsonschema', 'pyarrow')\n"
        "loaded = lambda: ','.join(name for name in heavy if name in sys.modules)\n"
        "atexit.register(lambda: sys.stderr.write('loaded:' + loaded()))\n"
        "tap.run()\n"
    )

    ran = subprocess.run([sys.executable, str(tap)], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert '{"type":"RECORD","stream":"contacts","record":{"id":1}' in ran.stdout
    assert ran.stderr.endswith("loaded:")


class TestPages:
    """Records in lists: the same as one by one, in larger pieces."""

    def _tap(self, rows: list[dict[str, Any]], size: int, **settings: Any) -> Tap:
        tap = Tap("tap-cool")
        pages = [rows[at : at + size] for at in range(0, len(rows), size)]
        tap.stream("contacts", key_properties=["id"], replication_key="updated", **settings)(lambda: iter(pages))
        return tap

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_give_what_single_records_give(self, size: int) -> None:
        rows = _rows(*range(1, 20))
        settings: dict[str, Any] = {
            "created_key": "updated",
            "after": lambda record: record if record["id"] % 5 else None,
        }

        ran = sync(self._tap(rows, size, **settings))

        assert ran.ids() == [id for id in range(1, 20) if id % 5]
        assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(19)}

    def test_write_a_state_after_the_page_in_which_it_was_due(self) -> None:
        ran = sync(self._tap(_rows(*range(1, 9)), 4, bookmark_strategy=Tap.every_n(3)))

        kinds = [message["type"][0] for message in ran.messages]
        assert "".join(kinds) == "S" + "S" + "RRRRS" + "RRRRS" + "S" + "S"
        assert ran.states[1]["bookmarks"]["contacts"] == {"updated": at_day(4)}

    @pytest.mark.parametrize("policy", ["fail", "coerce"])
    def test_a_record_that_fails_ends_them_after_those_before_it(
        self, policy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        rows = _rows(1, 2, 3, 4)
        rows[2]["id"] = "three"

        ran = sync(self._tap(rows, 4, policy=policy, bookmark_strategy=Tap.every_n(100)))

        if policy == "fail":
            assert (ran.code, ran.ids()) == (1, [1, 2])
            assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(2)}
        else:
            assert (ran.code, ran.ids()) == (0, [1, 2, 4])
            assert ran.state["bookmarks"]["contacts"] == {"updated": at_day(4)}
            (file,) = tmp_path.rglob("*.jsonl")
            assert b"three" in file.read_bytes()

    def test_a_record_without_replication_value_is_set_aside_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        rows = _rows(1, 2, 3, 4)
        del rows[1]["updated"]

        ran = sync(self._tap(rows, 4))

        assert (ran.code, ran.ids()) == (0, [1, 3, 4])

    def test_nor_when_what_was_declared_fails_in_its_middle(self, tap: Tap) -> None:
        tap.stream("rows", replication_key="id", bookmark_strategy=lambda record, count: record["name"] == "")(
            lambda: iter([[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], [{"id": 3, "name": "c"}, {"id": 4}]])
        )

        ran = sync(tap)

        assert ran.ids() == [1, 2]
        assert ran.state["bookmarks"].get("rows", {}).get("id", 0) <= 2

    def test_the_bookmark_is_never_ahead_of_a_page_that_was_written_in_part(self) -> None:
        class Picky(Messages):
            def records(self, stream: str, version: int | None = None, **options: Any) -> Any:
                write = super().records(stream, version)

                def picky(record: dict[str, Any]) -> bool:
                    if record["id"] == 3:
                        options["refuse"](record, RecordError(stream, "has a value that JSON can't write"))
                        return False
                    return bool(write(record))

                picky.page = lambda records: sum(map(picky, records))  # type: ignore[attr-defined]
                return picky

        ran = sync(self._tap(_rows(*range(1, 9)), 8, policy="fail", bookmark_strategy=Tap.every_n(1)), output=Picky())

        assert (ran.code, ran.ids()) == (1, [1, 2])
        assert ran.state["bookmarks"].get("contacts", {}).get("updated", "") <= at_day(3)


class TestAReplicationKeyThatTheUserChose:
    FREE = {(): {"forced-replication-method": None, "valid-replication-keys": ["updated", "created"]}}  # noqa: RUF012

    def _tap(self, seen: list[Any], key: str | None) -> Tap:
        tap = Tap("tap-cool")

        @tap.stream("contacts", replication_key=key, created_key="name", metadata=self.FREE)
        def contacts(context: Any) -> Any:
            seen.append((context.is_first_run, context.bookmark))
            yield {"id": 2, "created": at_day(2), "updated": at_day(9), "name": at_day(1)}
            yield {"id": 3, "created": at_day(3), "updated": at_day(9), "name": at_day(3)}

        return tap

    @pytest.mark.parametrize("key", ["updated", None])
    def test_a_second_run_is_no_first_one(self, key: str | None) -> None:
        """Given a stream that declares another key or none, then the run and its counts go by the chosen one."""
        seen: list[Any] = []
        chosen = {"contacts": {"replication-method": "INCREMENTAL", "replication-key": "created"}}
        first = sync(self._tap(seen, key), chosen=chosen)
        observer = Watching()
        second = sync(self._tap(seen, key), first.state, chosen=chosen, observer=observer)

        assert first.state["bookmarks"] == second.state["bookmarks"] == {"contacts": {"created": at_day(3)}}
        assert seen == [(True, None), (False, at_day(3))]
        assert observer.told[-1] == ("ended", "contacts", 2, 0, 2, None)

    def test_the_bookmark_of_the_declared_key_is_not_of_the_chosen_one(self) -> None:
        seen: list[Any] = []
        state = {"bookmarks": {"contacts": {"updated": at_day(9)}}}
        observer = Watching()
        sync(self._tap(seen, "updated"), state, chosen={"contacts": {"replication-key": "created"}}, observer=observer)

        assert seen == [(True, None)]
        assert observer.told[-1] == ("ended", "contacts", 2, 2, 0, None)

    def test_nothing_is_kept_under_its_name(self, tap: Tap) -> None:
        @tap.stream("contacts", replication_key="updated", metadata=self.FREE)
        def contacts(context: Any) -> Any:
            context.keep("created", 1)
            return []

        ran = sync(tap, chosen={"contacts": {"replication-key": "created"}})

        assert "the bookmark has this name" in ran.failures[0]
