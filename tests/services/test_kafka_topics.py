"""Topics on a real Kafka keep the contract, with one partition and with several."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))

from topic_contract import TopicContract

from tests.services.servers.kafka import KafkaServer, running_kafka

pytestmark = pytest.mark.service


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


class TestKafkaTopicOfOnePartitionKeepsTheContract(TopicContract):
    idle: ClassVar[float] = 1.0

    @pytest.fixture
    def url(self, kafka: KafkaServer) -> str:
        return kafka.url(partitions=1)


class TestKafkaTopicOfThreePartitionsKeepsTheContract(TopicContract):
    idle: ClassVar[float] = 1.0

    @pytest.fixture
    def url(self, kafka: KafkaServer) -> str:
        return kafka.url(partitions=3)
