"""A real Kafka from Maven Central's jars: one node, broker and controller (KRaft), on loopback. Needs java (17)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.servers.process import (
    CACHE,
    LOG4J_TO_CONSOLE,
    ServerProcess,
    accepts,
    fetch_jars,
    free_port,
    java,
    running,
)

VERSION = "4.1.0"
_HOME = CACHE / f"kafka-{VERSION}"
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


class KafkaServer(ServerProcess):
    """Stops and starts again on the same ports with the same logs."""

    def __init__(self, folder: Path, java: str) -> None:
        super().__init__()
        self.folder = folder
        self.port = free_port()
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
        listeners = f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{self._controller}"
        return (
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{self._controller}\n"
            f"listeners={listeners}\nadvertised.listeners=PLAINTEXT://{self.servers}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.dirs={self.folder / 'logs'}\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            "group.initial.rebalance.delay.ms=0\ngroup.min.session.timeout.ms=1000\n"
        )

    def _command(self, heap: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [self._java, heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logging, "-cp", f"{_HOME}/*"]

    def _tool(self, name: str, *arguments: str) -> None:
        command = [*self._command("-Xmx256m"), name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def running_kafka(folder: Path) -> Iterator[KafkaServer]:
    """Run one; skips where it can't be had."""
    server = KafkaServer(folder, java("Kafka"))
    pytest.importorskip("confluent_kafka")
    fetch_jars(_HOME, [f"org.apache.kafka:kafka_2.13:{VERSION}"], "Kafka")
    with running(server):
        yield server
