"""What a killed broker leaves: an event older than the spool's window was delivered or is on disk.

The account is kept outside balog: the tap writes plain JSON, each receiver notes the numbers that it reads in a request
before it answers, and the files of the spool are searched as text.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.effort import seeds
from tests.stand_ins.clickhouse import ClickHouseStandIn
from tests.stand_ins.datadog import Datadog
from tests.stand_ins.elastic import ElasticStandIn
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.stand_ins.otlp import OtlpReceiver
from tests.stand_ins.packages import install_sinks
from tests.stand_ins.pagerduty import ROUTING_KEY, PagerDuty
from tests.stand_ins.service import ServiceStandIn
from tests.stand_ins.ytsaurus import YTsaurusStandIn

ROOT = Path(__file__).parents[2]
KEY = "0123456789abcdef0123456789abcdef"
WINDOW = 1.0
TOKEN = re.compile(rb"ev\d{6}")


def line_of(number: int) -> bytes:
    """Return a LOG line of an event; every second one is a counter, the others are errors."""
    token = f"ev{number:06d}"
    payload: dict[str, Any] = {"cls_type": "log", "message": token}
    if number % 2:
        payload = {"cls_type": "metric", "type": "counter", "metric": "rows", "value": 1, "tags": {"k": token}}
    now = time.time()
    header = {
        "id": f"LG{uuid.uuid4().hex}",
        "channel": "tap.sync",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z",
        "level": "ERROR",
        "composition": False,
        "context": {"fqdn": "h", "application": "tap"},
    }
    event = {"schema": "0.1.0", "header": header, "payload": payload}
    return json.dumps({"type": "LOG", "level": "ERROR", "value": event}).encode() + b"\n"


def tokens_below(folder: Path) -> set[bytes]:
    """Return the numbers that stand anywhere in the files below a folder."""
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file():
                found |= set(TOKEN.findall(path.read_bytes()))
    return found


class Receivers:
    """The other sides of all sinks that have one, and what each has been given.

    Attributes:
        delay: returns the seconds that a request takes.
        is_down: whether every request is answered with 503.
        delivered: numbers of the events in requests that succeeded, by the sink's type.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.delay: Callable[[], float] = lambda: 0.0
        self.is_down = False
        self.delivered: dict[str, set[bytes]] = defaultdict(set)
        self._stack = stack
        plain: dict[str, Callable[[Request], Answer]] = {
            "datadog": Datadog(KEY),
            "otlp": OtlpReceiver(),
            "pagerduty": PagerDuty(ROUTING_KEY),
            "prometheus": lambda request: Answer(),
            "service": ServiceStandIn(),
            "webhook": lambda request: Answer(),
        }
        servers = {name: HttpStandIn(respond) for name, respond in plain.items()}
        servers |= {"clickhouse": ClickHouseStandIn(), "elastic": ElasticStandIn(), "ytsaurus": YTsaurusStandIn("t")}
        url = {}
        for name, server in servers.items():
            server.respond = self._noting(name, server.respond)
            stack.enter_context(server)
            url[name] = server.url
        self._udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        threading.Thread(target=self._read_datagrams, daemon=True).start()
        push = {"url": url["prometheus"], "job": "j"}
        logs, metrics = {"where": "cls_type = 'log'"}, {"where": "cls_type = 'metric'", "max_series": 100_000}
        self.sinks: list[dict[str, Any]] = [
            {"type": "clickhouse", "url": url["clickhouse"]},
            {"type": "datadog", "api_key": {"env": "T_DD"}, "url": url["datadog"], "send": ["logs"], **logs},
            {"type": "elastic", "url": url["elastic"]},
            {"type": "otlp", "url": url["otlp"], "send": ["logs"]},
            {
                "type": "pagerduty",
                "url": url["pagerduty"],
                "routing_key": {"env": "T_PD"},
                "batch": {"events": 1},
                **logs,
            },
            {"type": "prometheus", "pushgateway": push, **metrics},
            {"type": "service", "url": url["service"]},
            {
                "type": "statsd",
                "host": "127.0.0.1",
                "port": self._udp.getsockname()[1],
                "format": "dogstatsd",
                "rate": 2,
                **metrics,
            },
            {"type": "store", "path": str(folder / "archive"), "topic": "t"},
            {"type": "topic", "url": f"local:{folder / 'topics'}", "topic": "t"},
            {"type": "webhook", "url": url["webhook"], "per": "batch"},
            {"type": "ytsaurus", "proxy": url["ytsaurus"], "path": "//home/t", "token": {"env": "T_YT"}},
        ]
        for sink in self.sinks:
            sink["batch"] = {"events": 20, **sink.get("batch", {})}
            sink["retry"] = {"first": 0.05, "longest": 0.5}

    def _noting(self, name: str, respond: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        def serve(request: Request) -> Answer:
            time.sleep(self.delay())
            if self.is_down:
                return Answer(503)
            answer = respond(request)
            if answer.status < 300 and not answer.trouble:
                self.delivered[name].update(TOKEN.findall(request.body))
            return answer

        return serve

    def _read_datagrams(self) -> None:
        with suppress(OSError):
            while data := self._udp.recv(65_536):
                self.delivered["statsd"].update(TOKEN.findall(data))

    def all_delivered(self, sink: str, folder: Path) -> set[bytes]:
        """Return what a sink has delivered, in the files of those that write to this machine's disk too."""
        if sink == "topic":
            return tokens_below(folder / "topics")
        if sink == "store":
            return archived(folder / "archive")
        return self.delivered[sink]


def archived(folder: Path) -> set[bytes]:
    """Return the numbers in an archive's files, also in those that gzip has not ended."""
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file() and ".gz" in path.name:
            data = path.read_bytes()
            while data:
                part = zlib.decompressobj(31)
                with suppress(zlib.error):
                    found |= set(TOKEN.findall(part.decompress(data)))
                data = part.unused_data
    return found


class Slack:
    """Measures how late a thread and a small write to the disk are on this machine, while a test runs."""

    def __init__(self, folder: Path) -> None:
        self.worst = 0.0
        self._path = folder / "slack"
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Slack:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with open(self._path, "wb") as file:
            while not self._is_over.is_set():
                began = time.monotonic()
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())
                time.sleep(0.02)
                self.worst = max(self.worst, time.monotonic() - began - 0.02)


class Broker:
    """A broker that is fed events by one thread, and whose output is read by another.

    Attributes:
        passed: when the line of an event came out, by its number.
    """

    def __init__(self, config: Path, environment: dict[str, str], start: int, rate: float) -> None:
        self.passed: dict[bytes, float] = {}
        self._start, self._rate = start, rate
        self._is_over = threading.Event()
        command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT, bufsize=0
        )
        self._threads = [threading.Thread(target=self._feed), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _feed(self) -> None:
        assert self._process.stdin is not None
        number, began = self._start, time.monotonic()
        with suppress(OSError):
            while not self._is_over.is_set():
                wanted = int((time.monotonic() - began) * self._rate)
                lines = b"".join(line_of(n) for n in range(number, self._start + wanted))
                number = self._start + wanted
                if lines:
                    self._process.stdin.write(lines)
                time.sleep(0.01)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in iter(self._process.stdout.readline, b""):
            if line.endswith(b"\n") and (found := TOKEN.search(line)):
                self.passed[found[0]] = time.monotonic()

    def kill(self) -> float:
        """Kill it with signal 9. Return when."""
        at = time.monotonic()
        self._process.kill()
        self._process.wait()
        self._is_over.set()
        for thread in self._threads:  # before their files are closed
            thread.join()
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return at


def finish(config: Path, environment: dict[str, str]) -> None:
    """Run a broker without input to its end, which delivers what is in the spool."""
    command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, cwd=ROOT, check=True)


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    plugins = tmp_path_factory.mktemp("plugins")
    path = os.pathsep.join([str(ROOT), install_sinks(plugins)])
    return {**os.environ, "T_DD": KEY, "T_PD": ROUTING_KEY, "T_YT": "t", "PYTHONPATH": path}


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[Receivers]:
    for package in ("yt.yson", "datadog_api_client", "opentelemetry.proto"):
        pytest.importorskip(package)
    with ExitStack() as stack:
        yield Receivers(stack, tmp_path)


def write_config(tmp_path: Path, sinks: list[dict[str, Any]], **spool: Any) -> Path:
    path = tmp_path / "broker.json"
    spool = {"path": str(tmp_path / "spool"), **spool}
    path.write_text(json.dumps({"sinks": sinks, "spool": spool, "drain": 60}))
    return path


def in_spool(tmp_path: Path, sink: str) -> set[bytes]:
    """Return what lies in the part of the spool that is a sink's, dead letters too."""
    return {
        token
        for folder in (tmp_path / "spool").iterdir()
        if folder.name.split("-")[0] == sink
        for token in tokens_below(folder)
    }


def wanted(sink: dict[str, Any], number: bytes) -> bool:
    kind = "metric" if int(number[2:]) % 2 else "log"
    return kind in sink.get("where", kind)


def slow(receivers: Receivers) -> None:
    receivers.delay = lambda: 0.5


def dead(receivers: Receivers) -> None:
    receivers.is_down = True


def behind(receivers: Receivers) -> None:
    receivers.delay = lambda: 0.1


@pytest.mark.parametrize("trouble", [slow, dead, behind])
def test_what_is_older_than_the_window_was_delivered_or_is_on_disk_at_every_sink(
    receivers: Receivers, environment: dict[str, str], tmp_path: Path, trouble: Callable[[Receivers], None]
) -> None:
    """Given receivers that take half a second a request, are down, or take 200 of 400 events a second; kill -9."""
    trouble(receivers)
    config = write_config(tmp_path, receivers.sinks)
    with Slack(tmp_path) as slack:
        broker = Broker(config, environment, 0, rate=400)
        until = time.monotonic() + 60
        required: set[bytes] = set()
        while len(required) < 400 and time.monotonic() < until:
            time.sleep(0.1)
            old = time.monotonic() - WINDOW - 40 * slack.worst
            required = {token for token, at in list(broker.passed.items()) if at < old}
        killed = broker.kill()
        old = killed - WINDOW - 40 * slack.worst
    required = {token for token, at in broker.passed.items() if at < old}
    assert len(required) >= 200

    for sink in receivers.sinks:
        due = {token for token in required if wanted(sink, token)}
        safe = receivers.all_delivered(sink["type"], tmp_path) | in_spool(tmp_path, sink["type"])
        assert not due - safe, (sink["type"], len(due - safe), len(due))
        assert due

    receivers.is_down, receivers.delay = False, lambda: 0.0
    finish(config, environment)
    for sink in receivers.sinks:
        due = {token for token in required if wanted(sink, token)}
        assert not due - receivers.all_delivered(sink["type"], tmp_path), sink["type"]


@pytest.mark.parametrize("seed", seeds(2))
def test_whatever_the_receiver_does_what_is_older_than_the_window_is_safe_when_the_broker_is_killed(
    environment: dict[str, str], tmp_path: Path, seed: int
) -> None:
    """Given runs with random windows, rates, delays, failures and partial batches, each ended by kill -9 at a random
    time, then at each kill every event older than the window was delivered or is on disk, and comes in the end.
    """
    chance = random.Random(seed)
    delivered: set[bytes] = set()
    mood = {"fail": 0.0, "delay": 0.0}

    def serve(request: Request) -> Answer:
        time.sleep(chance.random() * 2 * mood["delay"])
        if chance.random() < mood["fail"]:
            return chance.choice([Answer(503), Answer(429), Answer(trouble="reset"), Answer(trouble="close")])
        delivered.update(TOKEN.findall(request.body))
        return Answer(trouble="half") if chance.random() < mood["fail"] / 4 else Answer()

    required: set[bytes] = set()
    with HttpStandIn(serve) as server:
        sink = {"type": "webhook", "url": server.url, "per": "batch", "retry": {"first": 0.05, "longest": 0.5}}
        for turn in range(3):
            mood.update(fail=chance.choice([0.0, 0.3, 1.0]), delay=chance.choice([0.0, 0.05, 0.5]))
            sync = chance.choice([0.0, 0.3, 1.0])
            sink["batch"] = {"events": chance.choice([1, 20, 1000]), "age": chance.choice([0, 0.05, 3])}
            config = write_config(tmp_path, [sink], sync=sync)
            with Slack(tmp_path) as slack:
                broker = Broker(config, environment, turn * 100_000, rate=chance.choice([20, 400, 2000]))
                while not broker.passed:
                    time.sleep(0.01)
                time.sleep(chance.random() * 3)
                killed = broker.kill()
            # A line that has been passed on is on disk already if the window is 0.
            old = killed - sync - (20 * slack.worst if sync else 0)
            required |= {token for token, at in broker.passed.items() if at < old or not sync}
            lost = required - delivered - tokens_below(tmp_path / "spool")
            assert not lost, (sync, dict(mood), sink, len(lost))
        mood.update(fail=0.0, delay=0.0)
        finish(config, environment)
    assert required
    assert not required - delivered
