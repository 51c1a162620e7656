"""Metrics into statsd: lines over UDP or a Unix datagram socket, plain or with DogStatsD's tags.

``name:value|c``, ``|g`` and ``|ms``, many to a datagram: statsd's docs/metric_types.md, and Datadog's page on the
datagrams of DogStatsD. At most once: what has left the socket is taken for delivered, since nobody answers.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from balog.errors import ConfigError
from balog.event import Event
from balog.local_path import local_path
from balog.sinks.base import Delivery, SinkError
from balog.sinks.measures import MeasureOptions, MeasureReader, is_measure
from balog.sinks.pacing import Pace
from balog.sinks.statsd_lines import dogstatsd, pack, plain

__all__ = ["StatsdSink", "StatsdSinkConfig"]

_Name = Annotated[str, Meta(min_length=1, max_length=200)]

_PATIENCE = 5.0  # seconds that a socket whose reader hangs may block
_ECHO = 0.05  # seconds in which a host on the network says that nobody listens


class StatsdSinkConfig(MeasureOptions, tag_field="type", tag="statsd", forbid_unknown_fields=True, kw_only=True):
    """Send counters, timers and gauges to a statsd or a Datadog agent."""

    host: Annotated[str, Meta(min_length=1, max_length=253, description="Name or address, IPv4 or IPv6.")] = "localhost"
    port: Annotated[int, Meta(ge=1, le=65535, description="UDP port.")] = 8125
    socket: Annotated[str, Meta(min_length=1, description="A Unix datagram socket, in place of host and port.")] | (
        None
    ) = None
    format: Annotated[
        Literal["plain", "dogstatsd"], Meta(description="plain has no tags; dogstatsd appends |#key:value.")
    ] = "plain"
    name_tags: Annotated[
        tuple[_Name, ...], Meta(description="With plain: tags whose values end the name, as in record_count.users.")
    ] = ()
    max_datagram: Annotated[int, Meta(ge=100, le=65_000, description="Bytes of a datagram at most.")] = 1432
    rate: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Datagrams a second at most: what comes faster, statsd may drop.")
    ] = 2000.0

    @property
    def name(self) -> str:
        """``statsd HOST:PORT`` or ``statsd PATH``."""
        return f"statsd {self._place()}"

    def takes(self, event: Event) -> bool:
        """See ``SinkOptions``."""
        return is_measure(event)

    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.socket or f"{host}:{self.port}"

    def build(self) -> StatsdSink:
        """Make the sink.

        Raises:
            ConfigError: options that the format has no use for.
        """
        if self.socket is not None:
            local_path(self.socket, "socket")
        if self.format == "plain":
            for path, tags in (("only_tags", self.only_tags or ()), ("tags", self.tags)):
                if set(tags) - set(self.name_tags):
                    raise ConfigError(
                        "plain statsd has no tags; take format dogstatsd, or name_tags to put values into the name",
                        path=path,
                    )
        elif self.name_tags:
            raise ConfigError("is for format plain; dogstatsd sends tags as tags", path="name_tags")
        return StatsdSink(self)


class StatsdSink:
    """See ``StatsdSinkConfig``. A refusal that the other side's host reports makes the rest of a batch come again."""

    def __init__(self, config: StatsdSinkConfig) -> None:
        self._config = config
        self._place = config._place()
        is_plain = config.format == "plain"
        # Tags that are not sent must not count as series.
        self._reader = MeasureReader(replace(config, only_tags=config.name_tags) if is_plain else config, config.name)
        self._lines = plain(config.name_tags) if is_plain else dogstatsd()
        self._addresses: list[tuple[int, Any]] = []
        self._socket: socket.socket | None = None
        self._is_doubtful = False
        self._pace = Pace(config.rate)

    def open(self) -> None:
        """Resolve the name, and connect to the first of its addresses that can be reached at all."""
        self.close()
        self._addresses = self._resolved()
        refusal: OSError | None = None
        for address in self._addresses:
            try:
                self._socket = _dial(*address)
            except OSError as error:
                refusal = error
            else:
                return
        if refusal is not None:
            raise SinkError(self._reason(refusal)) from None

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send what a batch measures; see ``Sink``."""
        if not self._addresses:
            self._addresses = self._resolved()  # after a failure: the name may be another host's by now
        found = self._reader.read(batch)
        lines: list[tuple[int, bytes]] = []
        rejected = found.rejected
        for index, measure in found.measures:
            line = self._lines.write(measure)
            if line is None or len(line) > self._config.max_datagram:
                rejected[index] = f"the {measure.kind} {measure.name[:100]} does not fit into a statsd datagram"
            else:
                lines.append((index, line))
        datagrams = list(pack([item for item in lines if item[0] not in rejected], self._config.max_datagram))
        for number, datagram in enumerate(datagrams):
            try:
                self._send(datagram.data)
            except OSError as error:
                self._addresses = []
                taken = {index for sent in datagrams[:number] for index in sent.indexes}
                rest = sorted({index for unsent in datagrams[number:] for index in unsent.indexes} - taken)
                raise SinkError(self._reason(error), rejected=rejected, remaining=rest) from None
        if rejected:
            raise SinkError(
                f"{self._place}: {len(rejected)} events are no metrics that can be sent",
                retryable=False,
                rejected=rejected,
                remaining=(),
            )

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, data: bytes) -> None:
        """Send a datagram; try every address that the name has.

        Raises:
            OSError: it was not sent, or surely not received.
        """
        self._pace.wait()
        refusal: OSError | None = None
        for _ in range(len(self._addresses)):
            try:
                self._socket = self._socket or _dial(*self._addresses[0])
                self._socket.send(data)
                if self._is_doubtful:
                    time.sleep(_ECHO)
                # This host's refusal is here at once; another's comes before one of the next datagrams.
                if code := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(code, os.strerror(code))
            except OSError as error:
                refusal = error
                self.close()
                self._is_doubtful = True
                self._addresses.append(self._addresses.pop(0))
            else:
                self._is_doubtful = False
                return
        if refusal is not None:
            raise refusal

    def _resolved(self) -> list[tuple[int, Any]]:
        if self._config.socket is not None:
            return [(socket.AF_UNIX, local_path(self._config.socket, "socket"))]
        try:
            found = socket.getaddrinfo(self._config.host, self._config.port, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "is no host name"
            raise SinkError(f"{self._config.host} cannot be resolved: {reason}") from None
        return [(int(family), address) for family, _, _, _, address in found]

    def _reason(self, error: OSError) -> str:
        if isinstance(error, ConnectionRefusedError):
            return f"{self._place}: nobody listens there"
        if isinstance(error, TimeoutError):
            return f"{self._place}: takes nothing for {_PATIENCE:g} s"
        if error.errno == errno.EMSGSIZE:
            return f"{self._place}: a datagram is too long for the way there; lower max_datagram"
        return f"{self._place}: {error.strerror or error}"


def _dial(family: int, address: Any) -> socket.socket:
    dialled = socket.socket(family, socket.SOCK_DGRAM)
    try:
        dialled.settimeout(_PATIENCE)
        dialled.connect(address)
    except BaseException:
        dialled.close()
        raise
    return dialled
