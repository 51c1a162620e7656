"""Finds the files of a source: paths, folders, globs, and URLs; and omits those without events in a time range.

A file is omitted by its folder's day, and by the times in its manifest.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import PurePosixPath

import msgspec

from balog.analytics.reading.remote import StoragePool, is_remote, local_path, with_retries
from balog.analytics.reading.tasks import SourceFile
from balog.common.errors import ConfigError
from balog.common.storage import StorageError
from balog.sinks.archive.store_part import MANIFESTS, Manifest
from balog.topics.archives import day_of

_FORMS = ".jsonl", ".ndjson", ".json", ".log", ".singer", ".tsv", ".txt"
ENDINGS = tuple(form + packing for form in _FORMS for packing in ("", ".gz", ".zst"))
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
            ``s3a://``). In folders and globs, names that begin with ``.`` or ``_`` are skipped: they are still being
            written.
        storages: opens stores.
        since: omit files that have no event at or after this time, see ``Pruner``.
        until: omit files that have no event before this time.
        is_growing: a glob may match nothing yet.

    Raises:
        ConfigError: a path does not exist or can't be listed, or a glob matches nothing.
        StorageError: a store does not answer.
    """
    storages = storages or StoragePool()
    files_by_path: dict[str, SourceFile] = {}
    for path in map(_absolute_path, [paths] if isinstance(paths, str) else paths):
        for file in _store_files(path, storages, is_growing) if is_remote(path) else _local_files(path, is_growing):
            files_by_path[file.path] = file
    files = [files_by_path[path] for path in sorted(files_by_path)]
    return Pruner(storages, since, until).keep(files)


def _absolute_path(path: str) -> str:
    """Return the absolute path of a local file, so that it has one name in all workers."""
    if is_remote(path):
        return path
    path, here = local_path(path), os.getcwd()
    path = os.path.join(glob.escape(here) if glob.has_magic(path) and not os.path.exists(path) else here, path)
    # Behind a symbolic link, normalizing .. would change the target.
    return path if ".." in path.split("/") else os.path.normpath(path)


def _local_files(path: str, is_growing: bool) -> Iterator[SourceFile]:
    if os.path.isdir(path):
        yield from _folder_files(path)
    elif os.path.exists(path):
        yield _file(path)
    elif glob.has_magic(path):
        matches = [match for match in glob.glob(path, recursive=True) if not _is_hidden(os.path.basename(match))]
        if not matches and not is_growing:
            raise ConfigError("no file matches; check the pattern", path)
        for match in matches:
            yield from _folder_files(match) if os.path.isdir(match) else _listed(match)
    else:
        raise ConfigError(
            "no such file or folder; give an archive's folder, a .jsonl or .jsonl.gz file, or a glob", path
        )


def _file(path: str) -> SourceFile:
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):  # opening a pipe would block until there is a writer
        raise ConfigError("is not a regular file; write its output to a file", path)
    return SourceFile(path, about.st_size, about.st_mtime)


def _folder_files(folder: str) -> Iterator[SourceFile]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            reason = f"can't be listed: {error.strerror or error}; check its owner and mode"
            raise ConfigError(reason, error.filename) from None
        if error.filename == folder:
            raise ConfigError("no such file or folder", folder) from None

    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if name.endswith(ENDINGS) and not _is_hidden(name):
                yield from _listed(os.path.join(here, name))


def _listed(path: str) -> Iterator[SourceFile]:
    """Yield a file that was listed; a pipe is none."""
    try:
        yield _file(path)
    except OSError:  # it vanished, or is a broken symbolic link: the reader reports it
        yield SourceFile(path, 0)
    except ConfigError:
        pass


def _store_files(url: str, storages: StoragePool, is_growing: bool) -> Iterator[SourceFile]:
    """List a folder of a store in one request; a glob is matched against the names below its literal prefix."""
    pattern = None
    root = url.rstrip("/")
    if glob.has_magic(url):
        plain = url[: next(number for number, char in enumerate(url) if char in "*?[")]
        root = plain.rpartition("/")[0]
        if not is_remote(root):
            raise ConfigError("a bucket or host must be named; only what is in it can be a pattern", url)
        pattern = _compiled(url, root)
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
        is_named = pattern.fullmatch(entry.name) if pattern is not None else not entry.name
        if pattern is not None and not is_named:
            *folders, _ = PurePosixPath(entry.name).parents
            if not any(pattern.fullmatch(str(folder)) for folder in folders):
                continue
        parts = entry.name.split("/")
        if any(map(_is_hidden, parts)) or not (is_named or parts[-1].endswith(ENDINGS)):
            continue
        yield SourceFile(path, entry.size, entry.modified)
        matched = True
    if pattern is not None and not matched and not is_growing:
        raise ConfigError("no file matches; check the pattern", url)


def _compiled(url: str, root: str) -> re.Pattern[str]:
    from fsspec.utils import glob_translate

    try:
        return re.compile(glob_translate(url[len(root) :].strip("/")))
    except ValueError as error:
        raise ConfigError(f"is not a valid glob: {error}", url) from None


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


_DAY = re.compile(r"(.*)/date=(\d{4}-\d\d-\d\d)/(?:.*/)?([^/.]+)[^/]*")
_MOST_MANIFESTS = 5000
_MOST_REMOTE_MANIFESTS = 200  # each one is a request
_LARGEST_MANIFEST = 64 * 1024
_decode = msgspec.json.Decoder(Manifest).decode


class Pruner:
    """Omits files by time.

    In an archive of balog, a folder ``date=YYYY-MM-DD`` holds the events of that UTC day. Elsewhere it may be the day
    of arrival, so the pruner keeps one day before and after, unless the file's manifest (in ``_manifest`` beside the
    day's folder) has the times of its first and last event. It keeps all files that are not in such a folder.

    Args:
        storages: opens stores.
        since: the beginning of the time range; UTC if it has no zone.
        until: the end of the time range, exclusive.
    """

    def __init__(self, storages: StoragePool, since: datetime | None, until: datetime | None) -> None:
        self._storages = storages
        self._is_bounded = since is not None or until is not None
        self._since, self._until = _utc(since or datetime.min), _utc(until or datetime.max)

    def keep(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        """Return the files that may have events in the time range."""
        if not self._is_bounded:
            return list(files)
        kept: list[SourceFile] = []
        doubtful: list[tuple[SourceFile, str]] = []
        for file in files:
            match = _DAY.fullmatch(file.path)
            day = day_of(f"date={match[2]}") if match else None
            if match is None or day is None or self._lies_inside(day):
                kept.append(file)
            elif self._may_overlap(day):
                doubtful.append((file, f"{match[1]}/{MANIFESTS}/{match[3]}.json"))
        remote = sum(is_remote(file.path) for file, _ in doubtful)
        if remote > _MOST_REMOTE_MANIFESTS or len(doubtful) > _MOST_MANIFESTS:
            kept += [file for file, _ in doubtful]
        else:
            kept += [file for file, manifest in doubtful if self._has_some(manifest)]
        return sorted(kept)

    def _lies_inside(self, day: date) -> bool:
        begins = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
        return begins >= self._since and self._until - begins >= timedelta(days=1)

    def _may_overlap(self, day: date) -> bool:
        return self._since.toordinal() - 1 <= day.toordinal() <= self._until.toordinal() + 1

    def _has_some(self, path: str) -> bool:
        manifest = self._manifest(path)
        if manifest is None or manifest.min_timestamp is None or manifest.max_timestamp is None:
            return True
        return manifest.max_timestamp >= self._since and manifest.min_timestamp < self._until

    def _manifest(self, path: str) -> Manifest | None:
        try:
            with self._storages.open(path) as file:
                return _decode(file.read(_LARGEST_MANIFEST))
        except (OSError, StorageError, msgspec.DecodeError, ValueError):
            return None


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
