"""How long a caller waits for room in a full queue."""

from __future__ import annotations

import time

from balog.delivery.notices import SinkHealth
from balog.delivery.spooler import Spooler
from balog.delivery.worker_state import WorkerState

NO_PROGRESS_SECONDS = 1.0
"""Seconds without progress after which a sink is no longer waited for."""


class Backpressure:
    """Makes callers wait for room, within limits.

    Args:
        timeout: seconds, in all, that callers may wait for a sink that works.
    """

    def __init__(
        self,
        state: WorkerState,
        spooler: Spooler | None,
        health: SinkHealth,
        timeout: float,
    ) -> None:
        self._state = state
        self._spooler = spooler
        self._health = health
        self._timeout = timeout

    def wait_for_room(self, size: int) -> bool:
        """Wait until so many bytes fit into the queue, while ``state.lock`` is held.

        Returns:
            False if the event is to be dropped.
        """
        state, queue, spooler = self._state, self._state.queue, self._spooler
        while queue.memory + size > queue.limit and state.deadline is None and not state.has_ended:
            can_spill = spooler is not None and not spooler.error
            is_worth_waiting = self._timeout > 0 and (can_spill or not self._health.is_failing)
            if not (is_worth_waiting and self._wait_for_progress(can_spill)):
                return False
        return not state.has_ended

    def _wait_for_progress(self, can_spill: bool) -> bool:
        """Wait until a batch was taken, failed or spooled. Return False if there is no point in waiting longer."""
        state, began = self._state, time.monotonic()
        progress = state.progress
        has_moved = state.changed.wait_for(
            lambda: state.progress != progress or (self._health.is_failing and not can_spill),
            min(self._timeout, NO_PROGRESS_SECONDS),
        )
        # A sink without progress is not waited for again; a disk that stalls is.
        self._timeout = self._timeout - (time.monotonic() - began) if has_moved or can_spill else 0.0
        return has_moved or (can_spill and self._timeout > 0)
