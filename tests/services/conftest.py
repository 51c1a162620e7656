"""Servers that several modules share: starting one takes seconds, and every test has topics of its own on it."""

from collections.abc import Iterator

import pytest

from tests.services.servers.elasticmq import SqsServer, running_sqs
from tests.services.servers.kafka import KafkaServer, running_kafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def elasticmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsServer]:
    with running_sqs(tmp_path_factory.mktemp("elasticmq")) as server:
        yield server
