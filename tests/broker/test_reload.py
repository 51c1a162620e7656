"""SIGHUP: another config while the stream goes on."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from balog.event import Event, decode
from balog.singer import write_log
from balog.topics import open_topics

SCHEMA = {
    "type": "SCHEMA",
    "stream": "users",
    "schema": {"type": "object", "properties": {"id": {"type": "integer"}, "email": {"type": "string"}}},
    "key_properties": ["id"],
}


def line(document):
    return json.dumps(document).encode() + b"\n"


def record(number):
    return {"type": "RECORD", "stream": "users", "record": {"id": number, "email": f"u{number}@example.com"}}


def events(root, topic):
    home = open_topics(f"local:{root / 'topics'}")
    bodies = []
    while received := home.topic(topic).receive("test", 500, 0.0, 60.0):
        bodies += [decode(item.body).payload["n"] for item in received]
        home.topic(topic).ack("test", received)
    home.close()
    return bodies


class Broker:
    """A broker under way, written to and read from line by line."""

    def __init__(self, config):
        command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.said = []
        self._guard = threading.Timer(60, self.process.kill)  # what waits for a line then gets none
        self._guard.start()

    def send(self, *lines):
        self.process.stdin.write(b"".join(lines))

    def next(self):
        line = self.process.stdout.readline()
        assert line, "the broker ended"
        return json.loads(line)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        while True:
            said = self.process.stderr.readline().decode()
            assert said, "the broker ended"
            self.said.append(said)
            if "read again" in said or "not taken" in said:
                return said

    def end(self):
        out, err = self.process.communicate(timeout=30)
        self._guard.cancel()
        self.said += err.decode().splitlines()
        return [json.loads(item) for item in out.splitlines()]


@pytest.fixture
def config(tmp_path):
    def write(**changes):
        topic = changes.pop("topic", "first")
        sink = {"type": "topic", "url": f"local:{tmp_path / 'topics'}", "topic": topic}
        if where := changes.pop("where", None):
            sink["where"] = where
        path = tmp_path / "broker.json"
        path.write_text(json.dumps({"sinks": [sink], "strip": True, **changes}))
        return path

    return write


def log(number):
    return write_log(Event.new("a", {"n": number}))


def test_sinks_and_their_filters_change_and_no_event_is_lost(config, tmp_path):
    broker = Broker(config())
    broker.send(*(log(n) for n in range(100)), line(record(1)))
    assert broker.next() == record(1)
    config(topic="second", where="payload.n >= 150")
    assert "read again" in broker.reload()
    broker.send(*(log(n) for n in range(100, 200)), line(record(2)))
    assert broker.next() == record(2)
    assert broker.end() == []
    assert broker.process.returncode == 0
    assert sorted(events(tmp_path, "first")) == list(range(100))
    assert sorted(events(tmp_path, "second")) == list(range(150, 200))


def test_rules_for_records_change_and_the_schema_follows_at_once(config):
    broker = Broker(config())
    broker.send(line(record(0)))
    assert broker.next() == record(0)
    config(records=[{"stream": "users", "filter": "id > 0"}])
    broker.reload()
    broker.send(line(SCHEMA), line(record(0)), line(record(1)))
    assert broker.next() == SCHEMA
    assert broker.next() == record(1)
    config(records=[{"stream": "users", "drop": ["email"]}])
    broker.reload()
    followed = broker.next()
    assert followed["type"] == "SCHEMA"
    assert list(followed["schema"]["properties"]) == ["id"]
    broker.send(line(record(2)))
    assert broker.next()["record"] == {"id": 2}
    config()
    broker.reload()
    assert broker.next() == SCHEMA
    broker.send(line(record(3)))
    assert broker.next() == record(3)
    assert broker.end() == []


def test_a_config_that_is_refused_changes_nothing(config, tmp_path):
    broker = Broker(config())
    broker.send(line(record(1)))
    broker.next()
    config(topic="../second")
    assert "$.sinks[0]" in broker.reload()
    (tmp_path / "broker.json").write_text("{")
    assert "not JSON" in broker.reload()
    config(records=[{"stream": "users", "filter": "id >"}])
    assert "$.records[0].filter" in broker.reload()
    broker.send(log(1), line(record(2)))
    assert broker.next() == record(2)
    broker.end()
    assert events(tmp_path, "first") == [1]


def test_rules_that_a_stream_under_way_refuses_change_nothing(config):
    """Given a key property that the new rules would drop, then the old rules stay."""
    broker = Broker(config(records=[{"stream": "users", "drop": ["email"]}]))
    broker.send(line(SCHEMA), line(record(1)))
    broker.next()
    assert broker.next()["record"] == {"id": 1}
    config(records=[{"stream": "users", "drop": ["id"]}])
    assert "not taken" in broker.reload()
    broker.send(line(record(2)))
    assert broker.next()["record"] == {"id": 2}
    broker.end()


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("spool", {"path": "spool"}),
        ("state", {"store": "state.json"}),
        ("metrics", {"stage": "other"}),
        ("quarantine", {"path": "quarantine"}),
    ],
)
def test_what_cannot_change_is_said(config, tmp_path, monkeypatch, part, changed):
    monkeypatch.chdir(tmp_path)
    broker = Broker(config())
    broker.send(line(record(1)))
    broker.next()
    config(**{part: changed})
    broker.reload()
    assert any(f"{part} is taken from the config at the next start" in said for said in broker.said)
    broker.end()


def test_rows_that_cannot_go_on_at_a_reload_end_the_stream(config, tmp_path):
    """Given RECORDs held for a file that can't be finished, then a reload does not go on without them."""
    batch = {"to": "batch", "location": str(tmp_path / "batches")}
    broker = Broker(config(batch=batch))
    broker.send(line(SCHEMA), line(record(1)), line({"type": "ACTIVATE_VERSION", "stream": "orders", "version": 1}))
    assert broker.next() == SCHEMA
    assert broker.next()["type"] == "ACTIVATE_VERSION"
    shutil.rmtree(tmp_path / "batches")
    config(batch={**batch, "max_records": 5})
    broker.process.send_signal(signal.SIGHUP)
    assert broker.process.wait(20) == 1, "it ends by itself"
    broker.end()
    assert not any("read again" in said or "not taken" in said for said in broker.said)


def test_a_hangup_in_the_middle_of_a_long_line_waits_for_its_end(config):
    """Given a line that passes in pieces, then nothing is put inside of it. With record rules it would be held."""
    broker = Broker(config(schemas=[{"stream": "users", "set": {"title": "users"}}]))
    broker.send(line(SCHEMA))
    broker.next()
    long = line({"type": "RECORD", "stream": "orders", "record": {"text": "x" * 12_000_000}})
    broker.send(long[: 9 << 20])
    head = broker.process.stdout.read(1 << 20)
    config(records=[{"stream": "users", "rename": {"email": "mail"}}])
    broker.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    rest = threading.Thread(target=broker.send, args=(long[9 << 20 :],))
    rest.start()
    assert (head + broker.process.stdout.readline()) == long
    rest.join()
    assert list(broker.next()["schema"]["properties"]) == ["id", "mail"]
    broker.end()
