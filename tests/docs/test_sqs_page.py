"""The pages about SQS and Kafka: their URLs open, and their options and limits are those of the code."""

import re

import pytest

from balog.topics import open_topics
from balog.topics.sqs.backend import _OPTIONS
from tests.documentation import blocks, page_text

URLS = re.findall(r"^sqs:\S+$", page_text("sqs"), re.MULTILINE)


def test_each_url_opens() -> None:
    assert len(URLS) == 3
    for url in URLS:
        with open_topics(url) as home:
            assert url.startswith(home.url)


def test_the_options_are_those_that_there_are() -> None:
    assert re.findall(r"^\| `(\w+)` \|", page_text("sqs-topics"), re.MULTILINE) == list(_OPTIONS)


@pytest.mark.parametrize("page", ["sqs", "kafka"])
def test_the_python_block_is_python(page: str) -> None:
    (block,) = [block for block in blocks(page_text(page)) if block.language == "python"]
    compile(block.text, page, "exec")
