"""Metrics into statsd: lines over UDP, plain or with DogStatsD's tags.

Formats: statsd's docs/metric_types.md (``name:value|c``, ``|g`` and ``|ms``, several per datagram), and Datadog's page
on the datagrams of DogStatsD. At most once: statsd does not answer, so sent datagrams count as delivered.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.sinks.base import Delivery, SinkError, SinkGuarantee
from balog.sinks.http_sink import RequestErrors
from balog.sinks.measuring.measures import MeasureOptions, MeasureReader
from balog.sinks.measuring.statsd_lines import Lines, datagram_limit, pack, wait_for_turn

_Name = Annotated[str, Meta(min_length=1, max_length=200)]

_MAX_DATAGRAM = 1432  # bytes, which an Ethernet frame holds


class StatsdSinkConfig(MeasureOptions, tag_field="type", tag="statsd", forbid_unknown_fields=True, kw_only=True):
    """Send counters, timers and gauges to a statsd or a Datadog agent."""

    examples: ClassVar = (
        {"type": "statsd", "host": "localhost", "port": 8125, "prefix": "taps", "name_tags": ["stream"]},
        {"type": "statsd", "format": "dogstatsd", "tags": {"env": "prod"}},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at most once",
            "it is sent to the socket",
            f"lines up to {_MAX_DATAGRAM:,} bytes",
            not_retried="a metric that does not fit into a datagram",
        ),
    )

    host: Annotated[str, Meta(min_length=1, max_length=253, description="Name or address, IPv4 or IPv6.")] = "localhost"
    port: Annotated[int, Meta(ge=1, le=65535, description="UDP port.")] = 8125
    format: Annotated[
        Literal["plain", "dogstatsd"], Meta(description="plain has no tags; dogstatsd appends |#key:value.")
    ] = "plain"
    name_tags: Annotated[
        tuple[_Name, ...], Meta(description="With plain: tags whose values end the name, as in record_count.users.")
    ] = ()
    rate: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Datagrams a second at most: what comes faster, statsd may drop.")
    ] = 2000.0

    @property
    def name(self) -> str:
        """``statsd HOST:PORT``."""
        return f"statsd {self._place()}"

    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def build(self) -> StatsdSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: an option does not apply to the format.
        """
        if self.format == "plain":
            if self.tags.keys() - set(self.name_tags):
                raise ConfigError(
                    "plain statsd has no tags; take format dogstatsd, or name_tags to put values into the name",
                    path="tags",
                )
        elif self.name_tags:
            raise ConfigError("is for format plain; dogstatsd sends tags as tags", path="name_tags")
        return StatsdSink(self)


class StatsdSink:
    """See ``StatsdSinkConfig``. If the receiving host reports a closed port, the rest of the batch comes again."""

    def __init__(self, config: StatsdSinkConfig) -> None:
        self._config = config
        self._place = config._place()
        name_tags = config.name_tags if config.format == "plain" else None
        # Tags that are not sent must not count as series.
        self._reader = MeasureReader(config, config.name, name_tags)
        self._lines = Lines(name_tags)
        self._addresses: list[tuple[int, Any]] = []
        self._socket: socket.socket | None = None
        self._limit = datagram_limit(config.rate)

    def open(self) -> None:
        """Resolve the name; the first datagram connects."""
        self._addresses = self._resolved()

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send the measurements of a batch; see ``Sink``."""
        if not self._addresses:
            self._addresses = self._resolved()  # after a failure, because the name may have another address now
        measured = self._reader.read(batch)
        lines: list[tuple[int, bytes]] = []
        rejected, errors = measured.rejected, RequestErrors()
        for index, measure in measured.measures:
            line = self._lines.write(measure)
            if line is None or len(line) > _MAX_DATAGRAM:
                rejected[index] = f"the {measure.kind} {measure.name[:100]} does not fit into a statsd datagram"
            else:
                lines.append((index, line))
        datagrams = list(pack([item for item in lines if item[0] not in rejected], _MAX_DATAGRAM))
        for number, datagram in enumerate(datagrams):
            try:
                self._send(datagram.data)
            except OSError as error:
                self._addresses = []
                taken = {index for sent in datagrams[:number] for index in sent.indexes}
                rest = sorted({index for unsent in datagrams[number:] for index in unsent.indexes} - taken)
                errors.keep(rest, SinkError(self._reason(error)))
                break
        errors.reject(rejected)
        errors.finish()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, data: bytes) -> None:
        """Send a datagram; try every address of the name.

        Raises:
            OSError: it was not sent, or certainly not received.
        """
        wait_for_turn(self._limit)
        refusal: OSError | None = None
        for _ in range(len(self._addresses)):
            try:
                self._socket = self._socket or _connect(*self._addresses[0])
                self._socket.send(data)
                # An error from this host is known at once; one from another host comes with a later datagram.
                if code := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(code, os.strerror(code))
            except OSError as error:
                refusal = error
                self.close()
                self._addresses.append(self._addresses.pop(0))
            else:
                return
        if refusal is not None:
            raise refusal

    def _resolved(self) -> list[tuple[int, Any]]:
        try:
            addresses = socket.getaddrinfo(self._config.host, self._config.port, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "is no host name"
            raise SinkError(f"{self._config.host} cannot be resolved: {reason}") from None
        return [(int(family), address) for family, _, _, _, address in addresses]

    def _reason(self, error: OSError) -> str:
        if isinstance(error, ConnectionRefusedError):
            return f"{self._place}: nobody listens there"
        return f"{self._place}: {error.strerror or error}"


def _connect(family: int, address: Any) -> socket.socket:
    connected = socket.socket(family, socket.SOCK_DGRAM)
    try:
        connected.connect(address)
    except BaseException:
        connected.close()
        raise
    return connected
