"""Versions of full tables: ``context.full_table()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from balog.tap.bookmarks import FullTable, Progress
from balog.tap.bookmarks.start import POSITION
from balog.tap.catalog import CatalogEntry
from balog.tap.context import Context
from balog.tap.errors import TapError
from balog.tap.streams import Stream
from balog.tap.syncing.pipeline import RecordPipeline
from balog.tap.syncing.session import Session


class TableVersions:
    """Writes the records of one stream as versions of its table.

    Args:
        session: the run.
        stream: the stream.
        entry: its catalog entry.
        progress: its progress.
        pipeline: writes its records; None if it is not selected.
        context: the argument ``context`` of the stream's function.
        has_parent: it is synced for the records of another stream.
    """

    def __init__(
        self,
        session: Session,
        stream: Stream,
        entry: CatalogEntry,
        progress: Progress,
        pipeline: RecordPipeline | None,
        context: Context,
        *,
        has_parent: bool,
    ) -> None:
        self._session, self._stream, self._entry, self._progress = session, stream, entry, progress
        self._pipeline, self._context = pipeline, context
        self._has_parent = has_parent
        self._is_open = False

    @contextmanager
    def open(self) -> Iterator[int]:
        """Write the records inside the ``with`` body as a version; see ``Context.full_table``."""
        title, state, name = self._stream.title, self._session.state, self._stream.name
        if self._has_parent:
            raise TapError(f"{title}: full_table() is for streams without a parent")
        if self._is_open:
            raise TapError(f"{title}: full_table() within full_table()")
        if self._session.is_calling:
            raise TapError(f"{title}: full_table() needs a function that yields: returned records come after its end")
        version = 0
        if self._pipeline is None:
            yield version
        else:
            can_resume = self._context.log_position is not None
            self._is_open = True
            with FullTable(state, name, self._activator(self._pipeline), can_resume=can_resume) as version:
                self._pipeline.write_version(version)
                try:
                    yield version
                    self._session.stop.check()  # the body may have ended early because of it
                finally:
                    self._pipeline.write_version(None)
                    self._is_open = False
        if (self._entry.replication_method or self._stream.method) != "FULL_TABLE":
            return
        if not self._progress.set(None) and state.get(name, POSITION) is not None:
            # A substream failed: the next run resumes there, with this version.
            state.set(name, "version", version or None)
        self._context.log_position = None

    def _activator(self, pipeline: RecordPipeline) -> Callable[[int], None]:
        quarantined_before = pipeline.stats.quarantined

        def activate(version: int) -> None:
            if pipeline.stats.quarantined == quarantined_before:
                self._session.output.activate_version(self._entry.stream, version)
            else:
                self._context.log.warning(
                    f"{self._entry.stream}: the rows of the previous version are kept, because this version lacks "
                    "quarantined records",
                    version=version,
                )

        return activate
