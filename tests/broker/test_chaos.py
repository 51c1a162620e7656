"""A long stream through three brokers whose sinks fail at random: no byte of the data and no event is lost."""

import hashlib
import json
import random
import re
import subprocess
import sys
import threading

import pytest

from balog.event import Event
from balog.singer import write_log
from tests.stand_ins.http_server import Answer, HttpStandIn

LINES = 2_000_000
EVERY = 100
POISON = 4_000
BALOG = [sys.executable, "-m", "balog"]


class Chaos:
    """The other side of three webhooks: takes events, or does one of the things that servers do."""

    def __init__(self, seed):
        self.taken = {name: set() for name in "abc"}
        self.is_well = False
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, request):
        events = json.loads(request.body)
        with self._lock:
            fate = self._random.random()
            if not self.is_well:
                if any(event["payload"]["n"] % POISON == 0 for event in events):
                    return Answer(400, b"poison")
                if fate < 0.1 or (request.path == "/c" and len(self.taken["c"]) > 8_000):
                    return Answer(503)
                if fate < 0.15:
                    return Answer(429, headers={"Retry-After": "0"})
                if fate < 0.2:
                    return Answer(trouble="reset")
                if fate < 0.25:
                    return Answer(trouble="close")
                if fate > 0.998 and request.path == "/b":
                    return Answer(trouble="hang")
            self.taken[request.path[1:]].update(event["header"]["id"] for event in events)
            return Answer(200, b"x" * 100, trouble="half" if fate > 0.97 and not self.is_well else "")


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream of two million lines with a LOG every hundred, and the ids of its events by their number."""
    path = tmp_path_factory.mktemp("chaos") / "stream.singer"
    ids = {}
    with path.open("wb") as out:
        for start in range(0, LINES, EVERY):
            number = start // EVERY
            event = Event.new("chaos", {"cls_type": "x", "n": number})
            ids[event.header.id] = number
            records = (
                b'{"type": "RECORD", "stream": "users", "record": {"id": %d, "name": "user %d"}}\n' % (n, n)
                for n in range(start, start + EVERY - 1)
            )
            out.write(b"".join(records) + write_log(event))
    return path, ids


def digest(stream):
    seen = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        seen.update(chunk)
    return seen.hexdigest()


def figures(said):
    """Give what a broker said of its sink: events delivered, spooled, dead, lost."""

    def number(pattern):
        found = re.search(rf"webhook [^ ]+: (\d+) {pattern}", said)
        return int(found[1]) if found else 0

    patterns = ("events delivered", "events wait in spool", "events were refused", "events were not delivered")
    return [number(pattern) for pattern in patterns]


def test_nothing_is_lost_between_three_brokers_whose_sinks_fail_at_random(stream, tmp_path):
    path, ids = stream
    chaos = Chaos(seed=7)
    with HttpStandIn(chaos) as server:
        for name in "abc":
            config = {
                "sinks": [
                    {
                        "type": "webhook",
                        "url": f"{server.url}/{name}",
                        "per": "batch",
                        "timeout": 2,
                        "batch": {"events": 200},
                        "retry": {"first": 0.01, "longest": 0.2},
                    }
                ],
                "spool": {"path": str(tmp_path / f"spool-{name}")},
                "drain": 3,
            }
            (tmp_path / f"{name}.json").write_text(json.dumps(config))
        brokers = []
        with path.open("rb") as source:
            before = source
            for name in "abc":
                command = [*BALOG, "broker", "-v", "--config", str(tmp_path / f"{name}.json")]
                with (tmp_path / f"{name}.log").open("wb") as log:
                    broker = subprocess.Popen(command, stdin=before, stdout=subprocess.PIPE, stderr=log)
                if before is not source:
                    before.close()
                before = broker.stdout
                brokers.append(broker)
            out = digest(before)
            before.close()
        assert [broker.wait(60) for broker in brokers] == [0, 0, 0]
        with path.open("rb") as source:
            assert out == digest(source), "the data came out otherwise than it went in"

        poison = {id for id, number in ids.items() if number % POISON == 0}
        for name in "abc":
            said = (tmp_path / f"{name}.log").read_text()
            delivered, spooled, dead, lost = figures(said)
            assert lost == 0, said
            assert delivered + spooled + dead == len(ids), said
            assert delivered > 5_000
            assert spooled > 5_000 if name == "c" else dead == len(poison), said
            assert chaos.taken[name].isdisjoint(poison)

        chaos.is_well = True
        for name in "abc":
            done = subprocess.run(
                [*BALOG, "replay", "--dead", str(tmp_path / f"spool-{name}")], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            assert chaos.taken[name] == set(ids), "every event arrives in the end"
