"""Finds the files of a source: paths, folders, globs, URLs, and manifests.

A manifest is a file of BATCH messages; it stands for the files that the messages name.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from balog.analytics.reading.pruner import Pruner
from balog.analytics.reading.remote import StoragePool, is_remote, local_path, store_of, with_retries
from balog.analytics.reading.tasks import SourceFile
from balog.analytics.reading.validation import try_decode
from balog.errors import ConfigError
from balog.singer.batch.dialects import BatchError, read_batch, shown
from balog.storage import StorageError

_FORMS = ".jsonl", ".ndjson", ".json", ".log", ".singer", ".tsv", ".txt"
ENDINGS = tuple(form + packing for form in _FORMS for packing in ("", ".gz", ".zst", ".bz2"))
"""Suffixes of the files that a folder is searched for. A file that is named directly may have any name."""


def find_files(
    paths: str | Sequence[str],
    storages: StoragePool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    is_growing: bool = False,
) -> list[SourceFile]:
    """Return the files of paths, sorted by path, without duplicates.

    Args:
        paths: files, folders (recursive), globs (including ``**``), ``file:`` URLs, URLs of stores (``s3://`` or
            ``s3a://``); one string may hold several, separated by commas. In folders and globs, names that begin with
            ``.`` or ``_`` are skipped: they are still being written. A file of BATCH messages that is named directly
            stands for the files in its manifests.
        storages: opens stores.
        since: omit files that have no event at or after this time, see ``Pruner``.
        until: omit files that have no event before this time.
        is_growing: a glob may match nothing yet.

    Raises:
        ConfigError: a path does not exist or can't be listed, or a glob matches nothing.
        StorageError: a store does not answer.
    """
    storages = storages or StoragePool()
    found: dict[str, SourceFile] = {}
    for path in _split_paths([paths] if isinstance(paths, str) else paths):
        for file in (
            _store_files(path, storages, is_growing) if is_remote(path) else _local_files(path, storages, is_growing)
        ):
            found[file.path] = file
    files = [found[path] for path in sorted(found)]
    return Pruner(storages, since, until).keep(files)


def _split_paths(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        whole = not is_remote(path) and os.path.exists(local_path(path))
        yield from map(_absolute_path, [path] if whole else [piece for piece in path.split(",") if piece])


def _absolute_path(path: str) -> str:
    """Return the absolute path of a local file, so that it has one name in all workers."""
    if is_remote(path):
        return path
    path, here = local_path(path), os.getcwd()
    path = os.path.join(glob.escape(here) if glob.has_magic(path) and not os.path.exists(path) else here, path)
    # Behind a symbolic link, normalizing .. would change the target.
    return path if ".." in path.split("/") else os.path.normpath(path)


def _local_files(path: str, storages: StoragePool, is_growing: bool) -> Iterator[SourceFile]:
    if os.path.isdir(path):
        yield from _folder_files(path)
    elif os.path.exists(path):
        yield from _expand_manifest(_file(path), storages)
    elif glob.has_magic(path):
        matches = [match for match in glob.glob(path, recursive=True) if not _is_hidden(os.path.basename(match))]
        if not matches and not is_growing:
            raise ConfigError("no file matches; check the pattern", path)
        for match in matches:
            if os.path.isdir(match):
                yield from _folder_files(match)
            elif os.path.isfile(match):
                yield _file(match)
            elif os.path.islink(match):  # a broken symbolic link: the reader reports it
                yield SourceFile(match, 0)
    else:
        raise ConfigError(
            "no such file or folder; give an archive's folder, a .jsonl or .jsonl.gz file, or a glob", path
        )


def _file(path: str) -> SourceFile:
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):  # opening a pipe would block until there is a writer
        raise ConfigError("is not a regular file; write its output to a file", path)
    return SourceFile(path, about.st_size, about.st_mtime)


def _expand_manifest(file: SourceFile, storages: StoragePool) -> Iterator[SourceFile]:
    """Yield a file that was named directly, or the files of its BATCH messages."""
    paths = named_files(file.path, file.size, storages)
    if paths is None:
        yield file
        return
    folders: dict[str, dict[str, SourceFile]] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        if not is_remote(path):
            try:
                yield _file(path)
            except OSError:  # the reader reports it
                yield SourceFile(path, 0)
            continue
        if folder not in folders:  # one listing in place of a request for each file
            storage, name = storages.store(folder)
            folders[folder] = {
                f"{folder}/{entry.name}": SourceFile(f"{folder}/{entry.name}", entry.size, entry.modified)
                for entry in with_retries(storage, partial(storage.entries, name)) or ()
            }
        yield folders[folder].get(path, SourceFile(path, 0))


def _folder_files(folder: str) -> Iterator[SourceFile]:
    folders = [folder]
    while folders:
        here = folders.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if _is_hidden(entry.name):
                        continue
                    if entry.is_dir():
                        if not entry.is_symlink():
                            folders.append(entry.path)
                    elif entry.name.endswith(ENDINGS) and (entry.is_file() or entry.is_symlink()):
                        yield _list_one(entry)
        except FileNotFoundError:
            if here == folder:
                raise ConfigError("no such file or folder", here) from None
        except OSError as error:
            raise ConfigError(f"can't be listed: {error.strerror or error}; check its owner and mode", here) from None


def _list_one(entry: os.DirEntry[str]) -> SourceFile:
    try:
        about = entry.stat()
    except OSError:  # it vanished, or is a broken symbolic link: the reader reports it
        return SourceFile(entry.path, 0)
    return SourceFile(entry.path, about.st_size, about.st_mtime)


def _store_files(url: str, storages: StoragePool, is_growing: bool) -> Iterator[SourceFile]:
    """List a folder of a store in one request; a glob is matched against the names below its literal prefix."""
    pattern = None
    root = url.rstrip("/")
    if glob.has_magic(url):
        plain = url[: next(number for number, char in enumerate(url) if char in "*?[")]
        root = plain.rpartition("/")[0]
        if not is_remote(root):
            raise ConfigError("a bucket or host must be named; only what is in it can be a pattern", url)
        try:
            pattern = re.compile(_expression(url[len(root) :].strip("/")))
        except re.error as error:
            raise ConfigError(f"is not a valid glob: {error}", url) from None
    storage, name = storages.store(root)
    try:
        entries = with_retries(storage, lambda: storage.entries(name))
    except StorageError as error:
        if error.retryable:
            raise
        raise ConfigError(f"{error}; check the name and who may list it") from None
    if entries is None:
        raise ConfigError("no such file or folder", url)
    matched = False
    for entry in entries:
        path = f"{root}/{entry.name}" if entry.name else root
        parts = entry.name.split("/")
        if not entry.name and pattern is None:  # named directly
            yield from _expand_manifest(SourceFile(path, entry.size, entry.modified), storages)
            continue
        match = pattern.match(entry.name) if pattern is not None else None
        if pattern is not None and match is None:
            continue
        named = match is not None and match.end() == len(entry.name)
        if any(map(_is_hidden, parts)) or not (named or parts[-1].endswith(ENDINGS)):
            continue
        yield SourceFile(path, entry.size, entry.modified)
        matched = True
    if pattern is not None and not matched and not is_growing:
        raise ConfigError("no file matches; check the pattern", url)


def _expression(pattern: str) -> str:
    """Return a regular expression for a glob; it also matches the folders at the beginning of a name."""
    parts = []
    for number, part in enumerate(pieces := pattern.split("/")):
        last = number + 1 == len(pieces)
        if part == "**":
            parts.append("(?:.*)" if last else "(?:[^/]+/)*")
            continue
        text = re.sub(r"\[!", "[^", re.sub(r"(\*|\?|\[[^\]/]+\])|(.)", _translate, part, flags=re.DOTALL))
        parts.append(text if last else text + "/")
    return "".join(parts) + r"(?=/|\Z)"


def _translate(match: re.Match[str]) -> str:
    magic, char = match.groups()
    if magic is None:
        return re.escape(char)
    return {"*": "[^/]*", "?": "[^/]"}.get(magic, magic)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


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
            members = try_decode(_members, line) or {}
            yield try_decode(_text, members.get("type", Raw())) or ""


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
