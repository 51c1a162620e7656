"""The engine on the topics of a Kafka cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.topics.kafka import KafkaTopics

__all__ = ["KafkaEngine"]


class KafkaEngine(Engine):
    """An engine that receives from Kafka as members of a consumer group, which it leaves when a run is over.

    Args:
        kafka_server: where to begin, ``HOST:PORT,HOST:PORT``.
        kafka_options: librdkafka's settings by name, and those of docs/kafka.md. A secret is not among them:
            ``sasl.password.env`` names the environment variable that holds it.
        options: arguments of :class:`balog.consumers.Engine`.

    Raises:
        ConfigError: servers or options that can't be.
    """

    owns_topics = True

    def __init__(
        self,
        hub: ConsumerHub,
        kafka_server: str,
        group: str = "balog",
        consumer_operator: Operator | None = None,
        *,
        kafka_options: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(hub, KafkaTopics(kafka_server, kafka_options), consumer_operator, group, **options)
