"""One run of a tap: its streams one after another, errors collected, interrupted and resumed."""

from balog.tap.syncing.sync import Sync

__all__ = ["Sync"]
