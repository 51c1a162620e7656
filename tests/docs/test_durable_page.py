"""What the pages on the durable path say is so."""

import re
import socket
from pathlib import Path

from balog.service.intake import drain, topic_writer
from balog.service.intake.fallback import GROUP, Fallback
from balog.service.intake.recent_ids import RecentIds
from balog.service.intake.router import FAILED_EVENTS_TOPIC, UNTYPED_TOPIC, topic_for_type
from balog.topics.memory import MemoryTopics
from tests.documentation import blocks, docs_page, matches, paste

PAGE = docs_page("durability.md").read_text(encoding="utf-8")


def test_an_outage_is_what_the_how_to_shows(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = f":{free.getsockname()[1]}"
    page = blocks(docs_page("durable.md").read_text(encoding="utf-8").replace(":8081", port))
    printed = paste(page, tmp_path)
    shown = [block.text for block in page if block.language == "text"]
    for text, (block, output) in zip(shown, printed.items(), strict=True):
        assert matches(text, re.sub(r"^ +", "", output, flags=re.MULTILINE)), f"{block}:\n{output}"


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
