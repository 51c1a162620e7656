"""The engine on topics of this machine."""

from __future__ import annotations

import os
from typing import Any

from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.consumers.stats import EngineStats
from balog.topics.local import LocalTopics

__all__ = ["LocalEngine"]


class LocalEngine(Engine):
    """An engine that receives from a folder of local topics and closes it when a run is over.

    Args:
        path: the folder.
        options: arguments of :class:`balog.consumers.Engine`.
    """

    def __init__(
        self,
        hub: ConsumerHub,
        path: str | os.PathLike[str],
        consumer_operator: Operator | None = None,
        group: str = "balog",
        **options: Any,
    ) -> None:
        super().__init__(hub, LocalTopics(path), consumer_operator, group, **options)

    def run(self, until_empty: bool = False) -> EngineStats:
        """Handle events until stopped, or until nothing is left."""
        with self.topics:
            return super().run(until_empty)
