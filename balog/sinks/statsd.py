"""Metrics into statsd: lines over UDP, plain or with DogStatsD's tags.

Formats: statsd's docs/metric_types.md (``name:value|c``, ``|g`` and ``|ms``, several per datagram), and Datadog's page
on the datagrams of DogStatsD. At most once: statsd does not answer, so sent datagrams count as delivered.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.common.text import printable
from balog.common.token_bucket import TokenBucket
from balog.event.batches import split
from balog.sinks.base import Delivery, RequestErrors, SinkError, SinkGuarantee
from balog.sinks.measuring.measures import Kind, Measure, MeasureOptions, MeasureReader

_Name = Annotated[str, Meta(min_length=1, max_length=200)]

_Rate = Annotated[float, Meta(gt=0, le=1_000_000)]

_RATE = 2000
_MAX_DATAGRAM = 1432  # bytes, which an Ethernet frame holds
_MAX_KNOWN = 10_000
_BURST = 0.01  # seconds
_TYPES: dict[Kind, str] = {"counter": "c", "gauge": "g", "timer": "ms"}


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
        _Rate | None,
        Meta(
            description=f"Datagrams a second at most: statsd may drop faster ones. {_RATE} in a batch if null.",
            examples=[500],
        ),
    ] = None

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
        rate = config.rate or _RATE
        self._limit = TokenBucket(rate, rate * _BURST)

    def open(self) -> None:
        """Resolve the name; the first datagram connects."""
        self._addresses = self._resolved()

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send the measurements of a batch; see ``Sink``."""
        if not self._addresses:
            self._addresses = self._resolved()  # after a failure, because the name may have another address now
        measured = self._reader.read(batch)
        lines: list[tuple[int, bytes]] = []
        rejected = measured.rejected
        for index, measure in measured.measures:
            line = self._lines.write(measure)
            if line is None or len(line) > _MAX_DATAGRAM:
                rejected[index] = (
                    f"the {measure.kind} {printable(measure.name[:100])} does not fit into a statsd datagram"
                )
            else:
                lines.append((index, line))
        if rejected:
            lines = [item for item in lines if item[0] not in rejected]
        sent, failure = 0, None
        is_one = 0 < sum([len(line) for _, line in lines]) + len(lines) <= _MAX_DATAGRAM
        try:
            for datagram in [lines] if is_one else split(lines, lambda item: len(item[1]), _MAX_DATAGRAM):
                if not is_one or self._config.rate is not None:
                    self._limit.wait()
                self._send(b"\n".join([line for _, line in datagram]))
                sent += len(datagram)
                if not is_one:
                    for index, _ in datagram:
                        batch[index].accept()
        except OSError as error:
            self._addresses, failure = [], SinkError(self._reason(error))
        if rejected or failure is not None:
            errors = RequestErrors()
            errors.reject(rejected)
            if failure is not None:
                taken = {index for index, _ in lines[:sent]}
                errors.keep({index for index, _ in lines[sent:]} - taken, failure)
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


Frame = tuple[str, str]
"""The parts of a line before and after the value."""


class Lines:
    """Writes lines. The constant parts of a series are cached by the identity of its tags.

    Args:
        name_tags: the lines are plain, and the values of these tags end the name; None for DogStatsD's with all tags.
    """

    def __init__(self, name_tags: Sequence[str] | None) -> None:
        self._name_tags = name_tags
        self._known: dict[int, tuple[Mapping[str, str], Kind, str, Frame]] = {}

    def write(self, measure: Measure) -> bytes | None:
        """Return the line of a measurement, without a newline; None if its value is too large."""
        kind, name, value, tags, _ = measure
        known = self._known.get(id(tags))
        if known is None or known[0] is not tags or known[1] != kind or known[2] != name:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[id(tags)] = (tags, kind, name, self._frame(kind, name, tags))
        before, after = known[3]
        if kind == "timer":
            value = round(value * 1000, 6)
            if value == float("inf"):
                return None
        elif kind == "gauge" and value < 0 and self._name_tags is not None:  # a sign would change the current value
            return f"{before}0{after}\n{before}{format_number(value)}{after}".encode()
        return f"{before}{format_number(value)}{after}".encode()

    def _frame(self, kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        """Return the parts of a line before and after the value."""
        if self._name_tags is None:
            joint = ",".join(f"{_clean_key(key)}:{_clean_tag(tag)}" for key, tag in tags.items())
            return f"{clean_name(name)}:", f"|{_TYPES[kind]}|#{joint}" if joint else f"|{_TYPES[kind]}"
        ends = (clean_name(tags[key]).replace(".", "_") for key in self._name_tags if tags.get(key))
        return ".".join([clean_name(name), *ends]) + ":", f"|{_TYPES[kind]}"


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_NOT_IN_KEYS = re.compile(r"[^\w./-]+")
_NOT_IN_TAGS = re.compile(r"[^\w./:-]+")


@lru_cache(maxsize=4096)
def clean_name(name: str) -> str:
    """Return a name of ASCII characters and ``. _ -``, with ``_`` instead of others."""
    return _NOT_IN_NAMES.sub("_", name)


@lru_cache(maxsize=4096)
def _clean_key(key: str) -> str:
    """Return a tag's key; unlike a name it may have word characters of any script and ``/``."""
    return _NOT_IN_KEYS.sub("_", key)


@lru_cache(maxsize=4096)
def _clean_tag(tag: str) -> str:
    """Return a tag's value; unlike a key it may have ``:``."""
    return _NOT_IN_TAGS.sub("_", tag)


_EXACT = 2.0**53  # from here on floats skip integers


def format_number(value: float) -> str:
    """Return the shortest text of a finite number that reads back as the same: ``1461``, ``0.1``, ``1e-07``."""
    return str(int(value)) if -_EXACT < value < _EXACT and value == int(value) else repr(value)
