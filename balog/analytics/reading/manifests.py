"""Files of BATCH messages, which stand for the files that the messages name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from balog.analytics.reading.remote import StoragePool, is_remote, local_path, store_of
from balog.errors import ConfigError
from balog.singer.batch.dialects import BatchError, read_batch, shown

MOST_BYTES = 64 << 20
"""The driver reads a manifest whole; a larger file is read as events."""

_HEAD = 64 * 1024
_TYPES = frozenset({"SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH"})
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


def named_files(path: str, size: int, storages: StoragePool) -> list[str] | None:
    """Return the paths and URLs in a file's BATCH messages, or None if the file has other content.

    The file may also have SCHEMA, STATE and ACTIVATE_VERSION messages, as the output of a tap that writes batches does.
    A relative path starts from the manifest's folder. A manifest is untrusted input: it can only name files in its own
    bucket or on its own host, and a local manifest only local files.

    Args:
        path: a file that was named directly.
        size: its size in bytes.
        storages: opens stores.

    Raises:
        ConfigError: a BATCH message is invalid, or names files elsewhere, or in another format than JSON lines.
    """
    if size > MOST_BYTES:
        return None
    try:
        with storages.open(path) as file:
            head = file.read(_HEAD)
            first = next(_types(head), None)
            if first not in _TYPES and (first is not None or b'"BATCH"' not in head):
                return None
            file.seek(0)
            data = file.read(MOST_BYTES + 1)
    except OSError:  # the reader of events reports it
        return None
    types = set(_types(data, whole=True))
    if "BATCH" not in types or not types <= _TYPES:
        return None
    found: list[str] = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and next(_types(line, whole=True)) == "BATCH":
            found += _files(line, f"{path}:{number}", path)
    return found


def _types(data: bytes, whole: bool = False) -> Iterator[str]:
    """Yield the message type of each line, "" for other lines; the last line of a partial read is skipped."""
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
