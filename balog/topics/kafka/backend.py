"""A Kafka cluster as a backend."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from balog.topics.base import Topics, check_name
from balog.topics.kafka.clients import Clients, check_settings
from balog.topics.kafka.settings import parse_settings
from balog.topics.kafka.topic import DEAD, RETRY, KafkaTopic
from balog.topics.url import split_url


class KafkaTopics(Topics):
    """The topics of a cluster. It is contacted when a topic is first used.

    Args:
        servers: the first servers to contact, ``HOST:PORT,HOST:PORT``.
        options: librdkafka's settings by name, and those of docs/reference/kafka-topics.md.

    Raises:
        ConfigError: invalid servers or options, or a missing secret.
    """

    def __init__(self, servers: str, options: Mapping[str, str] | None = None) -> None:
        settings = parse_settings(servers, options or {})
        check_settings(settings)
        self.url = f"kafka:{servers}"
        self._clients = Clients(settings)
        self._lock = threading.Lock()
        self._topics: dict[str, KafkaTopic] = {}

    def topic(self, name: str) -> KafkaTopic:
        """Return the topic of that name; the same object each time."""
        check_name("topic", name)
        with self._lock:
            if name not in self._topics:
                self._topics[name] = KafkaTopic(name, self._clients, self.url)
            return self._topics[name]

    def names(self) -> list[str]:
        """List the topics that exist, sorted; without internal ones, and without dead letters and retries of groups."""
        topics = self._clients.topics(self.url)
        return sorted(name for name in topics if not name.startswith("__") and not name.endswith((DEAD, RETRY)))

    def close(self) -> None:
        """Leave all groups and close all connections; a later use opens them again."""
        self._clients.close()


def open_kafka(url: str) -> KafkaTopics:
    """Open a URL ``kafka:HOST:PORT,HOST:PORT?name=value``.

    Raises:
        ConfigError: as of ``KafkaTopics``.
    """
    return KafkaTopics(*split_url(url, "kafka:HOST:PORT"))
