"""``balog topics …`` as people call it: data on stdout, talk on stderr, 0 1 2."""

import gzip
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from balog.event import Event, decode, encode
from balog.topics import Message, open_topics
from tests.programs import call_balog


def run(*arguments: object, feed: bytes = b"") -> "subprocess.CompletedProcess[str]":
    return call_balog("topics", *arguments, feed=feed)


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    """Call the command in a process that can be ended."""
    return subprocess.Popen([sys.executable, "-m", "balog", "topics", *map(str, arguments)], stderr=subprocess.PIPE)


def kill_after(process: "subprocess.Popen[bytes]", is_time: Callable[[], bool]) -> None:
    with process:
        while not is_time() and process.poll() is None:
            time.sleep(0.005)
        process.kill()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"local:{tmp_path / 'topics'}"


def event(number: int = 0, cls_type: str = "app.job", **more: object) -> Event:
    return Event.new("tap.users", {"cls_type": cls_type, "version": "1.0.0", "n": number}, **more)  # type: ignore[arg-type]


def publish(url: str, *events: Event, name: str = "orders") -> None:
    with open_topics(url) as home:
        home.topic(name).publish([Message(event.header.id, encode(event)) for event in events])


def bury(url: str, *events: Event) -> None:
    publish(url, *events)
    with open_topics(url) as home:
        topic = home.topic("orders")
        topic.dead_letter("g", topic.receive("g"), "why")


class TestList:
    def test_topics_are_listed(self, url: str) -> None:
        publish(url, event(), event())
        publish(url, event(), name="other")
        with open_topics(url) as home:
            home.topic("orders").receive("g")
        done = run("list", "--topics", url)
        assert (done.returncode, done.stderr) == (0, "")
        assert [line.split() for line in done.stdout.splitlines()] == [
            ["TOPIC", "MESSAGES", "MB", "GROUPS"],
            ["orders", "2", "0.0", "g"],
            ["other", "1", "0.0", "-"],
        ]

    def test_a_home_that_is_not_there_is_one_line_and_1(self, url: str) -> None:
        done = run("list", "--topics", url)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)

    @pytest.mark.parametrize(
        "words",
        [("peek",), ("describe",), ("dump", "--to", "x"), ("redrive", "--group", "g")],
        ids=lambda words: words[0],
    )
    def test_a_missing_topic_is_2_as_a_missing_file(self, url: str, words: tuple[str, ...]) -> None:
        publish(url, event())
        done = run(words[0], "typo", "--topics", url, *words[1:])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith(": no such topic; it is made when something is first published to it\n")

    def test_a_file_that_is_no_topic_hides_none_of_the_others(self, url: str, tmp_path: Path) -> None:
        publish(url, event())
        (tmp_path / "topics" / "damaged.sqlite").write_bytes(b"x" * 5000)
        (tmp_path / "topics" / "a copy.sqlite").write_bytes(b"")
        done = run("list", "--topics", url)
        assert done.returncode == 1
        assert "orders" in done.stdout
        assert [name in done.stderr for name in ("damaged", "a copy")] == [True, True]

    def test_a_bad_url_is_wrong_use(self) -> None:
        assert run("list", "--topics", "nothing").returncode == 2


class TestDescribe:
    def test_groups_types_and_the_size_of_the_sample_are_told(self, url: str) -> None:
        publish(url, *(event() for _ in range(3)), event(0, "x.y\x1b[2J"))
        with open_topics(url) as home:
            topic = home.topic("orders")
            topic.dead_letter("g", topic.receive("g", limit=1), "why")
            topic.receive("g", limit=1)
        done = run("describe", "--topics", url, "orders")
        rows = [line.split() for line in done.stdout.splitlines()]
        assert ["g", "2", "1", "0", "1"] in rows
        assert ["app.job", "75.0%"] in rows
        assert ["CLS_TYPE", "SHARE", "OF", "4"] in rows
        assert "\x1b" not in done.stdout
        assert "rate: " in done.stdout

    def test_json_has_it_all(self, url: str) -> None:
        publish(url, event(), event(0, "b"))
        found = json.loads(run("describe", "--topics", url, "orders", "--json").stdout)
        assert (found["sampled"], found["types"]["b"], found["state"]["messages"]) == (2, 1, 2)


class TestPeek:
    def test_raw_is_what_was_published(self, url: str) -> None:
        events = [event(number) for number in range(3)]
        publish(url, *events)
        assert run("peek", "--topics", url, "orders", "--raw").stdout.encode().splitlines() == list(map(encode, events))

    def test_newest_and_limit_and_where_choose(self, url: str) -> None:
        events = [event(number) for number in range(9)]
        publish(url, *events)
        done = run("peek", "--topics", url, "orders", "--raw", "--newest", "--limit", 2, "--where", "payload.n < 5")
        assert [decode(line).payload["n"] for line in done.stdout.splitlines()] == [3, 4]

    def test_pretty_does_nothing_to_a_terminal(self, url: str) -> None:
        publish(url, Event.new("tap\x9b2J", {"text": "\u202eevil"}))
        with open_topics(url) as home:
            home.topic("orders").publish([Message("x\x1b", b"\x1b[2J no event")])
        done = run("peek", "--topics", url, "orders")
        assert done.returncode == 0
        assert "is not an event" in done.stdout
        assert all(char.isprintable() or char == "\n" for char in done.stdout)

    def test_no_group_loses_anything(self, url: str) -> None:
        publish(url, event())
        run("peek", "--topics", url, "orders")
        with open_topics(url) as home:
            assert [message.attempts for message in home.topic("orders").receive("g")] == [1]


class TestPublish:
    @pytest.mark.parametrize("payload", [(), ("--payload", "cls_type=a.b")], ids=["events", "objects"])
    def test_a_full_disk_says_how_many_are_stored(self, tmp_path: Path, payload: tuple[str, ...]) -> None:
        total = 6000
        lines = (
            b"".join(b'{"n": %d, "text": "%s"}\n' % (number, b"x" * 500) for number in range(total))
            if payload
            else b"".join(encode(event(number)) + b"\n" for number in range(total))
        )
        (tmp_path / "in.jsonl").write_bytes(lines)
        url = f"local:{tmp_path}/topics"
        arguments = ("publish", "--topics", url, "orders", *payload, tmp_path / "in.jsonl")
        limit = 1 << 20
        full = subprocess.run(
            [sys.executable, "-m", "balog", "topics", *arguments],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        assert full.returncode == 1
        said = re.search(r"(\d+) events are stored, the first ones of ", full.stderr)
        assert said, full.stderr
        assert "the disk takes no more" in full.stderr
        with open_topics(url) as home:
            found = [decode(message.body) for message in home.topic("orders").peek(total + 1)]
        assert [one.payload["n"] for one in found] == list(range(int(said[1])))
        assert 0 < int(said[1]) < total

    def test_events_are_published_once(self, url: str) -> None:
        lines = b"\n".join(encode(event(number)) for number in range(3)) + b"\n\n"
        first = run("publish", "--topics", url, "orders", feed=lines)
        assert (first.returncode, first.stdout) == (0, "")
        assert "3 events were published" in first.stderr
        assert (
            "0 events were published (3 there already)" in run("publish", "--topics", url, "orders", feed=lines).stderr
        )

    def test_a_line_that_is_no_event_is_refused_with_its_number(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "in").write_bytes(b"\n".join([encode(event()), b"{}", encode(event())]))
        done = run("publish", "--topics", url, "orders", tmp_path / "in")
        assert done.returncode == 1
        assert "in: line 2: " in done.stderr
        assert "2 events were published, 1 line was rejected" in done.stderr

    def test_messages_have_keys(self, url: str) -> None:
        feed = encode(event(7, context={"run_id": "R1"}))
        run("publish", "--topics", url, "orders", feed=feed)
        run("publish", "--topics", url, "other", "--key", "payload.n", feed=feed)
        with open_topics(url) as home:
            assert [home.topic(name).peek()[0].key for name in ("orders", "other")] == ["R1", "7"]

    def test_plain_objects_are_wrapped(self, url: str) -> None:
        feed = b'{"n": 1}\n{"n": 2, "cls_type": "own"}\n7\n'
        done = run(
            *("publish", "--topics", url, "orders", "--payload", "cls_type=a.b", "--payload", "version=1.0.0"),
            *("--channel", "tap.x", "--level", "ERROR"),
            feed=feed,
        )
        assert done.returncode == 1
        assert "line 3" in done.stderr
        found = [decode(line) for line in run("peek", "--topics", url, "orders", "--raw").stdout.splitlines()]
        assert [(one.cls_type, one.version, one.payload["n"], one.level, one.header.channel) for one in found] == [
            ("a.b", "1.0.0", 1, "ERROR", "tap.x"),
            ("own", "1.0.0", 2, "ERROR", "tap.x"),
        ]

    @pytest.mark.parametrize("pair", ["cls_type", "=a.b"])
    def test_a_payload_option_of_another_form_is_refused(self, url: str, pair: str) -> None:
        done = run("publish", "--topics", url, "orders", "--payload", pair, feed=b"{}\n")
        assert done.returncode == 2
        assert f"--payload {pair!r}: expected NAME=VALUE" in done.stderr

    def test_check_refuses_what_breaks_a_schema_without_its_values(self, url: str) -> None:
        good = Event.new("a", {"cls_type": "metric", "version": "1.0.0", "metric": "secret-value"})
        feed = encode(good) + b"\n" + encode(event())
        done = run("publish", "--topics", url, "orders", "--check", feed=feed)
        assert "line 1: $.payload" in done.stderr
        assert "secret-value" not in done.stderr
        assert "1 event was published" in done.stderr

    def test_check_by_a_registry_knows_its_types(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "order").mkdir()
        (tmp_path / "order" / "1.0.0.json").write_text('{"required": ["id"]}')
        feed = encode(Event.new("a", {"cls_type": "order", "version": "1.0.0"}))
        done = run("publish", "--topics", url, "orders", "--check", "--registry", tmp_path, feed=feed)
        assert 'line 1: $.payload: breaks its schema: "id" is a required property' in done.stderr
        assert done.returncode == 1

    def test_where_nothing_can_be_stored_no_line_is_said_to_be(self, tmp_path: Path) -> None:
        (tmp_path / "topics").write_text("a file where the folder should be")
        done = run("publish", "--topics", f"local:{tmp_path}/topics", "orders", feed=encode(event()))
        assert done.returncode == 1
        assert "balog topics: 0 events are stored" in done.stderr

    def test_a_registry_that_is_not_there_checks_nothing_and_is_refused(self, url: str, tmp_path: Path) -> None:
        feed = encode(Event.new("a", {"cls_type": "order", "version": "1.0.0"}))
        done = run("publish", "--topics", url, "orders", "--check", "--registry", tmp_path / "schmas", feed=feed)
        assert done.returncode == 2
        assert done.stderr == f"balog topics: {tmp_path}/schmas: no such folder of schemas\n"


class TestRedrive:
    def redrive(self, url: str, *more: object) -> "subprocess.CompletedProcess[str]":
        return run("redrive", "--topics", url, "orders", "--group", "g", *more)

    def test_chosen_letters_go_back_mended(self, url: str) -> None:
        bury(url, event(1), event(2), event(3))
        done = self.redrive(
            url, "--where", "payload.n >= 2", "--set", "payload.fixed=true", "--unset", "payload.version"
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert "2 dead letters of g published, 1 not selected" in done.stderr
        with open_topics(url) as home:
            topic = home.topic("orders")
            back = [decode(message.body).payload for message in topic.receive("g")]
            assert back == [{"cls_type": "app.job", "n": number, "fixed": True} for number in (2, 3)]
            assert len(topic.dead_letters("g")) == 1

    def test_a_dry_run_prints_what_would_go(self, url: str) -> None:
        bury(url, event(1))
        done = self.redrive(url, "--dry-run", "--set", "payload.n=5")
        assert decode(done.stdout.strip()).payload["n"] == 5
        with open_topics(url) as home:
            assert len(home.topic("orders").dead_letters("g")) == 1
            assert home.topic("orders").receive("g") == []

    def test_what_would_be_no_event_stays_and_is_1(self, url: str) -> None:
        bury(url, event(1))
        done = self.redrive(url, "--set", "level=LOUD")
        assert done.returncode == 1
        assert "$.header.level" in done.stderr

    def test_a_bad_path_is_wrong_use(self, url: str) -> None:
        bury(url, event(1))
        assert self.redrive(url, "--set", "id=x").returncode == 2

    @pytest.mark.parametrize("words", [("redrive",), ("offsets",)])
    def test_a_group_that_nobody_knows_may_be_mistyped(self, url: str, words: tuple[str, ...]) -> None:
        bury(url, event(1))
        done = run(*words, "--topics", url, "orders", "--group", "nightly")
        assert done.returncode == 0
        assert "balog topics: no consumer of nightly has read orders yet; there are g\n" in done.stderr
        assert "no consumer" not in run(*words, "--topics", url, "orders", "--group", "g").stderr

    @pytest.mark.parametrize("words", [("redrive", "--group", "g"), ("peek",)])
    def test_a_condition_that_cannot_be_read_is_named(self, url: str, words: tuple[str, ...]) -> None:
        done = run(*words, "--topics", url, "orders", "--where", "payload.n =")
        assert done.returncode == 2
        assert "--where: column 11: " in done.stderr
        assert "'=': payload.n =" in done.stderr


class TestOffsets:
    def offsets(self, url: str, *more: object) -> "subprocess.CompletedProcess[str]":
        return run("offsets", "--topics", url, "orders", "--group", "g", *more)

    def test_a_group_is_shown_and_moved(self, url: str) -> None:
        publish(url, event(), event())
        assert "lag 2" in self.offsets(url).stdout
        assert "lag 0" in self.offsets(url, "--to", "latest").stdout
        assert "lag 2" in self.offsets(url, "--to", "earliest").stdout
        assert "lag 0" in self.offsets(url, "--to", "2099-01-01").stdout
        assert "lag 2" in self.offsets(url, "--to", "2020-01-01T00:00:00Z").stdout

    def test_a_group_that_holds_messages_is_not_moved(self, url: str) -> None:
        publish(url, event())
        with open_topics(url) as home:
            home.topic("orders").receive("g", lease=600)
        done = self.offsets(url, "--to", "latest")
        assert (done.returncode, done.stdout) == (1, "")
        assert "holds 1 message" in done.stderr

    def test_a_bad_time_is_wrong_use(self, url: str) -> None:
        assert self.offsets(url, "--to", "soon").returncode == 2


class TestDump:
    def test_what_is_dumped_can_be_published(self, url: str, tmp_path: Path) -> None:
        events = [event(number) for number in range(5)]
        publish(url, *events)
        done = run("dump", "--topics", url, "orders", "--to", tmp_path / "archive")
        assert (done.returncode, done.stdout) == (0, "")
        assert "5 events are in" in done.stderr
        other = f"local:{tmp_path / 'other'}"
        (file,) = (tmp_path / "archive").rglob("*.jsonl.gz")
        done = run("publish", "--topics", other, "again", feed=gzip.decompress(file.read_bytes()))
        assert "5 events were published" in done.stderr
        with open_topics(other) as home:
            assert [message.body for message in home.topic("again").receive("g")] == list(map(encode, events))

    def test_what_a_killed_dump_holds_is_told(self, url: str, tmp_path: Path) -> None:
        publish(url, event(), event())
        with open_topics(url) as home:
            home.topic("orders").receive("balog-dump", limit=1, lease=600)
        done = run("dump", "--topics", url, "orders", "--to", tmp_path / "archive")
        assert done.returncode == 1
        assert "1 event is in" in done.stderr
        assert "1 are held by another dump" in done.stderr

    def test_the_report_reads_what_is_dumped(self, url: str, tmp_path: Path) -> None:
        from balog.analytics.reading.discovery import find_files

        publish(url, event())
        run("dump", "--topics", url, "orders", "--to", tmp_path / "archive")
        (file,) = find_files(str(tmp_path / "archive"))
        assert file.path.endswith(".jsonl.gz")

    @pytest.mark.parametrize("acked", [0, 1000, 4000])
    def test_a_killed_dump_goes_on_and_loses_nothing(self, url: str, tmp_path: Path, acked: int) -> None:
        events = [event(number) for number in range(6_000)]
        publish(url, *events)
        arguments = ("dump", "--topics", url, "orders", "--to", tmp_path / "archive")
        with open_topics(url) as home:
            topic = home.topic("orders")

            def is_time() -> bool:
                state = topic.group_state("balog-dump")
                return state.lag < 6_000 and 6_000 - state.pending >= acked

            kill_after(start(*arguments), is_time)
            with topic._file.write() as connection:  # type: ignore[attr-defined]  # as if its leases had run out
                connection.execute("UPDATE leases SET ready_at = 0")
        assert run(*arguments).returncode == 0
        files = [gzip.decompress(file.read_bytes()) for file in (tmp_path / "archive").rglob("*.jsonl.gz")]
        found = {decode(line).header.id for file in files for line in file.splitlines()}
        assert found == {one.header.id for one in events}
