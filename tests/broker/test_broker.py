"""The broker as a process: ``… | balog broker --config … | …``."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from balog.event import Event, decode, encode
from balog.singer import write_log
from balog.topics import open_topics
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.waiting import wait_for

DATA = Path(__file__).parent.parent / "data"
BALOG = [sys.executable, "-m", "balog"]


@pytest.fixture
def config(tmp_path):
    """A config with both sinks, in the temporary folder."""
    path = tmp_path / "broker.json"
    topic = {"type": "topic", "url": f"local:{tmp_path / 'topics'}", "topic": "events"}
    store = {"type": "store", "path": str(tmp_path / "archive"), "topic": "events"}
    path.write_text(json.dumps({"sinks": [topic, store]}))
    return path


def broker(config, data, *options):
    return subprocess.run([*BALOG, "broker", "--config", str(config), *options], input=data, capture_output=True)


def started(config, *prefix, **more):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    return subprocess.Popen([*prefix, *BALOG, "broker", "--config", str(config)], **{**pipes, **more})


def in_topic(root):
    home = open_topics(f"local:{root / 'topics'}")
    topic, bodies = home.topic("events"), []
    while received := topic.receive("test", 500, 0.0, 60.0):
        bodies += [item.body for item in received]
        topic.ack("test", received)
    home.close()
    return bodies


def in_archive(root):
    files = root.glob("archive/events/date=*/*.jsonl.gz")
    return [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def stream(events):
    record = b'{"type": "RECORD", "stream": "users", "record": {"id": 1}}\n'
    return b"".join(record + write_log(event) for event in events)


class TestPassing:
    def test_a_stream_without_log_is_the_same_behind_it(self, config):
        data = (DATA / "singer-sdk.singer").read_bytes()
        done = broker(config, data)
        assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")

    def test_no_sinks_only_passes(self, tmp_path):
        (tmp_path / "c.json").write_text('{"sinks": []}')
        data = stream([Event.new("a", {"n": 1})])
        assert broker(tmp_path / "c.json", data).stdout == data

    def test_events_reach_every_sink_and_log_goes_on(self, config, tmp_path):
        events = [Event.new("a.b", {"cls_type": "x", "n": n}) for n in range(2500)]
        data = stream(events)
        done = broker(config, data, "-v")
        assert (done.returncode, done.stdout) == (0, data)
        assert done.stderr.decode().splitlines() == [
            f"balog broker: topic local:{tmp_path}/topics#events: 2500 events delivered",
            f"balog broker: store {tmp_path}/archive: 2500 events delivered",
            f"balog broker: {len(data)} bytes, 2500 LOG messages",
        ]
        sent = [encode(event) for event in events]
        assert in_topic(tmp_path) == sent
        assert in_archive(tmp_path) == sent

    @pytest.mark.parametrize("how", ["option", "config"])
    def test_strip_keeps_log_from_the_target(self, how, config):
        if how == "config":
            config.write_text(json.dumps(json.loads(config.read_text()) | {"strip": True}))
        data = stream([Event.new("a", {"n": 1})])
        done = broker(config, data, *(["--strip"] if how == "option" else []))
        assert done.stdout == data.splitlines(keepends=True)[0]

    def test_brokers_in_a_row_give_each_event_once(self, config, tmp_path):
        """Given two brokers that publish to one topic, then an event that both saw is there once."""
        data = stream([Event.new("a", {"n": n}) for n in range(50)])
        assert broker(config, broker(config, data).stdout).stdout == data
        assert len(in_topic(tmp_path)) == 50

    def test_lines_that_are_not_json_are_counted(self, config):
        done = broker(config, b"oops\n\xff\n")
        assert (done.returncode, done.stdout) == (0, b"oops\n\xff\n")
        assert done.stderr == b"balog broker: 2 lines were passed unchanged: not a JSON object\n"


class TestTrouble:
    def test_a_dead_sink_never_stops_the_data(self, config, tmp_path):
        (tmp_path / "topics").write_text("a file where the folder should be")
        data = stream([Event.new("a", {"n": n}) for n in range(5)])
        config.write_text(json.dumps({**json.loads(config.read_text()), "drain": 0.3}))
        done = broker(config, data)
        assert (done.returncode, done.stdout) == (0, data)
        first, last = done.stderr.decode().splitlines()[0], done.stderr.decode().splitlines()[-1]
        name = f"balog broker: topic local:{tmp_path}/topics#events: "
        assert first.startswith(name)
        assert last == f"{name}5 events were not delivered"
        assert len(in_archive(tmp_path)) == 5

    def test_the_target_need_not_wait_for_the_sinks(self, tmp_path):
        """Given a sink that hangs when the stream has ended, then the target reads the end while the broker drains."""
        config = tmp_path / "c.json"
        with HttpStandIn(lambda request: Answer(trouble="hang")) as server:
            config.write_text(json.dumps({"sinks": [{"type": "webhook", "url": server.url}], "drain": 300}))
            with started(config) as process:
                data = stream([Event.new("a", {"n": 1})])
                process.stdin.write(data)
                process.stdin.close()
                assert process.stdout.read() == data
                assert process.poll() is None, "it still drains"
                # The first asks to drain, which it does; signals that come before the process runs are one.
                wait_for(lambda: process.poll() is not None or process.terminate())
                assert process.returncode == 128 + signal.SIGTERM

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("{", "c.json:1:2: not JSON: expecting property name enclosed in double quotes"),
            ('{"sinks": [],\n "x": 1}', "$: there is no field 'x'"),
            ('{"sinks": 1}', "$.sinks: expected `array`, got `int`"),
            ('{"sinks": [{"type": "pigeon"}]}', "$.sinks[0]: there is no type 'pigeon'; there are "),
            ('{"sinks": [{"type": "store"}]}', "$.sinks[0]: the field 'topic' is missing"),
            (
                '{"sinks": [{"type": "topic", "url": "nope:x", "topic": "a"}]}',
                "c.json: $.sinks[0]: 'nope:x': no topics",
            ),
            (
                '{"sinks": [{"type": "topic", "url": "local:x", "topic": "../a"}]}',
                "c.json: $.sinks[0]: topic name '../a'",
            ),
            ('{"sinks": [{"type": "store", "path": "x", "topic": "../a"}]}', "c.json: $.sinks[0].topic: '../a'"),
        ],
    )
    def test_a_bad_config_is_one_line_before_anything_is_read(self, text, says, tmp_path):
        (tmp_path / "c.json").write_text(text)
        done = broker(tmp_path / "c.json", b"data\n")
        assert (done.returncode, done.stdout) == (2, b"")
        assert says in done.stderr.decode()
        assert len(done.stderr.splitlines()) == 1

    def test_a_missing_config_is_one_line(self, tmp_path):
        done = broker(tmp_path / "none.json", b"")
        assert done.returncode == 2
        assert b"none.json: cannot be read: No such file or directory" in done.stderr

    @pytest.mark.parametrize(
        ("closing", "code", "out", "says"),
        [
            ("<&-", 1, b"", b"balog broker: the stream broke: Bad file descriptor\n"),
            (">&-", 1, b"", b"balog broker: the stream broke: Bad file descriptor\n"),
            ("2>&-", 0, b"{}\n", b""),
            ("<&- >&- 2>&-", 1, b"", b""),
        ],
    )
    def test_a_closed_descriptor_is_never_another_file(self, closing, code, out, says, config):
        """Given a shell that closed stdin, stdout or stderr, then the broker ends, and no file takes its place."""
        done = subprocess.run(
            ["sh", "-c", f'"$@" {closing}', "sh", *BALOG, "broker", "--config", str(config)],
            input=b"{}\n",
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, out, says)

    def test_a_target_that_ends_early(self, config, tmp_path):
        """Given a target that dies, then the broker says so, exits 1, and the events so far are safe."""
        data = stream([Event.new("a", {"n": n}) for n in range(20_000)])
        source = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = started(config, stdin=source.stdout, stderr=subprocess.PIPE)
        source.stdout.close()
        process.stdout.close()
        try:
            source.communicate(data)
        except BrokenPipeError:
            pass
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait() == 1
        assert b"the target closed the pipe" in said
        assert b"Traceback" not in said
        assert len(in_topic(tmp_path)) > 0


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_ends_it_at_a_line_with_everything_delivered(self, number, config, tmp_path):
        data = stream([Event.new("a", {"n": n}) for n in range(100)])
        with started(config) as process:
            process.stdin.write(data + b'{"type": "half a li')
            assert read_exactly(process.stdout, len(data)) == data
            process.send_signal(number)
            assert process.stdout.read() == b""
            assert process.wait() == 128 + number
        assert len(in_topic(tmp_path)) == 100
        assert len(in_archive(tmp_path)) == 100

    def test_a_signal_that_is_ignored_stays_ignored(self, config):
        """Given a broker in the background, where a shell ignores SIGINT, then Ctrl-C does not reach it."""
        with started(config, "sh", "-c", 'trap "" INT; exec "$@"', "sh") as process:
            process.stdin.write(b"first\n")
            assert read_exactly(process.stdout, 6) == b"first\n"
            process.send_signal(signal.SIGINT)
            process.stdin.write(b"second\n")
            assert read_exactly(process.stdout, 7) == b"second\n"
            process.stdin.close()
            assert process.wait() == 0

    def test_kill_9_loses_no_event_that_the_topic_took(self, config, tmp_path):
        """Given brokers killed at any moment and the stream sent again, then every event is in the topic, once."""
        events = [Event.new("a", {"n": n}) for n in range(3000)]
        data = stream(events)
        taken_before: set[bytes] = set()
        for round_ in range(6):
            with started(config, stdout=subprocess.DEVNULL) as process:
                os.set_blocking(process.stdin.fileno(), True)
                process.stdin.write(data[: len(data) * (round_ + 1) // 7])
                time.sleep(0.05 * round_)
                process.kill()
            if (tmp_path / "topics").exists():
                with open_topics(f"local:{tmp_path / 'topics'}") as home:
                    topic = home.topic("events")  # the folder may be all that was made
                    found = {item.body for item in topic.receive(f"r{round_}", 5000)} if topic.exists() else set()
                assert taken_before <= found
                taken_before = found
        assert broker(config, data).returncode == 0
        assert sorted(in_topic(tmp_path)) == sorted(encode(event) for event in events)
        archived = in_archive(tmp_path)
        assert set(archived) >= {encode(event) for event in events}
        for line in archived:
            decode(line)


def test_a_killed_broker_leaves_no_temporary_folder(config, tmp_path):
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with started(config, env=environment) as process:
        process.stdin.write(b"data\n")
        assert process.stdout.readline() == b"data\n"
        process.kill()
    assert list((tmp_path / "tmp").iterdir()) == []


def read_exactly(file, count):
    data = b""
    while len(data) < count:
        data += file.read(count - len(data))
    return data
