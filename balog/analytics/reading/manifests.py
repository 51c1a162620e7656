"""A file of BATCH messages stands for the files that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from balog.analytics.reading.remote import StoragePool, is_remote, local_path, store_of
from balog.errors import ConfigError
from balog.singer.batch.dialects import BatchError, read_batch, shown

__all__ = ["MOST_BYTES", "named_files"]

MOST_BYTES = 64 << 20
"""A manifest is read on the driver, whole; what is larger is taken for a file of events."""

_HEAD = 64 * 1024
_BESIDE = frozenset({"SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH"})
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


def named_files(path: str, size: int, storages: StoragePool) -> list[str] | None:
    """Give the files that a file's BATCH messages name, as paths and URLs; None where it holds anything else.

    It may hold SCHEMA, STATE and ACTIVATE_VERSION messages too, as the output of a tap that writes batches does. A
    relative path begins at the manifest's folder. What a manifest says is somebody else's word: it leads to its own
    bucket or host only, or from a file of this machine to others of it.

    Args:
        path: a file that was named itself.
        size: its bytes.

    Raises:
        ConfigError: a BATCH message that is none, or names files elsewhere or of another format than JSON lines.
    """
    if size > MOST_BYTES:
        return None
    try:
        with storages.open(path) as file:
            head = file.read(_HEAD)
            first = next(_types(head), None)
            if first not in _BESIDE and (first is not None or b'"BATCH"' not in head):
                return None
            file.seek(0)
            data = file.read(MOST_BYTES + 1)
    except OSError:  # who reads it as events will say so
        return None
    types = set(_types(data, whole=True))
    if "BATCH" not in types or not types <= _BESIDE:
        return None
    found: list[str] = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and next(_types(line, whole=True)) == "BATCH":
            found += _files(line, f"{path}:{number}", path)
    return found


def _types(data: bytes, whole: bool = False) -> Iterator[str]:
    """Give the message types of lines, "" for a line that is no message; of a part not that of its last line."""
    lines = data.splitlines()
    for line in lines if whole or len(data) < _HEAD else lines[:-1]:
        if line.strip():
            try:
                yield _text(_members(line).get("type", Raw(b'""')))
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                yield ""


def _files(line: bytes, where: str, manifest: str) -> Iterator[str]:
    try:
        batch = read_batch(line)
    except BatchError as error:
        raise ConfigError(str(error), where) from None
    if batch.format != "jsonl":
        raise ConfigError(f"names files of format {batch.format!r:.40}; events are read from jsonl only", where)
    folder = manifest.rpartition("/")[0] or "."
    for file in batch.files:
        if urlsplit(file).scheme in ("http", "https"):
            raise ConfigError(f"names {shown(file)}; fetch it first, such a URL can't be read here", where)
        path = local_path(file)
        if "\0" in path:
            raise ConfigError("names a file with a null character in its path", where)
        if not (file.startswith("file:") or is_remote(path) or os.path.isabs(path)):
            path = f"{folder}/{path}"
        if store_of(path) != store_of(manifest):
            raise ConfigError(f"names {shown(file)}, but files must be where the manifest is; read it by itself", where)
        yield path
