"""``--assert``: the messages of a sync are checked while they are written; see ``balog.singer.assertions``."""

from __future__ import annotations

from typing import Any

from balog.singer.assertions import TapAssertions
from balog.tap.errors import SyncError
from balog.tap.streams import Stream
from balog.tap.syncing import Observer, Sync, SyncStats, report_failures


class AssertedSync(Sync):
    """A run that fails if its messages break an assertion.

    Args:
        assertions: check the messages; the output passes them.
    """

    def __init__(self, *arguments: Any, assertions: TapAssertions, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._assertions = assertions
        self.observer = _AssertingObserver(self.observer, assertions)

    def run(self) -> int:
        """See ``Sync.run``; a broken assertion is a failure of its stream."""
        streams = self.streams.values()
        tops = [stream for stream in streams if stream.parent is None and stream.source_stream is None]
        own = [stream.name for stream in streams if stream.bookmark_of is not None]
        in_order = [stream for stream in tops if stream.is_sorted and stream.strategy is not None]
        ordered = {stream.name: key for stream in in_order if (key := stream.replication_key)}
        self._assertions.begin({name: key for name, key in ordered.items() if name not in own}, own)
        code = super().run()
        broken = [SyncError(*problem) for problem in self._assertions.finish(is_complete=not code)]
        report_failures(self.log, broken)
        self.failures += broken
        return code or (1 if broken else 0)


class _AssertingObserver(Observer):
    """Passes paths that the schema does not have to assertions."""

    def __init__(self, observer: Observer, assertions: TapAssertions) -> None:
        self._observer, self._assertions = observer, assertions

    def started(self, stream: Stream, stats: SyncStats) -> None:
        self._observer.started(stream, stats)

    def ended(self, stream: Stream, stats: SyncStats, error: SyncError | None) -> None:
        for path in stats.removed:
            self._assertions.removed(stream.name, path)
        self._observer.ended(stream, stats, error)
