"""Alerts, silences and acknowledgements pass through the sinks that carry any event."""

from datetime import datetime, timezone

import pytest

from balog.event import encode
from balog.sinks import Delivery
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from balog.watch.alerts.alert_events import acknowledgement, silence
from tests.contracts.sink_peers import PEERS
from tests.stand_ins.alerts import alert_life

NOW = datetime.now(timezone.utc)


@pytest.fixture
def batch():
    others = [silence("m*", NOW, "moving", "ana"), acknowledgement("m1", None, "on it", "ana")]
    return [*alert_life(1), *(Delivery(event, encode(event)) for event in others)]


@pytest.mark.parametrize("name", ["datadog", "elastic", "service", "store", "topic", "webhook"])
def test_a_sink_carries_them(name, batch, tmp_path, monkeypatch):
    monkeypatch.setenv(SECRET_NAME, SECRET)
    peer = PEERS[name](tmp_path)
    try:
        assert all(peer.config.takes(event) for event, _ in batch)
        sink = peer.config.build()
        sink.open()
        sink.write(batch)
        sink.close()
        assert peer.arrived() == peer.expected(batch)
    finally:
        peer.close()
