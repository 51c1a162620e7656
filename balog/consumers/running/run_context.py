"""What the parts of an engine's run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from balog.common.backoff import Backoff
from balog.consumers.hooks import HookCalls
from balog.consumers.ledgers.ledger import Ledger
from balog.consumers.queueing.scheduling import Schedule
from balog.consumers.running.failure_log import FailureLog
from balog.consumers.running.settings import EngineSettings

PAUSES = Backoff(1.0, 60.0)
"""Seconds between tries while a topic or the ledger is out of reach."""


@dataclass(frozen=True)
class RunContext:
    """What pollers, callers and settlers share.

    Attributes:
        is_patient: wait while a topic or the ledger is unreachable; otherwise that ends the run.
        fail: ends the run with an error that no event caused.
        wake_main: wakes the main loop.
    """

    settings: EngineSettings
    schedule: Schedule
    ledger: Ledger
    hooks: HookCalls
    failure_log: FailureLog
    is_patient: bool
    fail: Callable[[BaseException], None]
    wake_main: Callable[[], object]
