"""A sink of a worker or a consumer: opened when it is first needed, and asked again after each failure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from balog.common.backoff import BackoffSequence
from balog.common.errors import ConfigError, MissingExtraError
from balog.delivery.attempt import AttemptOutcome, as_sink_error, attempt
from balog.delivery.notices import SinkHealth
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError

NEVER = float("inf")


class SinkConnection:
    """A sink and whether it is open. One thread uses it.

    Raises:
        ConfigError: the sink can't be built.

    Attributes:
        sink: the sink.
        is_open: whether it is open.
        is_opening: whether the sink is being opened while no event waits for it.
        open_at: when to try to open it again, by the monotonic clock; ``NEVER`` if it is open or that can't help.
        asked_at: when the attempt under way began, by the monotonic clock; None if there is none.
    """

    def __init__(self, config: SinkConfig, health: SinkHealth) -> None:
        self.sink: Sink = config.build()
        self._health = health
        self._delays = BackoffSequence(config.retry.backoff())
        self.is_open = False
        self.is_opening = True
        self.open_at = 0.0
        self.asked_at: float | None = None

    def open_early(self) -> None:
        """Open the sink before an event waits for it, so that it can be scraped and continue an earlier run's work."""
        self.is_opening = True
        error = self._try_open()
        self.is_opening = False
        if error is None:
            self._health.recover()
            return
        self.open_at = time.monotonic() + self._delays.next() if error.retryable else NEVER
        self._health.fail(error)

    def deliver(self, batch: Sequence[Delivery]) -> AttemptOutcome:
        """Open the sink if it is not open, and make one attempt to deliver a batch."""
        self.asked_at = time.monotonic()
        error = self._try_open()
        if error is None:
            outcome = attempt(self.sink.write, batch)
        elif error.retryable:
            outcome = AttemptOutcome(0, {}, list(range(len(batch))), error)
        else:
            outcome = AttemptOutcome(0, dict.fromkeys(range(len(batch)), str(error)), [], error)
        self.asked_at = None
        return outcome

    def open(self) -> None:
        """Open the sink unless it is open.

        Raises:
            SinkError: it could not be opened.
            ConfigError, MissingExtraError: as the sink raised them.
        """
        if not self.is_open:
            try:
                self.sink.open()
            except (ConfigError, MissingExtraError):
                raise
            except Exception as error:
                raise as_sink_error(error) from None
            self.is_open = True
            self.open_at = NEVER

    def _try_open(self) -> SinkError | None:
        try:
            self.open()
        except Exception as error:
            return as_sink_error(error)
        return None
