"""The engines, under the name that they had in the first balog: ``balog.engines.KafkaEngine``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.consumers.engine import Engine
    from balog.consumers.kafka import KafkaEngine
    from balog.consumers.local import LocalEngine
    from balog.consumers.sqs import SQSEngine

__all__ = ["Engine", "KafkaEngine", "LocalEngine", "SQSEngine"]

__getattr__ = deferred(
    globals(),
    {
        "Engine": "balog.consumers.engine",
        "KafkaEngine": "balog.consumers.kafka",
        "LocalEngine": "balog.consumers.local",
        "SQSEngine": "balog.consumers.sqs",
    },
)
