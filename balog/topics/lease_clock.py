"""The clock for leases and delays of local topics. Changes of the machine's time do not affect it."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def uptime() -> float:
    """Return the seconds since the machine's start, including suspension; equal in all processes."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def _boot() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # macOS has none
        return ""


class LeaseClock:
    """Monotonic seconds since the machine's start, equal in all processes that share a topic's file.

    The first process that writes after a start of the machine stores when the machine started, by the wall clock.
    From then on, the time is that moment plus the uptime, even if the wall clock changes.
    Without a boot id, the time is the wall clock's.

    Args:
        wall: returns the seconds since the epoch.
        uptime: returns the seconds since the machine started.
        boot: returns the id of this start of the machine; "" if it has none.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
        boot: Callable[[], str] = _boot,
    ) -> None:
        self._wall = wall
        self._uptime = uptime
        self._boot = boot()

    def now(self, connection: sqlite3.Connection) -> float:
        """Return the time for a connection's file; infinity if ``start`` must be called first."""
        if not self._boot:
            return self._wall()
        row = connection.execute("SELECT began FROM clock WHERE boot = ?", (self._boot,)).fetchone()
        return float(row[0]) + self._uptime() if row else math.inf

    def start(self, connection: sqlite3.Connection) -> float:
        """Return the time inside a write transaction; the first call since the machine's start stores the start.

        Leases of an earlier start end then, because their holders ended with it. Delays go on by the wall clock.
        """
        if self._boot and not connection.execute("SELECT 1 FROM clock WHERE boot = ?", (self._boot,)).fetchone():
            connection.execute("DELETE FROM clock")
            connection.execute("INSERT INTO clock VALUES (?, ?)", (self._boot, self._wall() - self._uptime()))
            connection.execute("UPDATE leases SET ready_at = 0 WHERE receipt NOT IN ('', '~')")
        return self.now(connection)
