"""The sinks keep the guarantees that their classes declare."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import SinkError
from balog.event import encode
from balog.sinks.base import SINKS, Delivery, SinkGuarantee
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from tests.contracts.sink_peers import PEERS, HttpPeer, Peer
from tests.stand_ins.http_server import Answer

HTTP = sorted(name for name, peer in PEERS.items() if issubclass(peer, HttpPeer))
STATUSES = (302, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504)
READERS: dict[str, Callable[[Any], int]] = {
    "datadog": lambda peer: len(peer.account.logs),
    "elastic": lambda peer: len(peer.server.documents),
    "email": lambda peer: len({one["Message-ID"] for one in peer.server.messages}),
    "pagerduty": lambda peer: len({one["dedup_key"] for one in peer.service.accepted}),
    "prometheus": lambda peer: round(sum(peer.arrived().values()) / 1.5),
    "service": lambda peer: len(peer.service.events),
    "statsd": lambda peer: round(sum(peer.arrived().values()) / 1.5),
    "store": lambda peer: len(re.findall(rb'"n":', read_archive(peer.folder))),
    "topic": lambda peer: len(peer.arrived()),
    "webhook": lambda peer: len({one.headers["webhook-id"] for one in peer.server.requests}),
}
"""How many events someone sees who looks at the other side, by what identifies one there."""


def read_archive(folder: Path) -> bytes:
    import gzip

    return b"".join(gzip.decompress(file.read_bytes()) for file in folder.rglob("*.jsonl.gz"))


@pytest.fixture
def open_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    opened: list[Peer] = []

    def make(name: str) -> Any:
        opened.append(PEERS[name](tmp_path))
        return opened[-1]

    yield make
    for peer in opened:
        peer.close()


def batch_of(peer: Peer) -> list[Delivery]:
    return [Delivery(event, encode(event)) for event in map(peer.event, range(3))]


def test_every_sink_declares_its_guarantees() -> None:
    assert [name for name in SINKS.builtin if not SINKS.load(name).guarantees] == []


def guarantee_of(config: Any) -> SinkGuarantee:
    scheme = str(getattr(config, "url", None)).partition(":")[0]
    options = ["", f"{scheme}:", *(name for name in config.__struct_fields__ if getattr(config, name) is not None)]
    (guarantee,) = [one for one in config.guarantees if one.option in options]
    return guarantee  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", READERS)
def test_a_batch_that_comes_again_is_there_as_often_as_declared(name: str, open_peer: Any) -> None:
    """Given a batch whose acknowledgement was lost, when another process writes it again, then readers see it so."""
    peer = open_peer(name)
    batch = batch_of(peer)
    guarantee = guarantee_of(peer.config)
    if name == "prometheus":  # counts in one process
        sink = peer.config.build()
        for _ in range(2):
            sink.write(batch)
        sink.close()
    else:
        for _ in range(2):
            sink = peer.config.build()
            sink.open()
            sink.write(batch)
            sink.close()

    assert READERS[name](peer) == (3 if guarantee.repeats else 6)


@pytest.mark.parametrize("name", HTTP)
def test_the_statuses_that_are_never_retried_are_those_declared(name: str, open_peer: Any) -> None:
    peer = open_peer(name)
    guarantee = guarantee_of(peer.config)
    batch = batch_of(peer)[:1]
    found = set()
    for status in STATUSES:
        peer.server.respond = lambda request, status=status: Answer(status)
        sink = peer.config.build()
        with pytest.raises(SinkError) as raised:
            sink.write(batch)
        sink.close()
        if not raised.value.retryable:
            found.add(status)

    text = guarantee.not_retried.replace("3xx", "302")
    named = {int(number) for number in re.findall(r"\b\d{3}\b", text)} & set(STATUSES)
    assert found == (set(STATUSES) - named if "except" in text else named)
