"""The benchmarks of the engine on real servers run, and print their ratio; the servers are those of other tests."""

import re

import pytest
from click.testing import CliRunner

from tests.services.servers.elasticmq import SqsServer
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service

RATIO = re.compile(r"^ratio: \d+\.\d\d × the bare loop's speed", re.MULTILINE)


def test_a_quick_run_on_sqs_prints_the_ratio(elasticmq: SqsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import acting_sqs

    elasticmq.environment(monkeypatch)
    done = CliRunner().invoke(acting_sqs.main, ["--quick", "--endpoint", elasticmq.endpoint], catch_exceptions=False)
    assert RATIO.search(done.output)


def test_a_quick_run_on_kafka_prints_the_ratio(kafka: KafkaServer) -> None:
    from benchmarks import acting_kafka

    done = CliRunner().invoke(acting_kafka.main, ["--quick", "--servers", kafka.servers], catch_exceptions=False)
    assert RATIO.search(done.output)
