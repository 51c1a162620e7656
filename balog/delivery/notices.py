"""Messages to people about one component, each sent once or at most every 30 seconds, and the health of a sink."""

from __future__ import annotations

import time
from collections.abc import Callable

from balog.common.errors import SinkError, redact_error
from balog.delivery.attempt import AttemptOutcome, reason_of

AGAIN_SECONDS = 30.0
"""Seconds between two notices about the same thing, for a sink that keeps failing and recovering."""


class ThrottledNotices:
    """Notices about one component.

    Args:
        name: the component's name; each line begins with it.
        notify: takes a line.
    """

    def __init__(self, name: str, notify: Callable[[str], None]) -> None:
        self._name = name
        self._notify = notify
        self._sent: dict[str, float] = {}

    def send(self, line: str) -> None:
        """Send a line in any case."""
        self._notify(f"{self._name}: {redact_error(line)}")

    def send_once(self, line: str, about: str = "") -> None:
        """Send a line unless this line, or another one with the same ``about``, was sent before."""
        if (about or line) not in self._sent:
            self._sent[about or line] = time.monotonic()
            self.send(line)

    def is_due(self, about: str) -> bool:
        """Return whether a notice about this may be sent now, and count it as sent if so."""
        now = time.monotonic()
        if now - self._sent.get(about, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return False
        self._sent[about] = now
        return True

    def was_sent(self, about: str) -> bool:
        """Return whether there was a notice about this."""
        return about in self._sent


class SinkHealth:
    """The state of one sink as its attempts show it.

    Args:
        on_failure: what happens next, for the notice about a failure.

    Attributes:
        is_failing: whether the last attempt failed.
        reason: the error of the last failed attempt, also after the sink recovered; "" if none has failed.
    """

    def __init__(self, notices: ThrottledNotices, on_failure: str = "trying again") -> None:
        self.is_failing = False
        self.reason = ""
        self._notices = notices
        self._on_failure = on_failure

    def fail(self, error: SinkError, *, is_retried: bool = True) -> None:
        """Note a failed attempt; send a notice about the first of several if it is retried."""
        self.reason = reason_of(error)
        was_failing, self.is_failing = self.is_failing, True
        if is_retried and not was_failing and self._notices.is_due("failure"):
            self._notices.send(f"{self.reason}; {self._on_failure}")

    def recover(self) -> None:
        """Note an attempt that succeeded; send a notice if there was one about the failure."""
        was_failing, self.is_failing = self.is_failing, False
        if was_failing and self._notices.was_sent("failure") and self._notices.is_due("recovery"):
            self._notices.send("takes events again")

    def refuse(self, outcome: AttemptOutcome, dead_letters: str) -> None:
        """Send notices about events that were refused for good.

        Args:
            dead_letters: what becomes of them, for the notice.
        """
        if outcome.dead:
            first = next(iter(outcome.dead.values()))
            self._notices.send_once(f"{first}; {dead_letters}", about="dead letters")
        if outcome.unnamed and outcome.error is not None:
            self._notices.send_once(
                f"{reason_of(outcome.error)}; it does not say which, so they are counted and not kept", about="unnamed"
            )
