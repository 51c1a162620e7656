"""What the page on the durable path says is so."""

import re

import msgspec

from balog.delivery.durable import drain, topic_writer
from balog.delivery.durable.fallback import GROUP, Fallback
from balog.delivery.durable.recent_ids import RecentIds
from balog.delivery.durable.router import FAILED_EVENTS_TOPIC, UNTYPED_TOPIC, topic_for_type
from balog.delivery.settings import ServiceConfig
from balog.topics.memory import MemoryTopics
from tests.documentation import docs_page

PAGE = docs_page("durable.md").read_text(encoding="utf-8")


def test_its_config_is_one() -> None:
    (found,) = re.findall(r"```json serve.json\n(.*?)```", PAGE, re.DOTALL)
    assert msgspec.json.decode(found, type=ServiceConfig).fallback


def test_its_numbers_and_names_are_those_of_the_code() -> None:
    assert f"does not answer for {topic_writer.TIMEOUT:g} seconds" in PAGE
    limits = f"after at most {topic_writer._FIRST_RETRY} seconds, later at most {topic_writer._LONGEST_RETRY:g} seconds"
    assert limits in PAGE
    assert f"after at most {drain._LEASE:g} seconds" in PAGE
    assert f"the last {RecentIds()._half:,} are known" in PAGE
    assert f"`{Fallback(MemoryTopics()).topic('TOPIC').name}`" in PAGE
    assert f"group `{GROUP}`" in PAGE
    assert f"go to `{UNTYPED_TOPIC}`" in PAGE
    assert f"`{FAILED_EVENTS_TOPIC}`" in PAGE
    assert topic_for_type("x" * 70) == "x" * 70
    assert topic_for_type("x" * 71) != "x" * 71
