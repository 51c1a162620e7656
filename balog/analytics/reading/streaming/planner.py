"""Offsets and batches of a stream over growing files and topics."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec
from msgspec import Struct

from balog.analytics.reading.inputs import Inputs
from balog.analytics.reading.remote import is_remote
from balog.analytics.reading.streaming.arrivals import Arrivals
from balog.analytics.reading.tasks import Slice, SourceFile, plan_slices
from balog.analytics.reading.topics import Bounds, bounds, split_bounds
from balog.common.errors import ConfigError
from balog.common.local_path import state_folder
from balog.common.storage import open_storage


class Offset(Struct, frozen=True, omit_defaults=True):
    """The offset that Spark keeps in the checkpoint.

    Attributes:
        log: the name of the log of arrivals; "" before the first arrival.
        at: the number of the last arrival that is read.
        topics: by topic and partition, the number of the first message that is not read.
    """

    log: str = ""
    at: int = 0
    topics: dict[str, dict[str, int]] = {}

    @classmethod
    def read(cls, offset: Mapping[str, Any]) -> Offset:
        """Decode an offset from Spark.

        Raises:
            ConfigError: another source wrote it.
        """
        try:
            return msgspec.convert(dict(offset), cls)
        except msgspec.ValidationError as error:
            raise ConfigError(f"the checkpoint is not of this source: {error}", "checkpoint") from None

    def write(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


STREAMS = "4.2"
"""The first Spark that passes the start of a batch to a Python source."""


def check_streaming() -> None:
    """Check that this Spark can stream from a Python source.

    Raises:
        ConfigError: this Spark is older than ``STREAMS``.
    """
    import pyspark

    if find_spec("pyspark.sql.streaming.datasource") is None:
        this = pyspark.__version__
        raise ConfigError(f"a stream needs Spark {STREAMS} or newer, this is {this}; load in batches", "Spark")


class StreamPlanner:
    """Plans the batches of a stream, in one process of the driver.

    Args:
        inputs: what to read.
        state: the folder or URL for logs of arrivals; by default ``$XDG_STATE_HOME/balog/streams``. It belongs to the
            checkpoint: move both together.

    Raises:
        ConfigError: there is no folder for the logs.
    """

    def __init__(self, inputs: Inputs, state: str = "") -> None:
        self._inputs = inputs
        options = inputs.storages.options if is_remote(state) else None
        self._state = open_storage(state or _default_state(), options)
        self._arrivals: Arrivals | None = None
        self._files: list[SourceFile] | None = None
        self._bounds: dict[str, Bounds] | None = None
        self._is_frozen = False

    def freeze(self) -> None:
        """Stop at what exists now, for a run that ends."""
        self._look()
        self._is_frozen = True

    def _look(self) -> tuple[list[SourceFile], dict[str, Bounds]]:
        if not self._is_frozen or self._files is None or self._bounds is None:
            self._files = self._inputs.files(is_growing=True)
            self._bounds = {url: bounds(url) for url in self._inputs.topics}
        return self._files, self._bounds

    def latest(self, start: Offset, most_bytes: int | None = None) -> Offset:
        """Return the offset of the end of the next batch: ``start`` itself when nothing has arrived.

        Args:
            start: the offset of its beginning.
            most_bytes: the most bytes of files on disk; a single file may be larger. None for no limit.

        Raises:
            ConfigError: a path, or the log of ``start``, does not exist any more.
            StorageError: a store does not answer.
            TopicError: a topic does not answer.
        """
        files, reach = self._look()
        topics = {}
        for url, partitions in reach.items():
            read = start.topics.get(url, {})
            topics[url] = {name: _reach(url, ends, read.get(name)) for name, ends in partitions.items()}
        log = self._log(start.log)
        last = log.notice(files)
        if not last:
            return Offset(topics=topics)
        return Offset(log.name, log.end_within(start.at, most_bytes), topics)

    def batch(self, start: Offset, end: Offset) -> list[list[Slice]]:
        """Plan the tasks between two offsets."""
        tasks = []
        for url, partitions in end.topics.items():
            read = start.topics.get(url, {})
            between = {name: (read.get(name, 0), last) for name, last in partitions.items()}
            tasks += [[piece] for piece in split_bounds(url, between, self._inputs.parallel)]
        if end.at > start.at:
            arrivals = self._log(end.log).between(start.at, end.at)
            sizes: dict[str, int] = {}
            for arrival in arrivals:
                sizes[arrival.path] = max(arrival.size, sizes.get(arrival.path, 0))
            tasks += plan_slices([arrival.slice for arrival in arrivals], sizes, self._inputs.parallel)
        return tasks

    def commit(self, end: Offset) -> None:
        """Mark everything up to this offset as read."""
        if end.log and self._files is not None:
            self._log(end.log).commit(end.at, self._files)

    def _log(self, name: str) -> Arrivals:
        if self._arrivals is None or (name and self._arrivals.name != name):
            self._arrivals = Arrivals(self._state, name)
        return self._arrivals


def _reach(url: str, ends: tuple[int, int], read: int | None) -> int:
    _, last = ends
    if read is not None and read > last:
        raise ConfigError("the topic was made anew since the checkpoint was written; begin with a new checkpoint", url)
    return last


def _default_state() -> str:
    return str(state_folder("no place for what a stream has read; set XDG_STATE_HOME, or the option state") / "streams")
