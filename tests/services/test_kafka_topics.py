"""Topics on a real Kafka keep the contract, with one partition and with several."""

from typing import ClassVar

import pytest
from confluent_kafka import Producer

from balog.consumers import Consumer, ConsumerHub, Engine
from balog.event import Event, encode
from balog.testing.contracts import TopicContract
from balog.testing.contracts.topic_fixtures import ids, messages, take
from balog.testing.contracts.topic_leases import LeaseContract
from balog.testing.contracts.topic_messages import MessageContract, StateContract
from balog.topics import Message, Topic, open_topics
from tests.forks import exit_code, forked
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service


class TestKafkaTopicOfOnePartitionKeepsItsOrder(MessageContract, LeaseContract, StateContract):
    """Dead letters, engines and processes are the same as with three partitions."""

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

        def work(number: int) -> None:
            assert topic.publish(messages(f"child{number}")) == 1
            assert {f"m{n}" for n in range(30)} <= set(ids(take(topic, 33, f"g{number}")))
            topic.close()

        assert [exit_code(child) for child in [forked(work, number) for number in range(3)]] == [0] * 3
        assert sorted(ids(take(topic, 3, "parent"))) == ["child0", "child1", "child2"]


class TestOtherProducers:
    """What programs without balog leave in a topic."""

    @pytest.fixture
    def transactions(self, kafka: KafkaServer) -> Producer:
        producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": "other"})
        producer.init_transactions(30)
        return producer

    def test_the_newest_are_those_before_aborted_transactions(self, kafka: KafkaServer, transactions: Producer) -> None:
        with open_topics(kafka.url(partitions=1)) as topics:
            topic = topics.topic("aborted")
            topic.publish(messages("a", "b", "c"))
            for _ in range(3):
                transactions.begin_transaction()
                for number in range(20):
                    transactions.produce("aborted", f"{number}")
                transactions.flush()
                transactions.abort_transaction()
            assert ids(topic.peek(2, newest=True)) == ["b", "c"]
            assert ids(topic.peek(10, newest=True)) == ["a", "b", "c"]

    def test_an_open_transaction_ends_what_can_be_read(self, kafka: KafkaServer, transactions: Producer) -> None:
        with open_topics(kafka.url(partitions=1)) as topics:
            topic = topics.topic("pending")
            topic.publish(messages("a", "b"))
            transactions.begin_transaction()
            transactions.produce("pending", "c")
            transactions.flush()
            assert ids(topic.peek(5)) == ["a", "b"]
            transactions.commit_transaction()
            assert len(topic.peek(5)) == 3

    def test_a_message_without_a_value_is_skipped_and_counted(self, kafka: KafkaServer) -> None:
        producer, handled = Producer({"bootstrap.servers": kafka.servers}), []
        event = Event.new("tests", {"cls_type": "x"})
        with open_topics(kafka.url(partitions=1)) as topics:
            topics.topic("compacted").publish([Message("a", encode(event))])
            producer.produce("compacted", None, key="a")
            producer.flush()
            hub = ConsumerHub()
            hub.add(Consumer(lambda settings, event: handled.append(event.header.id), "compacted", name="c"))
            counts = Engine(hub, topics).run(until_empty=True)
        assert (handled, counts.dead, counts.unwanted_types) == ([event.header.id], 0, {"tombstone": 1})
