"""The store sink, and STATE's store, at real servers: S3Proxy and pyftpdlib, with what goes wrong there."""

import gzip
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timezone
from hashlib import sha256
from uuid import uuid4

import pytest

from balog.event import Event, decode, encode
from balog.sinks import Delivery, Retrying, SinkError
from balog.sinks.store import StoreSinkConfig
from tests.services.servers.ftp import running_ftp
from tests.services.servers.s3 import running_s3
from tests.waiting import wait_for

pytestmark = pytest.mark.service

BALOG = [sys.executable, "-m", "balog"]


class S3Place:
    """A new bucket of the server; its objects are files that a test can look at."""

    def __init__(self, server):
        self.server = server
        self.bucket = f"bucket-{uuid4().hex}"
        self.folder = server.bucket(self.bucket) / "archive"
        self.url = f"s3://{self.bucket}/archive"

    def options(self):
        return self.server.options()

    def fail(self):
        self.server.stop()

    def mend(self):
        self.server.up()


class FtpPlace:
    def __init__(self, server):
        self.server = server
        self.folder = server.folder / "archive"
        self.url = server.url("archive")

    def options(self):
        return self.server.options()

    def fail(self):
        self.server.fault = "cut"

    def mend(self):
        self.server.fault = ""


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory):
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def ftp_server(tmp_path):
    with running_ftp(tmp_path / "ftp") as server:
        yield server


@pytest.fixture(params=[S3Place, FtpPlace], ids=["s3", "ftp"])
def place(request, monkeypatch):
    made = request.param(request.getfixturevalue("s3_server" if request.param is S3Place else "ftp_server"))
    made.server.environment(monkeypatch)
    return made


def deliveries(count):
    when = datetime(2026, 11, 20, tzinfo=timezone.utc)
    events = [Event.new("a.b", {"n": n, "pad": os.urandom(50).hex()}, timestamp=when) for n in range(count)]
    return [Delivery(event, encode(event)) for event in events]


def build(place, root, **more):
    sink = StoreSinkConfig(
        url=place.url, options=place.options(), staging=str(root / "staging"), topic="events", **more
    ).build()
    sink.open()
    return sink


def visible(place, pattern):
    return sorted(file for file in place.folder.glob(pattern) if not file.name.startswith("."))


def ids(place):
    found = []
    for file in visible(place, "events/date=*/*.jsonl.gz"):
        found += [decode(line).header.id for line in gzip.decompress(file.read_bytes()).splitlines()]
    return sorted(found)


def sent(*batches):
    return sorted(event.header.id for batch in batches for event, _ in batch)


def staged(root):
    return [path for path in (root / "staging").rglob("*") if path.is_file()]


def test_events_arrive_with_manifests_that_are_right(place, tmp_path):
    batches = [deliveries(500), deliveries(500)]
    sink = build(place, tmp_path, max_file_bytes=20_000)
    for batch in batches:
        sink.write(batch)
    sink.close()

    assert ids(place) == sent(*batches)
    manifests = [json.loads(file.read_bytes()) for file in visible(place, "events/_manifest/*.json")]
    files = visible(place, "events/date=*/*")
    assert {item["file"]: item["sha256"] for item in manifests} == {
        str(file.relative_to(place.folder / "events")): sha256(file.read_bytes()).hexdigest() for file in files
    }
    assert sum(item["events"] for item in manifests) == 1000
    assert staged(tmp_path) == []


def test_a_server_that_is_away_for_a_while_costs_nothing(place, tmp_path, capsys):
    """Given a server that dies half-way, then batches go on being taken, and each event is there once afterwards."""
    batches = [deliveries(200) for _ in range(3)]
    sink = build(place, tmp_path, max_file_bytes=1024, retry=Retrying(first=0.1, longest=0.5))
    sink.write(batches[0])
    wait_for(lambda: ids(place) == sent(batches[0]) and not staged(tmp_path))
    place.fail()
    sink.write(batches[1])
    wait_for(lambda: capsys.readouterr().err)
    sink.write(batches[2])
    place.mend()
    sink.close()

    assert ids(place) == sent(*batches)
    assert staged(tmp_path) == []


def test_a_probe_tells_whether_it_can_be_written_to_and_leaves_nothing(place, tmp_path):
    sink = build(place, tmp_path)
    sink.probe()
    assert [file for file in place.folder.rglob("*") if file.is_file()] == []
    place.fail()
    with pytest.raises(SinkError):
        sink.probe()
    place.mend()
    sink.close()


def log(number):
    event = Event.new("a.b", {"n": number})
    return event.header.id, b'{"type": "LOG", "level": "INFO", "value": %s}\n' % encode(event)


def state(number):
    return b'{"type": "STATE", "value": {"bookmarks": {"users": {"id": %d}}}}\n' % number


def configure(place, root):
    store = {"type": "store", "url": place.url, "options": place.options(), "topic": "events"}
    config = {
        "sinks": [{**store, "staging": str(root / "staging")}],
        "state": {"store": f"{place.url}/state.json", "options": place.options(), "every": 0},
    }
    (root / "broker.json").write_text(json.dumps(config))
    return root / "broker.json"


def test_a_broker_stores_events_and_the_state_from_which_the_next_run_starts(place, tmp_path):
    path = configure(place, tmp_path)
    logs = [log(number) for number in range(300)]
    stream = b"".join(line + state(number) for number, (_, line) in enumerate(logs))
    none = subprocess.run([*BALOG, "state", "load", "--config", path], capture_output=True)
    assert (none.returncode, none.stdout) == (1, b"")
    assert b"nothing is stored" in none.stderr
    done = subprocess.run([*BALOG, "broker", "--config", path], input=stream, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == stream

    assert ids(place) == sorted(id for id, _ in logs)
    loaded = subprocess.run([*BALOG, "state", "load", "--config", path], capture_output=True)
    assert (loaded.returncode, loaded.stdout) == (0, b'{"bookmarks": {"users": {"id": 299}}}\n')
    shown = subprocess.run([*BALOG, "state", "show", "--config", path], capture_output=True, text=True)
    assert "ago" in shown.stdout
    assert "299" in shown.stdout


def test_a_broker_that_is_killed_loses_no_event_that_was_safe(place, tmp_path):
    """Given kill -9 in the middle of a stream, then the next broker uploads what was staged, and the state is whole."""
    path = configure(place, tmp_path)
    logs = [log(number) for number in range(200)]
    broker = subprocess.Popen([*BALOG, "broker", "--config", path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    broker.stdin.write(b"".join(line + state(number) for number, (_, line) in enumerate(logs)))
    broker.stdin.flush()
    wait_for(lambda: any(file.stat().st_size > 500 for file in staged(tmp_path)))
    wait_for((place.folder / "state.json").exists)
    broker.send_signal(signal.SIGKILL)
    broker.communicate()
    assert staged(tmp_path)
    assert ids(place) == []

    later = log(200)
    done = subprocess.run([*BALOG, "broker", "--config", path], input=later[1], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(ids(place)) > 1
    assert set(ids(place)) <= {id for id, _ in [*logs, later]}
    assert len(set(ids(place))) == len(ids(place))
    assert staged(tmp_path) == []
    loaded = subprocess.run([*BALOG, "state", "load", "--config", path], capture_output=True)
    assert set(json.loads(loaded.stdout)) == {"bookmarks"}


def test_a_dead_server_never_stops_the_stream(place, tmp_path):
    path = configure(place, tmp_path)
    stream = b"".join(log(number)[1] + state(number) for number in range(50))
    place.fail()
    try:
        done = subprocess.run([*BALOG, "broker", "--config", path], input=stream, capture_output=True, text=False)
    finally:
        place.mend()
    assert done.stdout == stream
    assert done.returncode == 0
    said = done.stderr.decode().splitlines()
    assert len([line for line in said if "in the staging folder; the next sink" in line]) == 1
    assert len([line for line in said if "the last STATE was not written" in line]) == 1
    assert "balog-test" not in done.stderr.decode()
