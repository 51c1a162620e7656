"""The whole service in one process, for a laptop, a test or a CI job. All its data is in one folder."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
from msgspec import Struct

from balog.common.errors import ConfigError, ConfigProblems, EventError
from balog.common.local_path import local_path
from balog.common.text import counted, printable
from balog.event import Event, decode
from balog.registry import check_folder
from balog.service.client import ServiceClient
from balog.service.control import open_control, read_document
from balog.service.document import ControlDocument
from balog.service.intake.router import FAILED_EVENTS_TOPIC
from balog.service.jobs.access import access_for
from balog.service.service import Service
from balog.service.settings import DocumentAccess, ServiceConfig
from balog.sinks.service import Problem
from balog.topics import Topics, open_topics

_MAX_EVENTS = 100_000
_UNKEPT = frozenset({"400", "405", "411", "413", "415", "431"})
"""Statuses of requests that no retry changes."""


class FailedEvent(Struct):
    """A rejected event: its type and version if they could be read, each problem, and the bytes that were sent."""

    problems: tuple[Problem, ...]
    data: bytes
    type: str = ""
    type_version: str = ""
    sender: str = ""

    def __str__(self) -> str:
        reasons = "; ".join(f"{problem.path}: {problem.reason}" for problem in self.problems)
        name = " ".join(part for part in (self.type, self.type_version) if part) or "no type"
        return printable(f"{name}: {reasons}: {self.data[:200].decode('utf-8', 'replace')}")


class Micro:
    """A service with all its data in one folder. Use it as a context manager.

    ::

        with Micro(registry="schemas") as micro:
            micro.client.send([{"cls_type": "order", "version": "1.0.0", "price": 12}])
            assert not micro.failed()
            [order] = micro.events("order")

    Args:
        registry: folder or URL of the schemas. Without a registry, events of unknown types are accepted.
        document: the control document as a struct or a file. If omitted, each type has a topic of its own.
        data: folder of the topics and the document's versions; a temporary folder if omitted.
        listen: HOST:PORT; a free port of this machine if omitted.

    Attributes:
        url: URL of the service.
        client: a client of the service.
        topics: the topics of the service.

    Raises:
        ConfigError: the document or the address is not valid.
        MissingExtraError: packages of the extra ``serve`` are not installed.
    """

    def __init__(
        self,
        registry: str | Path | None = None,
        document: ControlDocument | str | Path | None = None,
        *,
        data: str | Path | None = None,
        listen: str = ":0",
    ) -> None:
        with ExitStack() as stack:
            if data is None:
                root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="balog-micro-")))
            else:
                root = Path(local_path(str(data), "data"))
            if registry is not None:
                check_folder(str(registry))
            document_json, access = None, DocumentAccess()
            if document is not None:
                document_json, wanted = _read(document)
                access = access_for(wanted)
            self.config = ServiceConfig(
                topics=f"local:{root / 'topics'}",
                fallback=f"local:{root / 'fallback'}",
                control=str(root / "control"),
                registry=None if registry is None else str(registry),
                unknown_types="accept" if registry is None else "refuse",
                listen=listen,
                document_access=access,
                drain=5.0,
            )
            (root / "topics").mkdir(parents=True, exist_ok=True)  # so that there are none, rather than nowhere to look
            if document_json is not None:
                self._push(document_json)
            self._service = Service(self.config)
            self._closing = stack.pop_all()
        self._seen: set[str] = set()
        self._unkept = Counter[str]()
        self.url = ""
        self.client: ServiceClient
        self.topics: Topics

    def __enter__(self) -> Micro:
        with self._closing as stack:
            stack.enter_context(self._service)
            self.url = self._service.url
            self.topics = stack.enter_context(open_topics(self.config.topics))
            self.client = stack.enter_context(ServiceClient(self.url))
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def events(self, cls_type: str | None = None, *, topic: str | None = None) -> list[Event]:
        """Return the accepted events, ordered by topic and arrival.

        Args:
            cls_type: only events of this type.
            topic: only events of this topic.
        """
        names = [name for name in self.topics.names() if name != FAILED_EVENTS_TOPIC] if topic is None else [topic]
        events = (event for name in names for event in self._read(name))
        return [event for event in events if cls_type is None or event.cls_type == cls_type]

    def taken(self) -> Counter[str]:
        """Return the number of accepted events by stream, since the start."""
        counts: Counter[str] = Counter()
        for (stream, status, _), count in self._service.metrics.outcomes().items():
            if status == "202":
                counts[stream] += count
        return counts

    def failed(self) -> list[FailedEvent]:
        """Return the rejected events."""
        return [msgspec.convert(event.payload, FailedEvent) for event in self._read(FAILED_EVENTS_TOPIC)]

    def unkept(self) -> Counter[str]:
        """Return what was rejected without a failed event, by status: whole requests, and events that are too large."""
        metrics = self._service.metrics
        events, requests = Counter[str](), Counter[str]()
        for (_, status, _), count in metrics.outcomes().items():
            events[status] += count
        for (path, status), count in metrics.requests().items():
            requests[status] += count * (path == "/v1/events")
        counts = (events | requests) - self._unkept  # a request with one event has its status
        return Counter({status: count for status, count in counts.items() if status in _UNKEPT})

    def reset(self) -> None:
        """Forget all events: from now on, only later ones are returned."""
        for name in self.topics.names():
            self._seen.update(event.header.id for event in self._read(name))
        self._unkept += self.unkept()

    def assert_no_failed_events(self) -> None:
        """Fail if an event was rejected, with the problems of each, or a request.

        Raises:
            AssertionError: at least one event or request was rejected.
        """
        lines = [str(failed) for failed in self.failed()]
        lines += [f"{count} rejected with {status}, not kept" for status, count in self.unkept().items()]
        if lines:
            raise AssertionError(
                f"{counted(len(lines), 'failed event')}:\n" + "\n".join(f"    {line}" for line in lines)
            )

    def _read(self, name: str) -> Iterable[Event]:
        topic = self.topics.topic(name)
        if not topic.exists():
            return
        for received in topic.peek(_MAX_EVENTS):
            try:
                event = decode(received.body)
            except EventError:  # published directly into the topic
                continue
            if event.header.id not in self._seen:
                yield event

    def _push(self, data: bytes) -> None:
        with closing(open_control(self.config.control or "")) as control:
            control.push(data, who="micro", message="the document that micro was started with")


def _read(document: ControlDocument | str | Path) -> tuple[bytes, ControlDocument]:
    """Return a document from a struct or a file, as JSON and as a struct.

    Raises:
        ConfigError: the file cannot be read.
        ConfigProblems: the document has problems; the error lists all of them.
    """
    if isinstance(document, ControlDocument):
        data, source = msgspec.json.encode(document), ""
    else:
        source = str(document)
        try:
            data = Path(document).read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", source) from None
    control_document, problems = read_document(data, source)
    if control_document is None or problems:
        raise ConfigProblems(problems)
    return data, control_document
