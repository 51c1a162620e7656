"""The configs on the pages about sinks and brokers are taken as they stand, and the cases there hold."""

import json
import re

import msgspec
import pytest

from balog.broker.config import BrokerConfig
from balog.cli import COMMANDS
from balog.sinks import AnySinkConfig
from tests.documentation import DOCS, docs_page, run_task

BLOCK = re.compile(r"^```json *(\S*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SINKS = [text for _, text in BLOCK.findall(docs_page("sinks.md").read_text(encoding="utf-8"))]
TYPES = set(AnySinkConfig.known_tags())


@pytest.mark.parametrize("text", SINKS)
def test_a_sink_on_the_page_is_an_example_of_its_class(text):
    document = json.loads(text)
    assert document in AnySinkConfig.struct_of(document["type"]).examples


def test_every_sink_is_on_the_page_with_a_config():
    assert {json.loads(text)["type"] for text in SINKS} == TYPES


def test_every_part_of_a_broker_s_config_is_on_the_page():
    page = docs_page("broker.md").read_text(encoding="utf-8")
    parts = {field.name for field in msgspec.structs.fields(BrokerConfig)}
    rows = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == parts


def test_the_cases_hold(tmp_path):
    run_task("test-a-broker.md", tmp_path)


def test_events_are_forwarded(tmp_path):
    run_task("forward.md", tmp_path)
    assert list((tmp_path / "archive" / "shop").glob("date=*/*.jsonl.gz"))


def test_a_line_of_the_page_s_pattern_is_an_event_with_its_parts(tmp_path):
    (printed,) = run_task("log-patterns.md", tmp_path)
    event = json.loads(printed.splitlines()[-1])
    assert (event["header"]["level"], event["header"]["timestamp"]) == ("CRITICAL", "2026-11-24T06:00:00.000000Z")
    assert event["payload"]["message"] == "No answer from the shop"
    assert event["header"]["channel"].endswith(".shop.sync")
    assert event["payload"]["fields"]["stream"] == "orders"


def test_commands_that_the_pages_name_are_there():
    named = set()
    for page in set(DOCS.rglob("*.md")) - {docs_page("plugins.md"), docs_page("add-a-command.md")}:  # made-up commands
        named |= set(re.findall(r"`balog (\w+)", page.read_text(encoding="utf-8")))
    assert named <= set(COMMANDS)
