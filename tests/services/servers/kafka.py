"""A real Kafka from Maven Central's jars: one node, broker and controller (KRaft), on loopback. Needs java (17)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.servers.process import (
    CACHE,
    LOG4J_TO_CONSOLE,
    FolderServer,
    accepts,
    fetch_jars,
    free_port,
    java,
    running,
)

VERSION = "4.1.0"
_HOME = CACHE / f"kafka-{VERSION}"
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


class KafkaServer(FolderServer):
    """Stops and starts again on the same ports with the same logs.

    Args:
        users: passwords by name, where clients must log in (SASL/PLAIN) and may do only what ACLs allow. ``admin`` may
            do everything. None: everyone may.
    """

    def __init__(self, folder: Path, java: str, users: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self._users = users
        self.servers = f"127.0.0.1:{self.port}"
        self._controller = free_port()
        self._java = java

    def url(self, **options: object) -> str:
        """Give the URL of its topics, with options."""
        return f"kafka:{self.servers}?{'&'.join(f'{name}={value}' for name, value in options.items())}".rstrip("?")

    def up(self) -> None:
        config = self.folder / "server.properties"
        if not config.exists():
            (self.folder / "log4j2.properties").write_text(LOG4J_TO_CONSOLE)
            config.write_text(self._properties())
            self._tool("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(config))
        command = [*self._command("-Xmx512m"), "kafka.Kafka", str(config)]
        self.start(command, self.folder, lambda: accepts(self.port), seconds=120)

    def _properties(self) -> str:
        protocol = "PLAINTEXT" if self._users is None else "SASL_PLAINTEXT"
        listeners = f"{protocol}://{self.servers},CONTROLLER://127.0.0.1:{self._controller}"
        return ("" if self._users is None else self._security(self._users)) + (
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{self._controller}\n"
            f"listeners={listeners}\nadvertised.listeners={protocol}://{self.servers}\n"
            "controller.listener.names=CONTROLLER\n"
            f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}\n"
            f"log.dirs={self.folder / 'logs'}\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            "group.initial.rebalance.delay.ms=0\ngroup.min.session.timeout.ms=1000\n"
        )

    def _security(self, users: Mapping[str, str]) -> str:
        known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        login = f'username="admin" password="{users["admin"]}" {known}'
        return (
            "sasl.enabled.mechanisms=PLAIN\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
            "security.inter.broker.protocol=SASL_PLAINTEXT\n"
            "listener.name.sasl_plaintext.plain.sasl.jaas.config="
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};\n"
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
            "super.users=User:admin;User:ANONYMOUS\nallow.everyone.if.no.acl.found=false\n"
        )

    def _command(self, heap: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [self._java, heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logging, "-cp", f"{_HOME}/*"]

    def _tool(self, name: str, *arguments: str) -> None:
        command = [*self._command("-Xmx256m"), name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def running_kafka(folder: Path, users: Mapping[str, str] | None = None) -> Iterator[KafkaServer]:
    """Run one; skips where it can't be had."""
    server = KafkaServer(folder, java("Kafka"), users)
    pytest.importorskip("confluent_kafka")
    fetch_jars(_HOME, [f"org.apache.kafka:kafka_2.13:{VERSION}"], "Kafka")
    with running(server):
        yield server
