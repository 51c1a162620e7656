"""Sinks that collect events instead of delivering them, for dry runs and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from balog.broker.config import BrokerConfig
from balog.sinks import Delivery, SinkConfig


def offline(config: BrokerConfig, quarantine: str | None = None) -> BrokerConfig:
    """Return the config without spool and state, and with its quarantine, if any, in another file."""
    changes: dict[str, Any] = {"spool": None, "metrics": None, "state": None}
    if config.quarantine is not None and quarantine is not None:
        changes["quarantine"] = msgspec.structs.replace(config.quarantine, path=quarantine)
    return msgspec.structs.replace(config, **changes)


class Diverted:
    """A sink's config with its name, filters and batches, whose events go to a callable.

    Args:
        config: the sink that it replaces, which is not built and needs no secrets.
        take: called with each batch, by the sink's own thread.
    """

    def __init__(self, config: SinkConfig, take: Callable[[Sequence[Delivery]], None]) -> None:
        self.name = config.name
        self.where, self.batch, self.retry = config.where, config.batch, config.retry
        self.takes = getattr(config, "takes", None)  # a sink for metrics skips other events
        self.write = take

    def build(self) -> Diverted:
        """Return the sink, this object."""
        return self

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
