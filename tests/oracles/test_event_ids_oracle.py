"""Ids that clients choose, of any visible characters, through every place that an id goes to, read back by others."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reading.validation import count_events, normalize_line
from balog.common.errors import EventError
from balog.consumers.ledgers.factory import open_ledger
from balog.consumers.ledgers.ledger import LedgerEntry
from balog.event import Event, decode, encode
from balog.filters.event_filter import EventFilter
from balog.sinks.base import Delivery
from balog.sinks.elastic import ElasticSinkConfig
from balog.sinks.signing import batch_id
from balog.topics import Message, open_topics
from balog.topics.sqs.packing import token
from tests.oracles.effort import examples

HOSTILE = [
    *(
        '"',
        "\\",
        "';DROP/**/TABLE/**/x;--",
        "../../etc/passwd",
        "%s%00",
        "{}",
        "a:b",
        "LG",
        "null",
        "</script>",
        "a.b",
        "~",
    ),
    *(str(uuid.UUID(int=7)), "urn:uuid:" + str(uuid.UUID(int=8)), "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x" * 128, "$(reboot)"),
]
visible = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128)
ids = st.one_of(st.sampled_from(HOSTILE), visible)


def event_of(id: str) -> Event:
    event = Event.new("shop", {"cls_type": "order", "n": 1})
    event.header.id = id
    return event


@examples(300)
@given(st.text(max_size=140))
def test_an_id_is_taken_when_it_is_1_to_128_visible_characters_and_by_every_reader_alike(id: str) -> None:
    is_good = 1 <= len(id) <= 128 and all("!" <= char <= "~" for char in id)
    line = json.dumps(json.loads(encode(event_of("x"))), ensure_ascii=False).replace('"x"', json.dumps(id), 1).encode()
    schema = json.loads(Path("schemas/facility/0.1.0.json").read_bytes())
    pattern = schema["properties"]["header"]["properties"]["id"]["pattern"].replace("$", r"\Z")
    assert bool(re.search(pattern, id)) == is_good
    if is_good:
        assert decode(line).header.id == json.loads(normalize_line(line))["header"]["id"] == id
        assert count_events(memoryview(line + b"\n")) == 1
        return
    assert count_events(memoryview(line + b"\n")) is None
    for read in (decode, normalize_line):
        with pytest.raises(EventError, match="1 to 128 visible"):
            read(line)


@examples(150)
@given(ids)
def test_what_sinks_write_of_an_id_is_that_id_to_those_who_read_it(id: str) -> None:
    event = event_of(id)
    sink = ElasticSinkConfig(url="http://localhost:1").build()
    action, document = sink._document(Delivery(event, encode(event))).splitlines()
    assert json.loads(action)["create"]["_id"] == id
    assert json.loads(document)["header"]["id"] == id
    assert re.fullmatch(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}", token(id))
    made = EventFilter("s", select={"n": "payload.n"}, cls_type="copy").make(event)
    assert decode(encode(made)).header.id == made.header.id != id


@examples(150)
@given(st.lists(ids, min_size=1, max_size=4), st.lists(ids, min_size=1, max_size=4))
def test_batches_of_other_events_have_other_ids(first: list[str], second: list[str]) -> None:
    assert (batch_id(first) == batch_id(second)) == (first == second)
    assert batch_id(["a", "b"]) != batch_id(["ab"])


def test_a_topic_and_a_ledger_know_each_id_and_no_other(tmp_path: Path) -> None:
    with open_topics(f"local:{tmp_path / 'topics'}") as home:
        topic = home.topic("order")
        for _ in range(2):
            topic.publish([Message(id, encode(event_of(id))) for id in HOSTILE])
        assert [decode(received.body).header.id for received in topic.peek(1000)] == HOSTILE
    ledger = open_ledger(f"sqlite:{tmp_path / 'ledger.db'}")
    ledger.record("g", [LedgerEntry(id, f"consumer of {id}"[:50]) for id in HOSTILE])
    known = ledger.known("g", [*HOSTILE, "another"])
    ledger.close()
    assert {id: list(found) for id, found in known.items()} == {id: [f"consumer of {id}"[:50]] for id in HOSTILE}
