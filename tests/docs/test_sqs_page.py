"""The pages about SQS and Kafka: their URLs open, and their options and limits are those of the code."""

import re

import pytest

from balog.topics import open_topics
from balog.topics.sqs.backend import _OPTIONS
from balog.topics.sqs.claim_check import MAX_BODY_BYTES
from balog.topics.sqs.topic import _REDRIVE_RATE
from tests.documentation import docs_page

HOW_TO = docs_page("sqs.md").read_text(encoding="utf-8")
PAGE = docs_page("sqs-topics.md").read_text(encoding="utf-8")
URLS = re.findall(r"^sqs:\S+$", HOW_TO, re.MULTILINE)


def test_the_page_has_urls() -> None:
    assert len(URLS) == 3


@pytest.mark.parametrize("url", URLS)
def test_each_url_opens(url: str) -> None:
    with open_topics(url) as home:
        assert url.startswith(home.url)


def test_the_options_are_those_that_there_are() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(_OPTIONS)


def test_the_limits_are_those_of_the_code() -> None:
    assert f"up to {MAX_BODY_BYTES >> 20} MiB" in PAGE
    assert f"at most {_REDRIVE_RATE:g} a second" in PAGE


def test_the_python_block_is_python() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", HOW_TO, re.DOTALL)
    compile(block, "docs/how-to/sqs.md", "exec")


def test_the_python_block_on_kafka_is_python() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", docs_page("kafka.md").read_text(encoding="utf-8"), re.DOTALL)
    compile(block, "docs/how-to/kafka.md", "exec")
