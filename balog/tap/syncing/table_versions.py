"""Versions of full tables: ``context.full_table()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from balog.tap.bookmarks import FullTable
from balog.tap.bookmarks.start import POSITION
from balog.tap.errors import TapError
from balog.tap.syncing.pipeline import RecordPipeline, StreamParts


class TableVersions:
    """Writes the records of one stream as versions of its table.

    Args:
        sync: the sync of the stream.
    """

    def __init__(self, sync: StreamParts) -> None:
        self._sync, self._session, self._stream, self._context = sync, sync.session, sync.stream, sync.context
        self._is_open = False

    @contextmanager
    def open(self) -> Iterator[int]:
        """Write the records inside the ``with`` body as a version; see ``Context.full_table``."""
        title, state, name = self._stream.title, self._session.state, self._stream.name
        if self._sync.parent is not None:
            raise TapError(f"{title}: full_table() is for streams without a parent")
        if self._is_open:
            raise TapError(f"{title}: full_table() within full_table()")
        if self._session.is_calling:
            raise TapError(f"{title}: full_table() needs a function that yields: returned records come after its end")
        version, pipeline = 0, self._sync.pipeline
        if pipeline is None:
            yield version
        else:
            can_resume = self._context.log_position is not None
            self._is_open = True
            try:
                with FullTable(state, name, self._activator(pipeline), can_resume=can_resume) as version:
                    pipeline.write_version(version)
                    yield version
                    self._session.stop.check()  # the body may have ended early because of it
            finally:
                self._is_open = False
                pipeline.write_version()
        if (self._sync.entry.replication_method or self._stream.method) != "FULL_TABLE":
            return
        if not self._sync.progress.set(None) and state.get(name, POSITION) is not None:
            # A substream failed: the next run resumes there, with this version.
            state.set(name, "version", version or None)
        self._context.log_position = None

    def _activator(self, pipeline: RecordPipeline) -> Callable[[int], bool]:
        quarantined_before = pipeline.stats.quarantined

        def activate(version: int) -> bool:
            is_whole = pipeline.stats.quarantined == quarantined_before
            if is_whole:
                self._session.output.activate_version(self._sync.entry.stream, version)
            else:
                self._context.log.warning(
                    f"{self._sync.entry.stream}: the rows of the previous version are kept, because this version lacks "
                    "quarantined records",
                    version=version,
                )
            return is_whole

        return activate
