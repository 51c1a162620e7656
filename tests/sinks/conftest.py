"""Servers that stand in for the other sides of sinks, and sinks that are closed after a test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from balog.sinks import Sink, SinkConfig
from tests.stand_ins.http_fixtures import http_server, tls_server

__all__ = ["http_server", "opened", "tls_server"]


@pytest.fixture
def opened() -> Iterator[Callable[[SinkConfig], Sink]]:
    """Give a function that opens the sink of a config."""
    with ExitStack() as stack:

        def open(config: SinkConfig) -> Sink:
            sink = config.build()
            stack.callback(sink.close)
            sink.open()
            return sink

        yield open
