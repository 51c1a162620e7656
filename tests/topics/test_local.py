"""The local topic keeps the contract, and what only a folder of files can do wrong."""

import fcntl
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from balog.common.errors import ConfigError, TopicError
from balog.testing.contracts import TopicContract
from balog.testing.contracts.topic_fixtures import ids, messages
from balog.topics import DeadLetter, Message, open_topics, sqlite_file
from balog.topics.local import LocalTopic, LocalTopics
from tests.topics.retention import prune
from tests.waiting import Clock


class TestLocalTopicKeepsTheContract(TopicContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"local:{tmp_path / 'made by the first publish' / 'topics'}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LocalTopics]:
    with LocalTopics(tmp_path / "topics") as home:
        yield home


@pytest.fixture
def topic(home: LocalTopics) -> LocalTopic:
    return home.topic("orders")


@pytest.fixture
def aging(tmp_path: Path, clock: Clock) -> Iterator[LocalTopic]:
    with LocalTopics(tmp_path / "aging", retention=100, clock=clock, uptime=clock) as home:
        yield home.topic("orders")


class TestUrl:
    @pytest.mark.parametrize("url", ["", "topics", "./topics", "local:", "redis:x", "file:///tmp/x", ":x"])
    def test_a_bad_url_is_refused_in_one_line(self, url: str) -> None:
        with pytest.raises(ConfigError, match="expected local:PATH") as caught:
            open_topics(url)
        assert "\n" not in str(caught.value)

    def test_the_path_may_hold_any_characters(self, tmp_path: Path) -> None:
        with open_topics(f"local:{tmp_path}/a b?c#d%20:e") as home:
            home.topic("x").publish(messages("a"))
            assert ids(home.topic("x").receive("g")) == ["a"]
        assert (tmp_path / "a b?c#d%20:e" / "x.sqlite").is_file()

    def test_a_tilde_is_the_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        with open_topics("local:~/topics") as home:
            home.topic("x").publish(messages("a"))
        assert (tmp_path / "topics" / "x.sqlite").is_file()


class TestMissing:
    def test_reading_makes_no_file(self, tmp_path: Path, topic: LocalTopic) -> None:
        for read in (
            topic.peek,
            lambda: topic.seek("g", "latest"),
            lambda: topic.redrive("g", lambda letter: letter.body),
            lambda: topic.receive("g"),
            lambda: topic.group_state("g"),
            lambda: topic.dead_letters("g"),
            topic.describe,
            lambda: prune(topic),
        ):
            with pytest.raises(TopicError, match=r"orders.*no such topic"):
                read()
        assert not topic.exists()
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_home_has_no_names(self, home: LocalTopics) -> None:
        with pytest.raises(TopicError, match=r"no topics in .*topics: No such file"):
            home.names()

    def test_a_home_that_is_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "topics").write_text("a file")
        with LocalTopics(tmp_path / "topics") as home:
            with pytest.raises(TopicError, match="Not a directory"):
                home.names()
            with pytest.raises(TopicError, match="can't be made"):
                home.topic("x").publish(messages("a"))


class TestRetention:
    def test_messages_past_the_retention_are_deleted(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages("a", "b"))
        clock.now += 60
        aging.publish(messages("c"))
        clock.now += 60
        assert prune(aging) == 2
        assert ids(aging.receive("g")) == ["c"]
        assert aging.describe().messages == 1

    def test_a_publish_deletes_at_most_once_a_minute(
        self, aging: LocalTopic, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passed = 1000.0
        monkeypatch.setattr("balog.topics.local.topic.time.monotonic", lambda: passed)
        aging.publish(messages("a"))
        aging.publish(messages("b"))  # looked now, next in a minute
        clock.now += 200
        passed += 30
        aging.publish(messages("c"))
        assert aging.describe().messages == 3
        passed += 31
        aging.publish(messages("d"))
        assert ids(aging.receive("g")) == ["c", "d"]

    def test_an_id_is_free_again_once_its_message_is_deleted(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages("a"))
        aging.ack("g", aging.receive("g"))
        clock.now += 200
        prune(aging)
        assert aging.publish(messages("a")) == 1
        assert ids(aging.receive("g")) == ["a"]

    def test_a_message_in_hand_is_deleted_too(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages("a"))
        received = aging.receive("g", lease=1000)
        clock.now += 200
        prune(aging)
        assert aging.ack("g", received) == 0
        assert aging.group_state("g").pending == 0

    def test_dead_letters_are_kept_as_long_from_when_they_are_moved(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages("a"))
        clock.now += 60
        aging.dead_letter("g", aging.receive("g"), "why")
        clock.now += 60
        prune(aging)
        assert [dead.id for dead in aging.dead_letters("g")] == ["a"]
        clock.now += 60
        prune(aging)
        assert aging.dead_letters("g") == []

    def test_a_long_backlog_goes_in_several_steps(
        self, aging: LocalTopic, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.topics.local.tables._PRUNE_ROWS", 7)
        aging.publish(messages(*(str(number) for number in range(50))))
        clock.now += 60
        aging.publish(messages("young"))
        clock.now += 60
        assert prune(aging) == 50
        assert ids(aging.receive("g")) == ["young"]

    def test_no_publish_waits_for_a_long_backlog_to_go(
        self, aging: LocalTopic, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.topics.local.tables._PRUNE_ROWS", 20)
        aging.publish(messages(*(str(number) for number in range(50))))
        clock.now += 200
        monkeypatch.setattr(aging, "_prune_at", 0.0)
        left = []
        for name in "abcd":
            aging.publish(messages(name))
            left.append(aging.describe().messages)
        assert left == [31, 12, 3, 4]


class TestRedriven:
    def die(self, topic: LocalTopic, *names: str) -> None:
        topic.publish(messages(*names))
        topic.dead_letter("g", topic.receive("g"), "why")

    def test_a_letter_goes_back_though_retention_deleted_its_message(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages("a"))
        clock.now += 60
        aging.dead_letter("g", aging.receive("g"), "why")
        clock.now += 60
        prune(aging)
        assert aging.describe().messages == 0
        assert aging.redrive("g", lambda letter: letter.body) == 1
        assert [(message.id, message.body) for message in aging.receive("g")] == [("a", b"body of a")]

    def test_it_is_kept_as_long_from_its_return(self, aging: LocalTopic, clock: Clock) -> None:
        self.die(aging, "a")
        clock.now += 90
        aging.redrive("g", lambda letter: letter.body)
        clock.now += 90
        prune(aging)
        assert aging.group_state("g").waiting == 1
        clock.now += 20
        prune(aging)
        assert aging.group_state("g").waiting == 0
        assert aging.receive("g") == []

    def test_it_leaves_nothing_behind_once_it_is_handled(self, topic: LocalTopic) -> None:
        self.die(topic, "a", "b")
        topic.redrive("g", lambda letter: letter.body)
        topic.ack("g", topic.receive("g"))
        with topic._file.read() as connection:
            assert connection.execute("SELECT COUNT(*) FROM redriven").fetchone() == (0,)

    def test_more_letters_than_are_looked_at_at_once_go_back(
        self, topic: LocalTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.topics.local.topic._REDRIVE_PAGE", 3)
        names = [f"m{number}" for number in range(10)]
        self.die(topic, *names)
        assert topic.redrive("g", lambda letter: None if letter.id == "m4" else letter.body, limit=9) == 8
        assert ids(topic.receive("g")) == [*names[:4], *names[5:9]]
        assert [letter.id for letter in topic.dead_letters("g")] == ["m4", "m9"]

    def test_two_that_redrive_give_each_letter_back_once(self, tmp_path: Path, topic: LocalTopic) -> None:
        self.die(topic, "a")
        with LocalTopics(tmp_path / "topics") as other:

            def decide(letter: DeadLetter) -> bytes:
                assert other.topic("orders").redrive("g", lambda letter: b"theirs") == 1
                return b"mine"

            assert topic.redrive("g", decide) == 0
        assert [message.body for message in topic.receive("g")] == [b"theirs"]


class TestPutOff:
    """What failed waits, and then does not stand in the way of what nobody has seen yet."""

    def test_of_ten_messages_one_was_put_off_while_there_are_new_ones(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages(*(f"m{n}" for n in range(300))))
        failed = aging.receive("g", 50)
        aging.release("g", failed, 5.0)
        clock.now += 5
        got = [ids(aging.receive("g", 100)) for _ in range(3)]
        assert got[0] == [f"m{n}" for n in (*range(10), *range(50, 140))]
        assert got[1] == [f"m{n}" for n in (*range(10, 20), *range(140, 230))]
        assert got[2] == [f"m{n}" for n in (*range(20, 30), *range(230, 300), *range(30, 50))], "none is left behind"
        assert aging.group_state("g").waiting == 0

    def test_every_tenth_of_small_receives_is_one(self, aging: LocalTopic, clock: Clock) -> None:
        aging.publish(messages(*(f"m{n}" for n in range(60))))
        aging.release("g", aging.receive("g", 30), 1.0)
        clock.now += 1
        taken = [one for _ in range(20) for one in ids(aging.receive("g", 1))]
        new = [f"m{n}" for n in range(30, 48)]
        assert taken == [*new[:9], "m0", *new[9:], "m1"]


class TestDurability:
    def test_only_a_receipt_and_a_lease_are_spared_the_fsync(self, topic: LocalTopic) -> None:
        def synchronous() -> int:
            return int(topic._file._connection.execute("PRAGMA synchronous").fetchone()[0])

        topic.publish(messages("a", "b"))
        assert synchronous() == 2
        received = topic.receive("g")
        assert synchronous() == 1
        topic.ack("g", received[:1])
        assert synchronous() == 2
        topic.extend("g", received[1:])
        assert synchronous() == 1
        topic.dead_letter("g", received[1:], "why")
        assert synchronous() == 2


class TestBatches:
    def test_a_batch_of_large_bodies_is_cut(self, topic: LocalTopic, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("balog.topics.local.tables.MAX_RECEIVED_BYTES", 2500)
        topic.publish([Message(str(number), bytes(1000)) for number in range(5)])
        assert ids(topic.receive("g")) == ["0", "1", "2"]
        assert ids(topic.receive("g")) == ["3", "4"]

    def test_a_batch_is_stored_whole_or_not_at_all(self, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        with pytest.raises(UnicodeEncodeError):
            topic.publish(messages("b", "\udcff"))
        assert ids(topic.receive("g")) == ["a"]
        topic.publish(messages("c"))
        assert ids(topic.receive("g")) == ["c"]

    def test_a_receipt_of_another_kind_is_refused(self, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        (received,) = topic.receive("g")
        with pytest.raises(TopicError, match="not a receipt"):
            topic.ack("g", [type(received)("a", b"", "AQEB", 1, 0.0)])


class TestFiles:
    def test_closing_leaves_one_file_a_topic(self, tmp_path: Path, home: LocalTopics, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        home.close()
        assert sorted(os.listdir(tmp_path / "topics")) == [".orders.sqlite.turn", "orders.sqlite"]

    def test_a_draft_left_by_a_killed_process_is_no_topic(self, tmp_path: Path, home: LocalTopics) -> None:
        folder = tmp_path / "topics"
        folder.mkdir()
        (folder / ".orders.sqlite.new").write_bytes(b"half made")
        (folder / ".orders.sqlite.new-wal").write_bytes(b"half made")
        assert home.names() == []
        home.topic("orders").publish(messages("a"))
        assert ids(home.topic("orders").receive("g")) == ["a"]

    def test_a_topic_that_was_deleted_while_open_is_made_anew(self, tmp_path: Path, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        (tmp_path / "topics" / "orders.sqlite").unlink()
        with pytest.raises(TopicError, match="no such topic"):
            topic.receive("g")
        topic.publish(messages("b"))
        with LocalTopics(tmp_path / "topics") as other:
            assert ids(other.topic("orders").receive("g")) == ["b"]

    def test_a_folder_that_was_deleted_while_open_is_made_anew(self, tmp_path: Path, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        shutil.rmtree(tmp_path / "topics")
        topic.publish(messages("b"))
        with LocalTopics(tmp_path / "topics") as other:
            assert ids(other.topic("orders").receive("g")) == ["b"]
            assert other.topic("orders").publish(messages("c")) == 1
        assert ids(topic.receive("h")) == ["b", "c"]

    @pytest.mark.parametrize("content", [b"", b"no database, but a text that is long enough to have a header" * 9])
    def test_a_file_that_is_no_topic_is_one_clear_error(
        self, tmp_path: Path, topic: LocalTopic, content: bytes
    ) -> None:
        (tmp_path / "topics").mkdir()
        (tmp_path / "topics" / "orders.sqlite").write_bytes(content)
        for use in (lambda: topic.receive("g"), lambda: topic.publish(messages("a")), topic.describe):
            with pytest.raises(TopicError, match=r"topic orders \(.*orders.sqlite\): .*move the file away") as caught:
                use()
            assert not caught.value.retryable
            assert "\n" not in str(caught.value)

    def test_a_damaged_file_is_one_clear_error(self, tmp_path: Path, home: LocalTopics, topic: LocalTopic) -> None:
        topic.publish([Message(str(number), bytes(500)) for number in range(500)])
        home.close()
        with (tmp_path / "topics" / "orders.sqlite").open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(40 * 4096))
        with pytest.raises(TopicError, match=r"topic orders \(.*\): damaged \(.*\); move the file away") as caught:
            topic.receive("g", limit=500)
        assert not caught.value.retryable

    def test_a_lock_that_is_never_given_up_is_one_clear_error(
        self, tmp_path: Path, topic: LocalTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT", 0.1)
        topic.publish(messages("a"))
        with closing(sqlite3.connect(tmp_path / "topics" / "orders.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(TopicError, match=r"another process held it for 0\.1 seconds") as caught:
                topic.publish(messages("b"))
        assert caught.value.retryable
        assert topic.publish(messages("b")) == 1

    def test_who_publishes_all_the_time_does_not_starve_the_others(self, tmp_path: Path, topic: LocalTopic) -> None:
        busy = f"""
from itertools import count
from balog.topics import *
with open_topics("local:{tmp_path}/topics") as home:
    for number in count():
        home.topic("orders").publish([Message(f"busy{{number}}", b"")])
        if number == 0: print("begun", flush=True)
"""
        with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            for number in range(31):
                topic.publish(messages(f"mine{number}"))
            process.kill()
        places = [place for place, id in enumerate(ids(topic.receive("g", limit=10**6))) if id.startswith("mine")]
        assert len(places) == 31
        assert median(after - before for before, after in pairwise(places)) < 10


class TestFullDisk:
    def test_a_full_file_refuses_a_batch_and_keeps_what_it_has(self, topic: LocalTopic) -> None:
        topic.publish(messages("a"))
        with topic._file.read() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        topic._file._connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(TopicError, match="the disk takes no more") as caught:
            topic.publish([Message(str(number), bytes(4000)) for number in range(100)])
        assert caught.value.retryable
        assert ids(topic.receive("g")) == ["a"]
        topic._file._connection.execute("PRAGMA max_page_count = 1000000")
        assert topic.publish(messages("b")) == 1
        assert ids(topic.receive("g")) == ["b"]

    def test_a_disk_that_takes_no_more_bytes_loses_nothing_that_was_published(self, tmp_path: Path) -> None:
        publisher = f"""
from balog.topics import *
from balog.common.errors import TopicError
with open_topics("local:{tmp_path}/topics") as home:
    topic = home.topic("orders")
    try:
        for number in range(1000):
            topic.publish([Message(f"{{number}}", bytes(1000))])
            print(number, flush=True)
    except TopicError as error:
        print(error)
"""
        limit = 300_000
        done = subprocess.run(
            [sys.executable, "-c", publisher],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        assert done.returncode == 0, done.stderr
        *published, error = done.stdout.splitlines()
        assert 0 < len(published) < 1000
        assert "the disk takes no more" in error
        with LocalTopics(tmp_path / "topics") as home:
            assert set(published) <= set(ids(home.topic("orders").receive("g", limit=2000)))
            assert home.topic("orders").publish(messages("after")) == 1


def test_an_interrupt_between_begin_and_the_first_statement_leaves_no_transaction_open(
    topic: LocalTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, what: int) -> None:
        if what == fcntl.LOCK_UN:
            monkeypatch.undo()
            raise KeyboardInterrupt

    topic.publish(messages("a"))
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(KeyboardInterrupt):
        topic.publish(messages("b"))
    assert topic.publish(messages("c")) == 1
    assert ids(topic.receive("g")) == ["a", "c"]


def test_which_ids_are_new_is_told_across_statements_of_many_rows(topic: LocalTopic) -> None:
    first = [Message(f"m{n}", b"") for n in range(0, 300, 3)]
    assert topic.publish_new(first) == set(ids(first))
    wanted = [Message(f"m{n}", b"later") for n in (*range(300), 5, 7)]
    assert topic.publish_new(wanted) == {f"m{n}" for n in range(300) if n % 3}
    assert topic.publish_new(wanted) == set()
    assert len(topic.peek(1000)) == 300


def test_what_a_group_has_acked_can_be_deleted_and_nothing_else(topic: LocalTopic) -> None:
    topic.publish([Message(f"m{n}", b"") for n in range(10)])
    received = topic.receive("drain", limit=6)
    topic.ack("drain", [*received[:3], received[4]])
    assert [topic.trim("drain", limit=2), topic.trim("drain"), topic.trim("drain")] == [2, 1, 0]
    topic.release("drain", [received[3], received[5]])
    assert ids(topic.receive("drain")) == ["m3", "m5", "m6", "m7", "m8", "m9"]
