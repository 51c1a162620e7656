"""Importing the room of consumers brings nothing that a handler's module does not need."""

import subprocess
import sys

HEAVY = (
    "redis",
    "prometheus_client",
    "boto3",
    "confluent_kafka",
    "sqlglot",
    "urllib3",
    "http.server",
    "semantic_version",
)


def test_the_room_of_consumers_is_light() -> None:
    program = f"import sys, balog.consumers; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
