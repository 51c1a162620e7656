"""The way of one stream's records: transformed, compared with the bookmark, written and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from balog.tap.bookmarks import Progress, full_table
from balog.tap.bookmarks.order import order_of
from balog.tap.bookmarks.state import version_in
from balog.tap.catalog import CatalogEntry
from balog.tap.errors import RecordError
from balog.tap.records import Transformer
from balog.tap.records.plain import simplify
from balog.tap.streams import Stream
from balog.tap.syncing.session import Session, SyncStats


class RecordPipeline(SyncStats):
    """Writes the records of one selected stream, and counts them.

    Args:
        session: the run.
        stream: the stream.
        entry: its catalog entry.
        progress: its progress, which sees each record before it is written.
        log: a logger with the stream bound.

    Attributes:
        schema: the schema of the records that are written.
        refuse: sets aside what is not a record, with a ``RecordError``.
        can_write_pages: pages of records can be written at once.
    """

    def __init__(self, session: Session, stream: Stream, entry: CatalogEntry, progress: Progress, log: Any) -> None:
        self._session, self._stream, self._entry, self._progress, self._log = session, stream, entry, progress, log
        self._see = progress.see
        self._transform = Transformer(
            entry,
            stream.policy,
            stream.after,
            epoch=stream.epoch,
            quarantine=session.quarantine(entry.tap_stream_id, log),
            log=log,
        )
        self.schema = self._transform.schema
        self.refuse = self._transform.refuse
        super().__init__(self._transform)
        self._bookmark_of = stream.bookmark_of
        self.can_write_pages = stream.created_key is None and stream.bookmark_of is None
        self._count_created = self._created_counter()
        self._write_version()

    @contextmanager
    def new_version(self, *, can_resume: bool) -> Iterator[int]:
        """Write the records inside the ``with`` body as a version of the table; see ``full_table``."""
        name, before = self._entry.stream, self.quarantined

        def activate(version: int) -> bool:
            is_whole = self.quarantined == before
            if is_whole:
                self._session.output.activate_version(name, version)
            else:
                self._log.warning(
                    f"{name}: the rows of the previous version are kept, because this version lacks "
                    "quarantined records",
                    version=version,
                )
            return is_whole

        try:
            with full_table(self._session.state, self._stream.name, activate, can_resume=can_resume) as version:
                self._write_version(version)
                yield version
        finally:
            self._write_version()

    def _write_version(self, version: int | None = None) -> None:
        """Write the next records with a version of the table; None means the one in the state, if there is one."""
        version = version or version_in(self._session.state, self._entry.tap_stream_id)
        self._write = self._session.output.records(self._entry.stream, version, refuse=self._transform.refuse)

    def put(self, record: Any) -> bool | None:
        """Write a record, or quarantine it. Return whether a STATE is due."""
        valid_record = self._transform(record)
        if valid_record is None:
            return None
        try:
            is_due = self._see(valid_record if self._bookmark_of is None else simplify(record))
        except RecordError as error:
            self._transform.refuse(record, error)
            return None
        except BaseException:
            self._progress.restart()  # the record that it has seen is not written
            raise
        if self._write(valid_record):
            self.records += 1
            if self._count_created is not None:
                self._count_created(valid_record)
        return is_due

    def put_page(self, records: list[Any]) -> bool | None:
        """Write a list of records, which is faster than one by one.

        Returns:
            Whether a STATE is due. None if one of the records ends the stream: none was written, and those before it
            have to be put one by one.
        """
        try:
            page = self._transform.page(records)
        except RecordError:
            return None
        see, write = self._see, self._write
        is_due, start = False, 0
        try:
            for index, record in enumerate(page):
                try:
                    if see(record):
                        is_due = True
                except RecordError as error:
                    self.records += write.page(page[start:index])
                    start = index + 1
                    self._transform.refuse(record, error)
            self.records += write.page(page[start:] if start else page)
        except BaseException:
            self._progress.restart()  # records that it has seen may not have been written
            raise
        return is_due

    def _created_counter(self) -> Callable[[dict[str, Any]], None] | None:
        created_key, since = self._stream.created_key, self._progress.start
        if created_key is None or since is None:
            return None
        order = order_of(self._entry.schema, created_key)
        self.new = self.updated = 0

        def count(record: dict[str, Any]) -> None:
            with suppress(ValueError):  # null, or not a time: it is unknown
                if order.is_before(since, record.get(created_key)):
                    self.new = (self.new or 0) + 1
                else:
                    self.updated = (self.updated or 0) + 1

        return count
