"""The engine on the topics of a Kafka cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from balog.common.errors import ConfigError
from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.event import Event
from balog.topics.kafka import KafkaTopics


class KafkaEngine(Engine):
    """An engine that receives from Kafka as members of a consumer group, which it leaves when a run is over.

    Args:
        kafka_server: where to begin, ``HOST:PORT,HOST:PORT`` or a list of ``HOST:PORT``.
        topic: accepted for programs of the first balog, and without effect as it was there: the engine reads the topics
            that its consumers name.
        kafka_options: librdkafka's settings by name, and those of docs/reference/kafka-topics.md. A secret is not among
            them: ``sasl.password.env`` names the environment variable that holds it.
        options: arguments of :class:`balog.consumers.Engine`.

    Raises:
        ConfigError: servers or options that can't be.
    """

    owns_topics = True

    def __init__(
        self,
        hub: ConsumerHub,
        kafka_server: str | Sequence[str],
        group: str = "balog",
        topic: str | None = None,
        consumer_operator: Operator | None = None,
        default_event_handler: Callable[[Event], object] | None = None,
        *,
        kafka_options: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if not (topic is None or isinstance(topic, str)):
            raise ConfigError(f"topic {topic!r:.60} is not a name; pass an operator as consumer_operator=…")
        servers = kafka_server if isinstance(kafka_server, str) else ",".join(kafka_server)
        super().__init__(
            hub,
            KafkaTopics(servers, kafka_options),
            consumer_operator,
            group,
            default_event_handler=default_event_handler,
            **options,
        )
