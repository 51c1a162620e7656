"""The job of a callback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from balog.common.http.addresses import ANYWHERE, Networks
from balog.consumers.ledgers.factory import NoLedger
from balog.delivery.notices import ThrottledNotices
from balog.service.document import Callback
from balog.service.jobs import JobStatus
from balog.service.jobs.callbacks.consumer import CallbackConsumer
from balog.service.jobs.callbacks.endpoint import Endpoint, check_callback
from balog.service.jobs.engine_job import EngineJob

LEASE = 30.0
"""Seconds that messages stay with a callback whose process died; leases are extended while it lives."""


class CallbackJob(EngineJob):
    """Runs a callback, see ``EngineJob``. It can be started once.

    It has its own engine, with its own group, threads and connections, so that a dead endpoint slows no other callback.

    Args:
        config: the callback.
        home_url: the backend of the topics.
        say: called with one line for the operator: errors, recovery and dead letters.
        networks: private networks that a callback with ``private`` may call.

    Raises:
        ConfigError: an invalid config; ``where`` is checked when the job starts.
    """

    def __init__(
        self,
        config: Callback,
        home_url: str,
        say: Callable[[str], None],
        networks: Networks = ANYWHERE,
    ) -> None:
        check_callback(config)
        super().__init__("callback", config.name, home_url, say, lease=LEASE)
        self.consumer: CallbackConsumer | None = None
        self._networks = networks
        self._config = config
        self._notices = ThrottledNotices(f"callback {config.name}", say)
        self._failed = 0

    def consumers(self) -> Sequence[CallbackConsumer]:
        """Return the consumer of its topic."""
        endpoint = Endpoint(self._config, self._networks)
        if self.consumer is not None:
            self._failed += self.consumer.failed
        self.consumer = CallbackConsumer(self._config, self.group, endpoint, self._notices)
        return [self.consumer]

    def engine_options(self, consumers: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of the engine: its consumer decides about attempts and messages in flight."""
        (consumer,) = consumers
        return {
            "concurrency": self._config.concurrency,
            "batch": consumer.window,
            "max_attempts": sys.maxsize,
            "ledger": NoLedger(),
            "hooks": [consumer],
            "admission": consumer.room,
        }

    def status(self) -> JobStatus:
        """Return the job's status, see ``EngineJob``."""
        status = super().status()
        if self.consumer is None:
            return status
        return replace(status, failed=self._failed + self.consumer.failed)
