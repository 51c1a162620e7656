"""One run of a tap: streams one after another, errors collected, interrupted and resumed."""

from balog.tap.syncing.interrupts import Interrupted, Stop
from balog.tap.syncing.session import Observer, SyncStats, report_failures
from balog.tap.syncing.sync import Sync

__all__ = ["Interrupted", "Observer", "Stop", "Sync", "SyncStats", "report_failures"]
