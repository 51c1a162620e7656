"""The end of a program whose Kafka is dead: it does not wait for the cluster, and keeps what it has a spool for."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from tests.services.servers.process import free_port

BEGIN = """
import sys
import balog, balog.common.ending
from balog.topics.kafka import clients, topic
balog.common.ending.SECONDS = 0.7  # and a cluster whose answers take much longer than a test may
clients.REQUEST_TIMEOUT = 3600.0
"""
KNOWN = "topic.KafkaTopic._count_partitions = lambda self: 1\n"
LOG = """
balog.configure(output=sys.argv[1])
balog.get_logger("a.b").info("hello from the past")
"""
SPOOL = """
from balog.event import Event, encode
from balog.delivery.spool import SpoolConfig
from balog.log.outputs.queued import QueuedOutput
from balog.sinks.topic import TopicSinkConfig
output = QueuedOutput(TopicSinkConfig(url=sys.argv[1], topic="x"), SpoolConfig(path=sys.argv[2]))
output.write("INFO", encode(Event.new("a.b", {"message": "hello from the past"})))
output.close(balog.common.ending.seconds_left())
"""


def end(code: str, *args: str) -> str:
    """Run a program, and return what it said; one that waits for its cluster outlives the time."""
    done = subprocess.run([sys.executable, "-c", BEGIN + code, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("known", ["", KNOWN], ids=["asks for the topic", "publishes"])
def test_a_program_ends_without_an_answer_of_its_cluster(known: str) -> None:
    cluster = f"kafka:127.0.0.1:{free_port()}"
    said = end(known + LOG, f"{cluster}?topic=x&message.timeout.ms=3600000")
    assert f"topic {cluster}#x: no answer for " in said
    assert f"topic {cluster}#x: 1 event was not delivered" in said


@pytest.mark.parametrize("known", ["", KNOWN], ids=["asks for the topic", "publishes"])
def test_with_a_spool_its_events_are_on_disk_then(known: str, tmp_path: Path) -> None:
    said = end(known + SPOOL, f"kafka:127.0.0.1:{free_port()}?message.timeout.ms=3600000", str(tmp_path))
    assert "not delivered" not in said
    assert b"hello from the past" in b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
