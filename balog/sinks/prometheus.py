"""Metrics for Prometheus: scraped from here, pushed to a pushgateway, or in a file for the node exporter.

Counters and histograms add up while the broker runs and restart at zero with the next one, as Prometheus expects.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Protocol
from urllib.parse import quote

from msgspec import Meta, Struct, field

from balog.common.errors import ConfigError
from balog.common.http import CaFile, HttpClient, Timeout, Url
from balog.common.local_path import local_path
from balog.common.storage.local_files import replacing
from balog.sinks.base import Batching, Delivery, RequestErrors, SinkError, SinkGuarantee
from balog.sinks.http_sink import Headers, reveal_headers
from balog.sinks.measuring.families import BUCKETS, Families, clean_label
from balog.sinks.measuring.measures import MeasureOptions, MeasureReader
from balog.sinks.measuring.scraping import Listen, ScrapeServer

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Pushgateway(Struct, forbid_unknown_fields=True, kw_only=True):
    """The address of a pushgateway, and the group of this broker."""

    url: Url
    job: Annotated[str, Meta(min_length=1, max_length=200, description="The label job of what is pushed.")]
    grouping: Annotated[dict[str, str], Meta(max_length=20, description="More labels that tell this group apart.")] = (
        field(default_factory=dict)
    )
    headers: Headers = field(default_factory=dict)
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None


class Textfile(Struct, forbid_unknown_fields=True, kw_only=True):
    """A file in the folder that the node exporter's textfile collector reads."""

    path: Annotated[str, Meta(min_length=1, description="Ends in .prom; replaced as a whole, readable by everybody.")]


class PrometheusSinkConfig(
    MeasureOptions, tag_field="type", tag="prometheus", forbid_unknown_fields=True, kw_only=True
):
    """Expose counters, timers and gauges to a Prometheus in one of three ways."""

    examples: ClassVar = (
        {"type": "prometheus", "listen": {"port": 9464}},
        {
            "type": "prometheus",
            "pushgateway": {"url": "http://push:9091", "job": "nightly", "grouping": {"instance": "a"}},
            "batch": {"age": 5},
        },
        {"type": "prometheus", "textfile": {"path": "/var/lib/node_exporter/balog.prom"}, "buckets": [1, 60, 3600]},
    )

    guarantees: ClassVar = (
        SinkGuarantee("at most once", "it is counted in memory", "–", not_retried="", option="listen", extra="sinks"),
        SinkGuarantee(
            "at least once", "the gateway has accepted all series", "all series", option="pushgateway", extra="sinks"
        ),
        SinkGuarantee(
            "at least once", "the file is replaced", "all series", not_retried="", option="textfile", extra="sinks"
        ),
    )

    listen: Listen | None = None
    pushgateway: Pushgateway | None = None
    textfile: Textfile | None = None
    buckets: Annotated[
        tuple[Annotated[float, Meta(gt=0, le=1e9)], ...],
        Meta(min_length=1, max_length=100, description="Upper bounds of the histograms of timers, seconds, ascending."),
    ] = BUCKETS
    batch: Batching = Batching(age=1.0)  # each batch pushes all metrics

    @property
    def name(self) -> str:
        """``prometheus PLACE``: HOST:PORT, a URL, or a path."""
        if self.listen is not None:
            return f"prometheus {self.listen.place}"
        return f"prometheus {self.pushgateway.url if self.pushgateway else self.textfile.path if self.textfile else ''}"

    def build(self) -> PrometheusSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: not exactly one of the three ways is given, or an option is invalid.
            MissingExtraError: prometheus-client is not installed.
        """
        ways = [way for way in (self.listen, self.pushgateway, self.textfile) if way is not None]
        if len(ways) != 1:
            raise ConfigError("expected one of listen, pushgateway and textfile")
        if any(lower >= upper for lower, upper in zip(self.buckets, self.buckets[1:])):
            raise ConfigError("expected numbers that ascend", path="buckets")
        families = Families(self.buckets)
        families.registry()  # raises if the package is not installed
        way = ways[0]
        exporter: _Exporter
        if isinstance(way, Listen):
            exporter = ScrapeServer(way, families)
        elif isinstance(way, Pushgateway):
            exporter = _Push(way, families)
        else:
            exporter = _File(way, families)
        return PrometheusSink(MeasureReader(self, self.name), families, exporter)


class _Exporter(Protocol):
    """One of the three ways to give metrics to a Prometheus."""

    def open(self) -> None:
        """See ``Sink``."""

    def publish(self) -> None:
        """Publish the current values of all families.

        Raises:
            SinkError: they were not published; the batch is undone.
        """

    def close(self) -> None:
        """See ``Sink``."""


class PrometheusSink:
    """See ``PrometheusSinkConfig``. A batch that can't be published is undone and retried."""

    def __init__(self, reader: MeasureReader, families: Families, exporter: _Exporter) -> None:
        self._reader = reader
        self._families = families
        self._exporter = exporter

    def open(self) -> None:
        """Listen, or check that the file's folder exists."""
        self._exporter.open()

    def probe(self) -> None:
        """Check that a pushgateway is reachable; see ``Sink``."""
        if isinstance(self._exporter, _Push):
            self._exporter.probe()

    def write(self, batch: Sequence[Delivery]) -> None:
        """Add the measurements of a batch and publish all families; see ``Sink``."""
        measured = self._reader.read(batch)
        change = self._families.add([item for item in measured.measures if item[0] not in measured.rejected])
        errors = RequestErrors()
        errors.reject({**measured.rejected, **change.refused})
        if change.journal:
            try:
                self._exporter.publish()
            except BaseException as error:
                self._families.undo(change)
                if not isinstance(error, SinkError):
                    raise
                errors.keep(set(range(len(batch))) - measured.rejected.keys() - change.refused.keys(), error)
        errors.finish()

    def close(self) -> None:
        """Stop listening."""
        self._exporter.close()


class _Push:
    """Replaces this broker's group in a pushgateway."""

    def __init__(self, config: Pushgateway, families: Families) -> None:
        self._families = families
        self._path = f"/metrics/{_segment('job', config.job)}"
        for key, value in config.grouping.items():
            if clean_label(key) != key or key == "job":
                raise ConfigError(f"{key!r} cannot be a label of a group", path="pushgateway.grouping")
            self._path += f"/{_segment(key, value)}"
        try:
            headers = reveal_headers(config.headers)
            self._client = HttpClient(config.url, headers=headers, timeout=config.timeout, ca_file=config.ca_file)
        except ConfigError as error:
            raise ConfigError(error.reason, error.source, f"pushgateway.{error.path}") from None
        self._headers = headers

    def open(self) -> None:
        """Do nothing: the first push connects."""

    def probe(self) -> None:
        """Check that the pushgateway answers."""
        self._client.probe("/-/ready", "GET")

    def publish(self) -> None:
        headers = {**self._headers, "Content-Type": _TEXT_FORMAT}
        self._client.request("PUT", self._path, self._families.render(), headers)

    def close(self) -> None:
        self._client.close()


def _segment(key: str, value: str) -> str:
    """Return a label as two segments of a path; in base64 if needed (see the pushgateway's README)."""
    if "/" in value or not value:
        return f"{key}@base64/{base64.urlsafe_b64encode(value.encode()).decode() or '='}"
    return f"{key}/{quote(value, safe='')}"


class _File:
    """Replaces a file atomically."""

    def __init__(self, config: Textfile, families: Families) -> None:
        self._path = Path(local_path(config.path, "textfile.path"))
        self._families = families
        if self._path.suffix != ".prom":
            raise ConfigError("the node exporter reads only files that end in .prom", path="textfile.path")

    def open(self) -> None:
        if not self._path.parent.is_dir():
            raise SinkError(f"{self._path.parent} is no folder that exists; the node exporter should read it")

    def publish(self) -> None:
        data = self._families.render()
        try:
            # The collector ignores the temporary file, since its name does not end in .prom.
            with replacing(self._path, syncs_folder=False) as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(data)
        except OSError as error:
            raise SinkError(f"{self._path}: {error.strerror or error}") from None

    def close(self) -> None:
        """Keep the file; it shows this run until the next one."""
