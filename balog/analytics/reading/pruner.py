"""Omits files without events in a time range: by their folder's day, and by the times in their manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone

import msgspec

from balog.analytics.reading.remote import StoragePool, is_remote
from balog.analytics.reading.tasks import SourceFile
from balog.common.storage import StorageError
from balog.sinks.archive.store_part import MANIFESTS, Manifest

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
            day = _day(match[2]) if match else None
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


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
