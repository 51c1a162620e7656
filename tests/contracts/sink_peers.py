"""The peer of each sink, for the contract suite in ``test_sinks.py``: every sink has one in ``PEERS``."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
from prometheus_client.parser import text_string_to_metric_families

from balog.common.secrets import Secret
from balog.event import Event, decode
from balog.sinks import Delivery
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.elastic import ElasticSinkConfig
from balog.sinks.email import EmailSinkConfig
from balog.sinks.pagerduty import PagerDutySinkConfig
from balog.sinks.prometheus import PrometheusSinkConfig, Pushgateway
from balog.sinks.service import ServiceSinkConfig
from balog.sinks.statsd import StatsdSinkConfig
from balog.sinks.store import StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.sinks.webhook import WebhookSinkConfig
from balog.testing.contracts.sinks import SECRET, SECRET_NAME, SinkPeer
from balog.topics import open_topics
from tests.stand_ins.alerts import alert_event
from tests.stand_ins.datadog import Datadog
from tests.stand_ins.elastic import ElasticStandIn
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.stand_ins.pagerduty import PagerDuty
from tests.stand_ins.service import ServiceStandIn
from tests.stand_ins.smtp_server import SmtpServer

__all__ = ["PEERS", "HttpPeer", "Peer"]


class Peer(SinkPeer):
    """Other side of a sink in a folder.

    Attributes:
        refuses: as the contract's; so is ``has_secret``.
    """

    refuses = False
    has_secret = False

    def __init__(self, root: Path) -> None:
        self.root = root


class FolderPeer(Peer):
    """A folder that goes away when a file is in its place."""

    folder: Path

    @property
    def place(self) -> str:  # type: ignore[override]
        return str(self.folder)

    def traces(self) -> list[Path]:
        return list(self.root.rglob("*"))

    def fail(self) -> None:
        self.folder.write_text("a file where the folder should be")

    def mend(self) -> None:
        self.folder.unlink()


def bodies_in(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the events of an archive's files by id; each is there once, in the file of its day."""
    bodies = {}
    for name, content in files.items():
        for line in gzip.decompress(content).splitlines():
            event = decode(line)
            assert event.header.id not in bodies, "an event was written twice"
            assert f"/date={event.header.timestamp:%Y-%m-%d}/" in name
            bodies[event.header.id] = line
    return bodies


class StorePeer(FolderPeer):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.folder = root / "archive"
        self.config = StoreSinkConfig(path=str(self.folder), topic="events")

    def arrived(self) -> dict[str, bytes]:
        return bodies_in({str(file): file.read_bytes() for file in self.folder.glob("events/date=*/*.jsonl.gz")})


class StoreUrlPeer(FolderPeer):
    """A store that is written to whole files; what goes away is the folder in which they wait."""

    has_secret = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.folder = root / "staging"
        self._store = f"/{uuid4().hex}"
        self.config = StoreSinkConfig(
            url=f"memory:/{self._store}",
            options={"key": {"env": SECRET_NAME}},
            staging=str(self.folder),
            topic="events",
        )

    def arrived(self) -> dict[str, bytes]:
        memory = fsspec.filesystem("memory")
        files = memory.glob(f"{self._store}/events/date=*/*.jsonl.gz")
        return bodies_in({file: memory.cat_file(file) for file in files})

    def traces(self) -> list[object]:
        return [*super().traces(), *fsspec.filesystem("memory").find(self._store)]


class TopicPeer(FolderPeer):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.folder = root / "topics"
        self.config = TopicSinkConfig(url=f"local:{self.folder}", topic="events")

    def arrived(self) -> dict[str, bytes]:
        home = open_topics(f"local:{self.folder}")
        topic = home.topic("events")
        bodies: dict[str, bytes] = {}
        while received := topic.receive("reader", 500, 0.0, 30.0):
            bodies.update({item.id: item.body for item in received})
            topic.ack("reader", received)
        home.close()
        return bodies


class HttpPeer(Peer):
    """A server that stands in; ``respond`` is asked for each answer."""

    refuses = True
    has_secret = True

    def __init__(self, root: Path, server: HttpStandIn | None = None) -> None:
        super().__init__(root)
        self.server = (server or HttpStandIn(self.respond)).start()
        self.place = f"127.0.0.1:{self.server.port}"
        self.refused: set[str] = set()

    def respond(self, request: Request) -> Answer:
        return Answer()

    def traces(self) -> list[Request]:
        return self.server.requests

    def fail(self) -> None:
        self.server.stop()

    def mend(self) -> None:
        self.server.start()

    def refuse(self, event: Event) -> None:
        self.refused.add(event.header.id)

    def close(self) -> None:
        self.server.stop()


class ElasticPeer(HttpPeer):
    server: ElasticStandIn

    def __init__(self, root: Path) -> None:
        super().__init__(root, ElasticStandIn())
        self.config = ElasticSinkConfig(url=self.server.url, api_key=Secret(env=SECRET_NAME))

    def expected(self, batch: Sequence[Delivery]) -> dict[str, Any]:
        return {
            event.header.id: {"@timestamp": f"{event.header.timestamp:%Y-%m-%dT%H:%M:%S.%fZ}", **json.loads(body)}
            for event, body in batch
        }

    def arrived(self) -> dict[str, Any]:
        assert self.server.writes == len(self.server.documents), "an event was written twice"
        return self.server.documents

    def refuse(self, event: Event) -> None:
        error = {"type": "document_parsing_exception", "reason": "failed to parse field [n]"}
        self.server.faults[event.header.id] = (400, error)


class WebhookPeer(HttpPeer):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        secret = Secret(env=SECRET_NAME)
        self.config = WebhookSinkConfig(
            url=f"{self.server.url}/hook", secrets=(secret,), headers={"Authorization": secret}
        )

    def respond(self, request: Request) -> Answer:
        return Answer(422 if request.headers["webhook-id"] in self.refused else 200)

    def arrived(self) -> dict[str, bytes]:
        taken = [request for request in self.server.requests if request.headers["webhook-id"] not in self.refused]
        bodies = {json.loads(request.body)["header"]["id"]: request.body for request in taken}
        assert len(bodies) == len(taken), "an event was sent twice"
        return bodies


class ServicePeer(HttpPeer):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.service = ServiceStandIn(SECRET)
        self.config = ServiceSinkConfig(url=self.server.url, token=Secret(env=SECRET_NAME))

    def respond(self, request: Request) -> Answer:
        return self.service(request)

    def refuse(self, event: Event) -> None:
        self.service.refused[event.header.id] = (422, [{"path": "$.payload.n", "reason": "expected text"}])

    def arrived(self) -> dict[str, bytes]:
        assert self.service.writes == len(self.service.events), "an event was sent twice"
        return self.service.events


class DatadogPeer(HttpPeer):
    """Events without measures, so each is a log; a request with one that is refused is refused whole."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.config = DatadogSinkConfig(api_key=Secret(env=SECRET_NAME), url=self.server.url)
        self.account = Datadog(SECRET)

    def respond(self, request: Request) -> Answer:
        if any(identifier.encode() in request.body for identifier in self.refused):
            return Answer(400)
        return self.account(request)

    def expected(self, batch: Sequence[Delivery]) -> dict[str, Any]:
        return {event.header.id: event.payload for event, _ in batch}

    def arrived(self) -> dict[str, Any]:
        found = {
            log["balog"]["id"]: log.get("payload") or json.loads(log["payload_shortened"]) for log in self.account.logs
        }
        assert len(found) == len(self.account.logs), "an event was sent twice"
        return found


class PagerDutyPeer(HttpPeer):
    """Each event is an error of a pipeline of its own, so that each is an alert."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.config = PagerDutySinkConfig(routing_key=Secret(env=SECRET_NAME), url=self.server.url)
        self.service = PagerDuty(SECRET)

    def event(self, number: int, **changes: Any) -> Event:
        return Event.new(f"tap_{number}.sync", {"cls_type": "x", "n": number}, level="ERROR", **changes)

    def respond(self, request: Request) -> Answer:
        details = json.loads(request.body)["payload"]["custom_details"]
        return Answer(400) if details["event"] in self.refused else self.service(request)

    def expected(self, batch: Sequence[Delivery]) -> dict[str, str]:
        return {event.header.id: event.header.channel.split(".")[0] for event, _ in batch}

    def arrived(self) -> dict[str, str]:
        found = {
            alert["payload"]["custom_details"]["event"]: alert["dedup_key"].removeprefix("balog/")
            for alert in self.service.accepted
        }
        assert len(found) == len(self.service.accepted), "an event was sent twice"
        return found


class EmailPeer(Peer):
    """A mail server; each event is an alert of a monitor of its own."""

    refuses = True
    has_secret = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.server = SmtpServer(root, password=SECRET)
        self.place = f"localhost:{self.server.port}"
        self.config = EmailSinkConfig(
            host="localhost",
            port=self.server.port,
            user="balog",
            password=Secret(env=SECRET_NAME),
            sender="Balog <balog@example.com>",
            to=["ops@example.com"],
            ca_file=self.server.ca_file,
        )

    def event(self, number: int, **changes: Any) -> Event:
        return alert_event(number, **changes)

    def expected(self, batch: Sequence[Delivery]) -> dict[str, str]:
        return {event.payload["monitor"]: event.payload["reason"] for event, _ in batch}

    def arrived(self) -> dict[str, str]:
        found = {str(one["Subject"]).split()[1]: one.get_content().splitlines()[0] for one in self.server.messages}
        assert len(found) == len(self.server.messages), "an event was sent twice"
        return found

    def traces(self) -> list[Any]:
        return [*self.server.messages, *range(self.server.sessions)]

    def refuse(self, event: Event) -> None:
        self.server.refused.append(event.payload["monitor"])

    def fail(self) -> None:
        self.server.stop()

    def mend(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.stop()


class PrometheusPeer(HttpPeer):
    """A pushgateway; the events are deltas of one counter, so what is counted twice shows."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        push = Pushgateway(url=self.server.url, job="contract", headers={"Authorization": Secret(env=SECRET_NAME)})
        self.config = PrometheusSinkConfig(pushgateway=push)
        self.pushed = b""

    def event(self, number: int, **changes: Any) -> Event:
        return _counter(number, **changes)

    def respond(self, request: Request) -> Answer:
        if any(f'number="{number}"'.encode() in request.body for number in self.refused):
            return Answer(400)
        self.pushed = request.body
        return Answer()

    def refuse(self, event: Event) -> None:
        self.refused.add(event.payload["tags"]["number"])

    def expected(self, batch: Sequence[Delivery]) -> dict[str, float]:
        return {event.payload["tags"]["number"]: 1.5 for event, _ in batch}

    def arrived(self) -> dict[str, float]:
        samples = [one for family in text_string_to_metric_families(self.pushed.decode()) for one in family.samples]
        return {sample.labels["number"]: sample.value for sample in samples}


class StatsdPeer(Peer):
    """A UDP socket; the events are deltas of one counter, so what is counted twice shows."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.port = 0
        self.datagrams: list[bytes] = []
        self.mend()
        self.place = f"127.0.0.1:{self.port}"
        self.config = StatsdSinkConfig(host="127.0.0.1", port=self.port, format="dogstatsd")

    def event(self, number: int, **changes: Any) -> Event:
        return _counter(number, **changes)

    def expected(self, batch: Sequence[Delivery]) -> dict[str, float]:
        return {event.payload["tags"]["number"]: 1.5 for event, _ in batch}

    def arrived(self) -> dict[str, float]:
        counted: dict[str, float] = {}
        for datagram in self.traces():
            for line in datagram.decode().split("\n"):
                value, tag = line.removeprefix("record_count:").split("|c|#number:")
                counted[tag] = counted.get(tag, 0) + float(value)
        return counted

    def traces(self) -> list[bytes]:
        with suppress(BlockingIOError):
            while True:  # on loopback a datagram that was sent is there
                self.datagrams.append(self.socket.recv(65536))
        return self.datagrams

    def fail(self) -> None:
        self.socket.close()

    def mend(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", self.port))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]

    def close(self) -> None:
        self.socket.close()


def _counter(number: int, **changes: Any) -> Event:
    tags = {"number": str(number)}
    payload = {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": 1.5, "tags": tags}
    return Event.new("a.metric", payload, **changes)


PEERS: dict[str, type[Peer]] = {
    "datadog": DatadogPeer,
    "elastic": ElasticPeer,
    "email": EmailPeer,
    "pagerduty": PagerDutyPeer,
    "prometheus": PrometheusPeer,
    "service": ServicePeer,
    "statsd": StatsdPeer,
    "store": StorePeer,
    "store at a url": StoreUrlPeer,
    "topic": TopicPeer,
    "webhook": WebhookPeer,
}
"""By the sink's type, and what is special about it."""
