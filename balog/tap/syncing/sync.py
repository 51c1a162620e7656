"""A run: the loop over streams."""

from __future__ import annotations

import signal

from balog.tap.errors import LateDeclarationError, OutputError
from balog.tap.streams import Stream, in_run_order
from balog.tap.syncing.interrupts import Interrupted
from balog.tap.syncing.session import Session, SyncStats, report_failures
from balog.tap.syncing.stream_sync import LimitReached, StreamSync


class Sync(Session):
    """One run.

    Streams run one after another in the order of their declarations, starting with the one at which the previous run
    was interrupted. If a stream fails, the others still run; the errors are in ``failures``.

    A substream is synced for each record of its parent at once: its records come after the parent's, and the parent's
    bookmark moves only when they are written. If that takes longer than some seconds, the output is flushed, and the
    state up to the previous parent is written if the parent's strategy allows states before the end. So memory holds
    one record (or page) of each level, and no state is ahead of the records. A substream that fails is not synced again
    in this run; its parent goes on, but the parent's bookmark stays. A substream's own bookmark is the largest value
    over all parents and is written when all are complete. Until then its source is queried with the bookmark from the
    start of the run.

    See ``Session`` for its arguments and attributes.
    """

    def run(self) -> int:
        """Sync all selected streams, and report failed ones on stderr.

        Returns:
            The exit code: 0, 1 if a stream failed, 128 plus the signal's number if the run was interrupted.

        Raises:
            OutputError: the messages cannot be written.
        """
        try:
            return self._run()
        finally:
            self.close()

    def _run(self) -> int:
        selected = {entry.tap_stream_id for entry in self.catalog if entry.is_selected}
        interrupt: BaseException | None = None
        try:
            for stream in in_run_order(self.streams.values(), selected, self.state.currently_syncing):
                self._sync(stream)
            self.state.mark_syncing(None)
        except (Interrupted, KeyboardInterrupt) as error:
            interrupt = error
        self.write_state()
        report_failures(self.log, self.failures)
        if interrupt is not None:
            return 128 + (interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT)
        return 1 if self.failures else 0

    def _sync(self, stream: Stream) -> None:
        self.state.mark_syncing(stream.name)
        self.write_state()
        try:
            top = StreamSync(self, stream)
            top.restart()
        except Exception as error:  # a wrong declaration, or a wrong bookmark in the state
            stats = SyncStats()
            self.observer.started(stream, stats)
            self.observer.ended(stream, stats, self.fail(stream, error))
            return
        syncs = list(top.family())
        top.active.update({each.stream.name: each for each in syncs})
        for each in syncs:
            each.announce()
        roots = (top, *top.emitted)  # all whose progress has no parent
        try:
            top.read_source()
            for root in roots:
                root.progress.finish()
        except (Interrupted, KeyboardInterrupt):
            for root in roots:
                root.progress.checkpoint()
            raise
        except (OutputError, LateDeclarationError):
            raise
        except LimitReached:
            pass
        except (Exception, SystemExit) as error:
            failure = self.fail(stream, error)
            for root in roots:
                root.progress.fail()
            top.fail(failure)
        finally:
            for each in syncs:
                if each.context.is_first_run:
                    each.stats.count_all_as_new()
        self.write_state()
        for each in top.active.values():
            if each.is_selected:
                if each.failure is None:
                    each.context.report_unused()
                self.observer.ended(each.stream, each.stats, each.failure)
