"""Ledgers remember who is through with what, for a window; each kind is opened by its URL."""

import multiprocessing
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError, TopicError
from balog.consumers.ledgers.factory import MemoryLedger, NoLedger, SqliteLedger, default_ledger, open_ledger
from balog.consumers.ledgers.ledger import DEFAULT_WINDOW, LedgerEntry
from balog.testing.contracts import DurableLedgerContract, LedgerContract, OpenLedger
from balog.topics.local import LocalTopics
from tests.forks import in_child
from tests.waiting import Clock


class TestSqliteLedger(DurableLedgerContract):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> OpenLedger:
        return lambda window=DEFAULT_WINDOW: SqliteLedger(tmp_path / "folder" / "ledger.sqlite", window)

    @pytest.fixture
    def ledger(self, tmp_path: Path, clock: Clock) -> SqliteLedger:
        return SqliteLedger(tmp_path / "ledger", 100, clock)

    def test_an_entry_is_known_for_the_window_and_then_deleted(
        self, ledger: SqliteLedger, tmp_path: Path, clock: Clock
    ) -> None:
        ledger.record("g", [LedgerEntry("LGa", "one")])
        clock.now += 100
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": ""}}
        clock.now += 1
        assert not ledger.known("g", ["LGa"])
        ledger.record("g", [LedgerEntry("LGb", "one")])
        assert rows(tmp_path / "ledger") == ["LGb"]

    def test_an_entry_that_is_written_again_lives_from_then(self, ledger: SqliteLedger, clock: Clock) -> None:
        ledger.record("g", [LedgerEntry("LGa", "one")])
        clock.now += 80
        ledger.record("g", [LedgerEntry("LGa", "one")])
        clock.now += 80
        ledger.record("g", [LedgerEntry("LGb", "one")])
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": ""}}

    @pytest.mark.parametrize("durable", [True, False])
    def test_only_a_durable_entry_waits_for_the_disk(self, tmp_path: Path, durable: bool) -> None:
        ledger = SqliteLedger(tmp_path / "ledger")
        ledger.record("g", [LedgerEntry("LGa", "one")], durable=durable)
        connection: Any = ledger._file._connection
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == (2 if durable else 1)
        assert SqliteLedger(tmp_path / "ledger").known("g", ["LGa"]) == {"LGa": {"one": ""}}

    def test_old_entries_go_some_at_a_time_until_all_are_gone(
        self, ledger: SqliteLedger, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.consumers.ledgers.sqlite._PRUNE_ROWS", 10)
        ledger.record("g", [LedgerEntry(f"LG{number:02}", "one") for number in range(25)])
        clock.now += 1000
        left = []
        for number in range(4):
            ledger.record("g", [LedgerEntry(f"LGnew{number}", "one")])
            left.append(len([event for event in rows(tmp_path / "ledger") if "new" not in event]))
        assert left == [15, 5, 0, 0]

    def test_several_processes_share_one(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger"
        context = multiprocessing.get_context("spawn")
        writers = [context.Process(target=write, args=(str(path), number)) for number in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        every = {f"c{number}": "" for number in range(2)}
        known = SqliteLedger(path).known("g", [f"LG{number}" for number in range(50)])
        assert known == {f"LG{number}": every for number in range(50)}

    def test_a_forked_child_uses_it_without_harm_to_the_parent(self, ledger: SqliteLedger) -> None:
        ledger.record("g", [LedgerEntry("LGa", "parent")])
        assert in_child(ledger.record, "g", [LedgerEntry("LGa", "child")]) == 0
        ledger.record("g", [LedgerEntry("LGb", "parent")])
        assert ledger.known("g", ["LGa", "LGb"]) == {"LGa": {"child": "", "parent": ""}, "LGb": {"parent": ""}}

    def test_a_reason_that_is_no_text_of_utf_8_is_kept_readable(self, ledger: SqliteLedger) -> None:
        ledger.record("g", [LedgerEntry("LGa", "one", "bad \udc80")])
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": "bad \\udc80"}}

    def test_a_file_of_another_kind_is_refused_for_good_and_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (a)")
        connection.close()
        for use in (lambda one: one.known("g", ["LGa"]), lambda one: one.record("g", [LedgerEntry("LGa", "one")])):
            with pytest.raises(TopicError, match=rf"ledger {path}: not a file") as caught:
                use(SqliteLedger(path))
            assert not caught.value.retryable

    def test_a_file_that_is_deleted_is_made_anew(self, ledger: SqliteLedger, tmp_path: Path) -> None:
        ledger.record("g", [LedgerEntry("LGa", "one")])
        (tmp_path / "ledger").unlink()
        assert not ledger.known("g", ["LGa"])
        ledger.record("g", [LedgerEntry("LGb", "two")])
        assert ledger.known("g", ["LGa", "LGb"]) == {"LGb": {"two": ""}}


def write(path: str, number: int) -> None:
    ledger = SqliteLedger(path)
    for event in range(50):
        ledger.record("g", [LedgerEntry(f"LG{event}", f"c{number}")])


def rows(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [event for (event,) in connection.execute("SELECT event FROM entries ORDER BY seq")]
    finally:
        connection.close()


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def open_ledger(self) -> OpenLedger:
        ledger = MemoryLedger()
        return lambda window=DEFAULT_WINDOW: ledger


def test_no_ledger_knows_nothing() -> None:
    ledger = NoLedger()
    ledger.record("g", [LedgerEntry("LGa", "one")])
    assert not ledger.known("g", ["LGa"])


class TestOpenLedger:
    def test_each_kind_has_a_url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEDGER_PASSWORD", "hunter2")
        opened = {
            f"sqlite:{tmp_path}/l?window=60": f"SqliteLedger('{tmp_path}/l', window=60)",
            "sqlite:relative": f"SqliteLedger('relative', window={DEFAULT_WINDOW:g})",
            "none:": "NoLedger()",
            "redis://one:6380/2?password.env=LEDGER_PASSWORD&window=60": "RedisLedger('one:6380/2', window=60)",
            "rediss://one": f"RedisLedger('one:6379/0', window={DEFAULT_WINDOW:.0f})",
            "redis://[::1]:1/0": f"RedisLedger('::1:1/0', window={DEFAULT_WINDOW:.0f})",
        }
        assert {url: repr(open_ledger(url)) for url in opened} == opened

    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("", "no kind of ledger"),
            ("ledger.sqlite", "no kind of ledger"),
            ("mysql:x", "no kind of ledger"),
            ("sqlite:", "names no file"),
            ("sqlite:x?window=0", "window"),
            ("sqlite:x?window=nan", "window"),
            ("sqlite:x?windows=1", "no option 'windows'"),
            ("sqlite:x?window", "has no value"),
            ("sqlite:x?window=1&window=2", "twice"),
            ("none:here", "no place"),
            ("none:?window=1", "no option 'window'"),
            ("redis:one", "expected redis://"),
            ("redis://one/x", "number of a database"),
            ("redis://one:port/0", "can't be read"),
            ("redis://one/0?username=me", "password"),
            ("redis://one/0?password.env=NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"),
            ("redis://one/0?password.env=A&password.file=B", "one of the two"),
        ],
    )
    def test_what_is_no_such_url_is_refused_in_one_line(self, url: str, reason: str) -> None:
        with pytest.raises(ConfigError, match=reason) as caught:
            open_ledger(url)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "redis://:hunter2@one/0",
            "redis://me:hunter2@one/0",
            "redis://one/0?password=hunter2",
            "redis://me:hunter2@one:port/0",
            "hunter2",
            "redis://hunter2@[one/0",
        ],
    )
    def test_a_password_in_the_url_is_refused_and_not_shown(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            open_ledger(url)
        assert "hunter2" not in str(caught.value)

    @settings(deadline=None)
    @given(
        st.sampled_from(["", "sqlite:", "redis:", "redis://", "rediss://", "none:"]),
        st.text("ab:/@[]?&=%.19\0 ü", max_size=20),
        st.sampled_from(["", "window=5", "window=-1", "password.env=A", "password.env=%00"]),
    )
    def test_any_text_is_a_ledger_or_one_line(self, scheme: str, rest: str, option: str) -> None:
        told = ""
        with suppress(ConfigError):
            try:
                open_ledger(f"{scheme}{rest}{'?' if option else ''}{option}").close()
            except ConfigError as error:
                told = str(error)
                raise
        assert "\n" not in told


class TestDefaultLedger:
    def test_it_lies_hidden_beside_local_topics(self, tmp_path: Path) -> None:
        home = LocalTopics(tmp_path / "topics")
        default_ledger(home.url, "g").record("g", [LedgerEntry("LGa", "one")])
        assert home.names() == []
        assert default_ledger(home.url, "other").known("g", ["LGa"]) == {"LGa": {"one": ""}}

    def test_of_a_server_s_topics_it_is_the_user_s_by_place_and_group(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        urls = ["kafka:one:9092", "kafka:two:9092", "sqs:x?endpoint=http://one", "sqs:x?endpoint=http://two"]
        paths = [default_ledger(url, "g").path for url in urls]
        assert len(set(paths)) == 4
        assert default_ledger(urls[0], "g").path == paths[0]
        assert {path.parent for path in paths} == {tmp_path / "balog" / "ledger"}
        assert default_ledger(urls[0], "h").path != paths[0]

    def test_without_a_state_folder_it_is_in_the_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_ledger("sqs:eu-west-1", "g").path.parent == tmp_path / ".local/state/balog/ledger"

    def test_without_any_home_it_is_one_clear_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nowhere(path: Path) -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setattr(Path, "expanduser", nowhere)
        with pytest.raises(ConfigError, match="XDG_STATE_HOME"):
            default_ledger("sqs:eu-west-1", "g")

    @pytest.mark.parametrize("is_file", [True, False])
    def test_a_place_that_can_t_be_written_is_told_before_any_handler_is_called(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool
    ) -> None:
        place = tmp_path / "place"
        place.touch() if is_file else place.mkdir()
        if not is_file:
            monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place)
        monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
        for way in (lambda: default_ledger("sqs:eu-west-1", "g"), lambda: open_ledger(f"sqlite:{place}/a/ledger")):
            with pytest.raises(ConfigError, match="can't be written") as caught:
                way()
            assert str(place) in str(caught.value)

    def test_a_folder_is_no_ledger(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="can't be written"):
            open_ledger(f"sqlite:{tmp_path}")
