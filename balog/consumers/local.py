"""The engine on topics of this machine."""

from __future__ import annotations

import os
from typing import Any

from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.topics.local import LocalTopics


class LocalEngine(Engine):
    """An engine that receives from a folder of local topics and closes it when a run is over.

    Args:
        path: the folder.
        options: arguments of :class:`balog.consumers.Engine`.
    """

    owns_topics = True

    def __init__(
        self,
        hub: ConsumerHub,
        path: str | os.PathLike[str],
        consumer_operator: Operator | None = None,
        group: str = "balog",
        **options: Any,
    ) -> None:
        super().__init__(hub, LocalTopics(path), consumer_operator, group, **options)
