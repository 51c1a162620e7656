"""The states of a series, and when they change: a pure function of signals and the clock.

======== ========================================= ============ ========= ==========
state    bad                                       ok           learning  no data
======== ========================================= ============ ========= ==========
ok       pending, firing without ``for``           ok           learning  no data
learning pending, firing without ``for``           ok           learning  no data
no data  pending, firing without ``for``           ok           learning  no data
resolved pending, firing without ``for``           resolved     learning  no data
pending  pending, firing after ``for``             ok           learning  no data
firing   firing                                    resolved (*) resolved  firing
======== ========================================= ============ ========= ==========

(*) after ``resolve_after``, or after ``within`` while the series flaps; at once without ``resolve_after``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

Signal = Literal["ok", "bad", "no_data", "learning"]
State = Literal["ok", "pending", "firing", "resolved", "no_data", "learning"]


class Timing(NamedTuple):
    """The times of a monitor, in seconds: see ``MonitorConfig``. A series flaps at ``firings`` within ``within``."""

    pending: float = 0.0
    resolve_after: float = 0.0
    firings: int = 3
    within: float = 3600.0


class Lifecycle(Struct):
    """The state of one series.

    Attributes:
        bad_since: when it became bad, while it is pending or firing.
        good_since: when it became good again, while it is still firing.
        fired: the last times that it fired, or became bad again while it fired; at most ``Timing.firings``.
    """

    state: State = "ok"
    bad_since: float | None = None
    good_since: float | None = None
    fired: list[float] = []

    def change(self, signal: Signal | None, now: float, timing: Timing) -> None:
        """Apply a signal at a time in seconds, or a tick of the clock if the signal is None."""
        if signal == "bad":
            self._turn_bad(now, timing)
        elif signal == "ok" and self.state == "firing":
            self.good_since = now if self.good_since is None else self.good_since
        elif signal == "ok":
            self.bad_since = None
            if self.state != "resolved":
                self.state = "ok"
        elif signal == "learning" and self.state == "firing":
            self.resolve()
        elif signal in ("learning", "no_data") and self.state != "firing":
            self.state, self.bad_since = signal, None
        due = self.deadline(timing)
        if due is not None and due <= now:
            if self.state == "pending":
                self._fire(now, timing)
            else:
                self.resolve()

    def deadline(self, timing: Timing) -> float | None:
        """Return when the state changes without a further signal, in seconds; None if it does not."""
        if self.state == "pending" and self.bad_since is not None:
            return self.bad_since + timing.pending
        if self.state == "firing" and self.good_since is not None:
            is_flapping = sum(self.good_since - timing.within < time for time in self.fired) >= timing.firings
            return self.good_since + (timing.within if is_flapping else timing.resolve_after)
        return None

    def resolve(self) -> None:
        """End the alert."""
        self.state, self.bad_since, self.good_since = "resolved", None, None

    def _turn_bad(self, now: float, timing: Timing) -> None:
        if self.good_since is not None:
            self.good_since = None
            self.fired = [*self.fired, now][-timing.firings :]
        if self.state not in ("pending", "firing"):
            self.bad_since = now
            self.state = "pending"
            if not timing.pending:
                self._fire(now, timing)

    def _fire(self, now: float, timing: Timing) -> None:
        self.state = "firing"
        self.fired = [*self.fired, now][-timing.firings :]
