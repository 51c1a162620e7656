"""Topics on a real Kafka keep the contract, with one partition and with several."""

import os
import signal
from typing import ClassVar

import pytest

from balog.testing.contracts import TopicContract
from balog.testing.contracts.topic_fixtures import ids, messages, take
from balog.topics import Topic
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service


class TestKafkaTopicOfOnePartitionKeepsTheContract(TopicContract):
    keeps_ids: ClassVar[bool] = False
    idle_wait: ClassVar[float] = 1.0

    @pytest.fixture
    def url(self, kafka: KafkaServer) -> str:
        return kafka.url(partitions=1)


class TestKafkaTopicOfThreePartitionsKeepsTheContract(TopicContract):
    keeps_ids: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False
    idle_wait: ClassVar[float] = 1.0
    survives_fork: ClassVar[bool] = False  # it does, see below: the contract's test wants one order of all messages

    @pytest.fixture
    def url(self, kafka: KafkaServer) -> str:
        return kafka.url(partitions=3)

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_forked_children_publish_and_receive_while_their_parent_does(self, topic: Topic) -> None:
        topic.publish(messages(*(f"m{n}" for n in range(30))))
        assert len(take(topic, 30, "parent")) == 30
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    assert topic.publish(messages(f"child{number}")) == 1
                    assert {f"m{n}" for n in range(30)} <= set(ids(take(topic, 33, f"g{number}")))
                    topic.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        assert statuses == [0] * 3
        assert sorted(ids(take(topic, 3, "parent"))) == ["child0", "child1", "child2"]
