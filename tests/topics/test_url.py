"""Homes of topics by URL: what is refused, and what each kind gets of its options."""

import sys

import pytest

from balog.common.errors import ConfigError, MissingExtraError
from balog.topics import open_topics
from balog.topics.sqs import SqsFifoTopic, SqsTopics


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqs:", "names no place: expected sqs:REGION"),
        ("sqs:?create=no", "names no place"),
        ("kafka:", "names no place: expected kafka:HOST:PORT"),
        ("sqs:eu-central-1?endpoint", "has no value"),
        ("sqs:eu-central-1?create=", "expected yes or no"),
        ("sqs:eu-central-1?create=no&create=yes", "'create' is there twice"),
        ("sqs:eu-central-1?creat=no", "no option 'creat'; there are endpoint, claim_check, s3_endpoint, create"),
        ("sqs:eu-central-1?endpoint=localhost:4566", "endpoint: is not a URL"),
        ("sqs:eu-central-1?endpoint=http://host:99999", "endpoint: is not a URL"),
        ("sqs:eu-central-1?s3_endpoint=ftp://host", "s3_endpoint: is not a URL"),
        ("sqs:eu-central-1?claim_check=bucket", "expected s3://BUCKET/PREFIX|is not s3://BUCKET/PREFIX"),
        ("sqs:eu-central-1?claim_check=s3://", "is not s3://BUCKET/PREFIX"),
        ("sqs:Frankfurt", "'Frankfurt' is not an AWS region"),
        ("sqs:eu central", "is not an AWS region"),
        ("nats:host", "no topics of kind 'nats'"),
    ],
)
def test_a_url_that_can_not_be_is_refused_in_one_line(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        open_topics(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "sqs:eu-central-1?aws_secret_access_key=hunter2",
        "sqs:eu-central-1?aws_access_key_id=hunter2",
        "sqs:eu-central-1?session_token=hunter2",
        "sqs:eu-central-1?endpoint=https://me:hunter2@host",
        "sqs:eu-central-1?claim_check=s3://me:hunter2@bucket",
        "sqs:eu-central-1?hunter",
        "sqs:eu-central-1?create=hunter&create=hunter",
        "nats:host?password=hunter2",
        "nats:me:hunter2@host",
        "sqs:me:hunter2@eu-central-1",
        "kafka:me:hunter2@host:9092",
        "kafka:me:hunter2@host:9092?a",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_said_again(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_topics(url)
    assert "hunter2" not in str(caught.value)


def test_an_sqs_url_opens_queues_without_asking_anybody() -> None:
    with open_topics(
        "sqs:eu-central-1?endpoint=http%3A%2F%2F127.0.0.1%3A9&claim_check=s3://bucket/a/b&create=no"
    ) as home:
        assert isinstance(home, SqsTopics)
        assert home.url == "sqs:eu-central-1?endpoint=http://127.0.0.1:9"
        assert home.topic("orders") is home.topic("orders")
        assert isinstance(home.topic("orders.fifo"), SqsFifoTopic)


def test_without_boto3_opening_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingExtraError, match=r"\[aws\]'"):
        open_topics("sqs:eu-central-1")
