"""A publisher whose cluster can't be reached, or does not let it in: everybody gets an answer, and another try."""

import threading
import time

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException

from balog.common.errors import TopicError
from balog.topics.kafka import clients as kafka_clients
from balog.topics.kafka.clients import Clients
from balog.topics.kafka.publisher import Publisher
from balog.topics.kafka.records import OutgoingRecord
from balog.topics.kafka.settings import parse_settings
from tests.services.servers.process import free_port

DENIED = KafkaError(KafkaError._AUTHENTICATION)


def nobody(timeout: int = 1500) -> Clients:
    """Clients of a cluster that is not there."""
    return Clients(parse_settings(f"127.0.0.1:{free_port()}", {"message.timeout.ms": str(timeout)}))


def send(publisher: Publisher) -> TopicError:
    with pytest.raises(TopicError) as caught:
        publisher.send("t", [OutgoingRecord(b"", None, [], "m1")], "topic t")
    return caught.value


def test_who_sends_while_it_is_closed_still_gets_an_answer() -> None:
    publisher = nobody().publisher
    answers: list[TopicError] = []
    sending = threading.Thread(target=lambda: answers.append(send(publisher)), daemon=True)
    sending.start()
    while not publisher._sending:
        pass
    publisher.close()
    sending.join(30)
    assert [answer.retryable for answer in answers] == [True]
    assert "closed while it was published to" in str(send(publisher))


def test_who_was_denied_once_is_asked_again_by_another_producer() -> None:
    clients = nobody()
    first = clients.publisher
    first._on_error(DENIED)
    assert not send(first).retryable
    second = clients.publisher
    assert second is not first
    error = send(second)
    assert error.retryable
    assert "can't be reached" in str(error)
    clients.close()


def test_a_denial_is_forgotten_when_the_cluster_answers() -> None:
    clients = nobody()
    clients._on_error(DENIED)
    away = KafkaException(KafkaError(KafkaError._TRANSPORT))
    assert not clients.explain(away, "here").retryable
    assert clients.ask("here", lambda: 1) == 1
    assert clients.explain(away, "here").retryable


def test_a_question_without_an_answer_says_so_before_it_gives_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_clients, "_QUIET_SECONDS", 0.05)
    clients = nobody()
    assert clients.ask("topic a", lambda: 1) == 1
    assert clients.ask("topic b", lambda: time.sleep(0.5) or 2) == 2
    assert [record.getMessage() for record in caplog.records] == ["topic b: no answer yet; giving up after 15 s"]
