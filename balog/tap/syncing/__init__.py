"""One run of a tap: its streams one after another, errors collected, interrupted and resumed."""

from balog.tap.syncing.failing import say_failures
from balog.tap.syncing.interrupting import Interrupted, Stop
from balog.tap.syncing.observing import Counts, Observer
from balog.tap.syncing.sync import Sync

__all__ = ["Counts", "Interrupted", "Observer", "Stop", "Sync", "say_failures"]
