"""Whether a sink takes events, and the notices when that changes."""

from __future__ import annotations

from balog.outbound.attempt import AttemptOutcome, reason_of
from balog.outbound.notices import ThrottledNotices
from balog.sinks.base import SinkError


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
