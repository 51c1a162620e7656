"""Read the settings in the URL of a Kafka cluster, and make those of each client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from balog.common.errors import ConfigError
from balog.common.secrets import Secret

# The guarantees depend on these.
_OURS = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "metadata.broker.list",
        "builtin.features",
        "debug",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.protocol",
        "log_level",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "request.required.acks",
        "transactional.id",
    }
)

SECRETS = frozenset(
    {
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    }
)

_SERVER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")

_COMMON: dict[str, Any] = {
    "client.id": "balog",
    "log_level": 0,  # librdkafka logs to stderr; its callbacks report errors
    "socket.keepalive.enable": True,
    "reconnect.backoff.max.ms": 3000,
}
_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 2,
    "message.timeout.ms": 30_000,
    "message.max.bytes": 100_000_000,  # the broker limits the size of messages
    "compression.type": "lz4",
    "partitioner": "murmur2_random",  # as Java's producers: a key has the same partition for all publishers
}
_CONSUMER: dict[str, Any] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,
    "queued.max.messages.kbytes": 16_384,
}
_MEMBER: dict[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 1000,
    "topic.metadata.refresh.interval.ms": 10_000,  # how soon a group's retry topic is found
}


class Settings(Struct, frozen=True):
    """Settings of the clients of one cluster. ``client`` may hold secrets, so the repr omits it.

    Each client gets all of the user's settings; librdkafka ignores those of another kind of client.

    ``partitions`` and ``replication`` are for created topics; -1 means the broker's defaults.
    """

    servers: str
    client: dict[str, str]
    partitions: int = -1
    replication: int = -1

    def __repr__(self) -> str:
        return f"Settings({self.servers!r}, {sorted(self.client)}, {self.partitions}, {self.replication})"

    def producer(self) -> dict[str, Any]:
        """Return the settings of a producer."""
        return {**_COMMON, **_PRODUCER, **self.client, "bootstrap.servers": self.servers}

    def consumer(self, group: str) -> dict[str, Any]:
        """Return the settings of a consumer that reads outside any group."""
        return {**_COMMON, **_CONSUMER, **self.client, "bootstrap.servers": self.servers, "group.id": group}

    def member(self, group: str) -> dict[str, Any]:
        """Return the settings of a group member."""
        return {**_MEMBER, **self.consumer(group)}

    def admin(self) -> dict[str, Any]:
        """Return the settings of an admin client."""
        return {**_COMMON, **self.client, "bootstrap.servers": self.servers}


def parse_settings(servers: str, options: Mapping[str, str]) -> Settings:
    """Parse the options of a URL.

    Args:
        servers: ``HOST:PORT,HOST:PORT``.
        options: librdkafka's settings by name; ``sasl.password.env`` and ``sasl.password.file`` name the environment
            variable or the file with a secret; ``partitions`` and ``replication`` are for created topics.

    Raises:
        ConfigError: invalid servers, an invalid option, or a secret in the URL itself.
    """
    where = f"kafka:{servers:.100}"
    for server in servers.split(","):
        if "@" in server:
            raise ConfigError(
                "kafka: no user in front of a server: expected sasl.username=… and sasl.password.env=NAME"
            )
        if not _SERVER.fullmatch(server):
            raise ConfigError(f"{where}: {server!r:.80} is not a server: expected HOST:PORT,HOST:PORT")
    client: dict[str, str] = {}
    numbers = {"partitions": -1, "replication": -1}
    for name, value in options.items():
        secret, dot, kind = name.rpartition(".")
        if name in numbers:
            numbers[name] = _count(where, name, value)
        elif name in _OURS:
            raise ConfigError(f"{where}: option {name} is not yours to set: balog's promises rest on it")
        elif name in SECRETS:
            raise ConfigError(f"{where}: {name} must not be in a URL: expected {name}.env=NAME or {name}.file=PATH")
        elif dot and secret in SECRETS and kind in ("env", "file"):
            client[secret] = Secret(**{kind: value}).reveal(name)
        else:
            client[name] = value
    return Settings(servers, client, **numbers)


def _count(where: str, name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 1 <= int(value) <= 10_000):
        raise ConfigError(f"{where}: {name}={value!r:.40} is no number from 1 to 10000")
    return int(value)
