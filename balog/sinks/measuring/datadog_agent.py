"""Metrics to a Datadog agent, by DogStatsD and the ``datadog`` package."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from balog.common.errors import MissingExtraError
from balog.common.local_path import local_path
from balog.common.token_bucket import TokenBucket
from balog.sinks.base import SinkError
from balog.sinks.measuring.datadog_json import clean_name, tag_list
from balog.sinks.measuring.measures import Measure

_DATAGRAM, _UNIX_DATAGRAM = 1432, 8192
_RATE = 2000.0  # datagrams a second; an agent may drop what comes faster
_BURST = 20.0


_Path = Annotated[str, Meta(min_length=1)]


class Agent(Struct, forbid_unknown_fields=True, kw_only=True):
    """The address of an agent: UDP, or a Unix datagram socket."""

    host: Annotated[str, Meta(min_length=1, max_length=253, description="The agent's name or address.")] = "localhost"
    port: Annotated[int, Meta(ge=1, le=65535, description="Its UDP port.")] = 8125
    socket: Annotated[
        _Path | None,
        Meta(
            description="Its Unix datagram socket, in place of host and port.", examples=["/var/run/datadog/dsd.socket"]
        ),
    ] = None

    @property
    def place(self) -> str:
        """``HOST:PORT``, or the socket's path."""
        return self.socket or f"{self.host}:{self.port}"


class AgentClient:
    """Sends measurements, many per datagram, at most once: the agent does not answer.

    Raises:
        ConfigError: the socket is not a path on local disk.
        MissingExtraError: the package is not there.
    """

    def __init__(self, agent: Agent) -> None:
        if agent.socket is not None:
            agent = replace(agent, socket=local_path(agent.socket, "agent.socket"))
        self._agent = agent
        self._client = _client(agent)

    def send(self, measures: Sequence[tuple[int, Measure, str]]) -> None:
        """Send measurements, each with its event's index and service.

        Raises:
            SinkError: the agent does not listen; ``remaining`` are the events whose datagrams were not sent.
        """
        client = self._client
        client.begin()
        senders = {
            "counter": client.increment,
            "gauge": client.gauge,
            "timer": client.distribution,
        }
        with client:  # opens its buffer, and flushes it
            for _, measure, service in measures:
                senders[measure.kind](clean_name(measure.name), measure.value, tags=tag_list(measure.tags, service))
        if client.error is not None:
            rest = {index for index, _, _ in measures[client.sent :]}
            raise SinkError(f"{self._agent.place}: {_reason(client.error)}", remaining=sorted(rest))

    def probe(self) -> None:
        """Check that the host or socket exists. Datagrams don't show whether the agent listens.

        Raises:
            SinkError: it does not exist.
        """
        agent = self._agent
        try:
            if agent.socket is None:
                socket.getaddrinfo(agent.host, agent.port, type=socket.SOCK_DGRAM)
            else:
                os.stat(agent.socket)
        except UnicodeError:
            raise SinkError(f"{agent.place}: is no host name") from None
        except OSError as error:
            raise SinkError(f"{agent.place}: {_reason(error)}") from None

    def close(self) -> None:
        """Close the socket."""
        self._client.close_socket()


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, socket.gaierror):
        return f"cannot be resolved: {error.strerror}"
    return error.strerror or str(error)


def _client(agent: Agent) -> Any:
    """Return a client that reports errors; the package's own drops data that it can't send without an error."""
    try:
        from datadog.dogstatsd.base import DogStatsd
    except ImportError:
        raise MissingExtraError("the datadog sink by an agent", "sinks") from None

    # Without a handler, its warning about each packet would go to stderr.
    logging.getLogger("datadog.dogstatsd").addHandler(logging.NullHandler())

    limit = TokenBucket(_RATE, _BURST)

    class Client(DogStatsd):
        """See ``_client``.

        Attributes:
            sent: how many measurements were sent since ``begin``.
            error: the first error since then; nothing is sent after it.
        """

        sent = 0
        error: OSError | None = None

        def begin(self) -> None:
            self.sent, self.error = 0, None

        def get_socket(self, telemetry: bool = False) -> Any:
            if self.error is not None:
                raise self.error
            try:
                inner_socket = super().get_socket(telemetry)
            except OSError as error:
                self.error = error
                raise
            if isinstance(inner_socket, _ObservedSocket):
                return inner_socket
            observed: Any = _ObservedSocket(inner_socket, self)
            self.socket = observed  # some versions call this only once
            return observed

        def send_observed(self, real: Any, data: bytes) -> int:
            """Send at the allowed rate, count the measurements, and keep an error."""
            limit.wait()
            try:
                count: int = real.send(data)
                # An error from this host is known at once; one from another host comes with a later datagram.
                if code := real.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(code, os.strerror(code))
            except OSError as error:
                self.error = error
                raise
            self.sent += data.rstrip(b"\n").count(b"\n") + 1
            return count

    return Client(
        host=None if agent.socket else agent.host,
        port=None if agent.socket else agent.port,
        socket_path=agent.socket,
        disable_telemetry=True,
        disable_buffering=True,
        max_buffer_len=_UNIX_DATAGRAM if agent.socket else _DATAGRAM,
    )


class _ObservedSocket:
    """A socket that its client sends with."""

    def __init__(self, real: Any, client: Any) -> None:
        self._real = real
        self._client = client

    def send(self, data: bytes) -> int:
        count: int = self._client.send_observed(self._real, data)
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
