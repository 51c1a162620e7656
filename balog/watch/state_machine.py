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


def change(life: Lifecycle, signal: Signal | None, now: float, timing: Timing) -> None:
    """Apply a signal at a time in seconds, or a tick of the clock if the signal is None."""
    if signal == "bad":
        _turn_bad(life, now, timing)
    elif signal == "ok" and life.state == "firing":
        if life.good_since is None:
            life.good_since = now
    elif signal == "ok":
        life.bad_since = None
        if life.state != "resolved":
            life.state = "ok"
    elif signal == "learning" and life.state == "firing":
        _resolve(life)
    elif signal in ("learning", "no_data") and life.state != "firing":
        life.state, life.bad_since = signal, None
    due = deadline(life, timing)
    if due is not None and due <= now:
        if life.state == "pending":
            _fire(life, now, timing)
        else:
            _resolve(life)


def deadline(life: Lifecycle, timing: Timing) -> float | None:
    """Return when the state changes without a further signal, in seconds; None if it does not."""
    if life.state == "pending" and life.bad_since is not None:
        return life.bad_since + timing.pending
    if life.state == "firing" and life.good_since is not None:
        return life.good_since + (timing.within if is_flapping(life, timing) else timing.resolve_after)
    return None


def is_flapping(life: Lifecycle, timing: Timing) -> bool:
    """Return whether a firing series has fired too often before it became good."""
    until = life.good_since if life.good_since is not None else life.fired[-1] if life.fired else 0.0
    return sum(until - timing.within < time for time in life.fired) >= timing.firings


def _turn_bad(life: Lifecycle, now: float, timing: Timing) -> None:
    if life.good_since is not None:
        life.good_since = None
        life.fired = [*life.fired, now][-timing.firings :]
    if life.state not in ("pending", "firing"):
        life.bad_since = now
        life.state = "pending"
        if not timing.pending:
            _fire(life, now, timing)


def _fire(life: Lifecycle, now: float, timing: Timing) -> None:
    life.state = "firing"
    life.fired = [*life.fired, now][-timing.firings :]


def _resolve(life: Lifecycle) -> None:
    life.state, life.bad_since, life.good_since = "resolved", None, None
