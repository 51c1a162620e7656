"""A real Kafka from Maven Central's jars: one node, broker and controller (KRaft), on loopback. Needs java (17)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.servers.process import CACHE, ServerProcess, accepts, fetch, free_port, java

VERSION = "4.1.0"
_HOME = CACHE / f"kafka-{VERSION}"
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>balog</groupId><artifactId>kafka</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_LOGGING = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


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
            (self.folder / "log4j2.properties").write_text(_LOGGING)
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
    _fetch()
    try:
        server.up()
        yield server
    finally:
        server.stop()


def _fetch() -> None:
    if _HOME.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        jars = Path(scratch) / "jars"
        (Path(scratch) / "pom.xml").write_text(_POM)
        options = ("-f", f"{scratch}/pom.xml", f"-DoutputDirectory={jars}", "-DincludeScope=runtime")
        fetch("copy-dependencies", *options, for_whom="Kafka")
        jars.rename(_HOME)
