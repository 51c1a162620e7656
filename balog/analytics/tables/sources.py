"""What is new in sources, in batches of bounded size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from balog.analytics.reading.inputs import Inputs
from balog.analytics.reading.tasks import COMPRESSED, COMPRESSED_WEIGHT
from balog.analytics.tables.store import LoadedSource, LoadHistory

BATCH_BYTES = 2 * 1024**3
"""The approximate size of a batch, in decompressed bytes of events; a single file may be larger."""

_MOST_FILES = 5000  # of a batch: each has an entry in the log


class SourceBatch(NamedTuple):
    """The sources of one batch: paths for the data source, and their entries in the log."""

    id: str
    paths: list[str]
    sources: dict[str, LoadedSource]
    bytes: int


class Listing(NamedTuple):
    """New batches, and the number of unchanged files that were loaded before."""

    shares: list[SourceBatch]
    known: int

    @property
    def files(self) -> int:
        """The number of files to read."""
        return sum(len(share.paths) for share in self.shares)

    @property
    def bytes(self) -> int:
        """Their size on disk."""
        return sum(share.bytes for share in self.shares)


def list_sources(inputs: Inputs, loaded: LoadHistory, most: int = BATCH_BYTES) -> Listing:
    """Return what is new in sources, in batches. A file with the same path, size and modification time is not new.

    Args:
        inputs: the sources; each topic is a batch of its own, and is always read whole.
        loaded: the result of ``ParquetStore.loaded``.
        most: bytes of a batch.

    Raises:
        ConfigError: a path does not exist or can't be listed.
        StorageError: a store does not answer.
    """
    sources = {file.path: LoadedSource(file.size, file.modified) for file in inputs.files()}
    fresh = {path: source for path, source in sources.items() if loaded.sources.get(path) != source}
    shares = []
    for group in _groups(fresh, most):
        named = _name("load", [[path, *source] for path, source in group.items()], loaded.commits)
        shares.append(SourceBatch(named, list(group), group, sum(source.size for source in group.values())))
    shares += [SourceBatch(_name("topic", [topic], loaded.commits), [topic], {}, 0) for topic in inputs.topics]
    return Listing(shares, len(sources) - len(fresh))


def _groups(fresh: Mapping[str, LoadedSource], most: int) -> Iterator[dict[str, LoadedSource]]:
    group: dict[str, LoadedSource] = {}
    weight = 0
    for path, source in fresh.items():
        more = source.size * (COMPRESSED_WEIGHT if path.endswith(COMPRESSED) else 1)
        if group and (weight + more > most or len(group) >= _MOST_FILES):
            yield group
            group, weight = {}, 0
        group[path] = source
        weight += more
    if group:
        yield group


def _name(kind: str, what: object, commits: int) -> str:
    return f"{kind}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}-{commits}"
