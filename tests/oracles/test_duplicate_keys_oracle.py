"""JSON with keys that come twice, spelled in every legal way, against Python's own reader, which hands out each."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.editor import Chain
from balog.broker.records.config import RecordRule
from balog.broker.records.editor import RecordEditor
from balog.common.duplicate_keys import find_duplicate_keys, has_duplicate_key, has_duplicate_member
from balog.common.errors import EventError
from balog.event import decode
from balog.registry import open_registry
from balog.service.api.bodies import split
from balog.service.api.item_reader import ItemReader
from balog.service.api.tokens import ANONYMOUS, TokenEntry
from balog.service.intake.batch import AcceptedEvent
from balog.service.settings import ServiceConfig
from tests.broker.test_pipe import run as run_pipe
from tests.oracles.effort import examples

KEYS = ["cls_type", "version", "type", "a", "", "a:b", 'q"', "b\\", "é", "\U0001f600", "header", "id", "\n", "/"]
texts = st.one_of(st.sampled_from(KEYS), st.text(max_size=4))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(texts, inner), max_size=4).map(lambda pairs: Members(pairs))
    ),
    max_leaves=12,
)


class Members(list):
    """An object's members, of which two may have one key."""


def spell(value: Any, chance: random.Random) -> str:
    """Write a value as JSON, each text escaped at random and white space strewn in."""
    space = chance.choice(["", "", " ", "\n", "\t "])
    if isinstance(value, Members):
        members = (f"{spell(key, chance)}{space}:{space}{spell(item, chance)}" for key, item in value)
        return "{" + space + ("," + space).join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spell(item, chance) + space for item in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(spell_char(char, chance) for char in value) + '"'
    return json.dumps(value)


def spell_char(char: str, chance: random.Random) -> str:
    if chance.random() < 0.3:
        return "".join(f"\\u{unit:04{chance.choice('xX')}}" for unit in units(char))
    if char == "/" and chance.random() < 0.5:
        return "\\/"
    return json.dumps(char, ensure_ascii=chance.random() < 0.5)[1:-1]


def units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def has_twice(text: str) -> bool:
    """Tell by Python's reader alone whether an object has a key twice."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=look)
    return found


@examples(400)
@given(values, st.integers(0, 1 << 32))
def test_a_key_twice_is_found_however_it_is_spelled_and_nothing_else_is(value: Any, seed: int) -> None:
    text = spell(value, random.Random(seed))
    data = text.encode("utf-8", "surrogatepass")
    expected = has_twice(text)
    assert has_duplicate_key(data) == expected
    assert any(find_duplicate_keys(data)) == expected
    if isinstance(value, Members) and "\\ud" not in text.lower():
        assert has_duplicate_member(data) == (len({key for key, _ in value}) < len(value))


@examples(150)
@given(st.lists(st.tuples(texts, values), max_size=5).map(Members), st.integers(0, 1 << 32))
def test_an_event_is_read_only_if_every_reader_sees_the_same_payload(members: Members, seed: int) -> None:
    chance = random.Random(seed)
    payload = spell(members, chance)
    header = '{"id":"x-1","channel":"c","timestamp":"2026-11-20T07:46:12Z","level":"INFO"}'
    text = f'{{"schema":"0.1.0","header":{header},"payload":{payload}}}'
    if has_twice(text):
        with pytest.raises(EventError, match="twice"):
            decode(text.encode("utf-8", "surrogatepass"))
        return
    try:
        event = decode(text.encode())
    except (EventError, UnicodeEncodeError) as error:
        refusal = str(error)
    else:
        refusal = ""
        assert json.loads(bytes(event.raw_payload)) == json.loads(payload)
    assert "twice" not in refusal


ONLY_SALE = TokenEntry(name="shop", hash="", types=("sale*",))


@examples(100)
@given(
    st.sampled_from(["single", "array", "lines", "event", "header", "nested"]),
    st.booleans(),
    st.integers(0, 1 << 32),
)
def test_the_service_takes_no_item_with_two_types(form: str, is_twice: bool, seed: int) -> None:
    chance = random.Random(seed)
    first = Members([("cls_type", "log")]) if is_twice else Members()
    payload = Members([*first, ("message", "m"), ("cls_type", "sale")])
    header = Members([("id", "x-1"), ("channel", "c"), ("timestamp", "2026-11-20T07:46:12Z"), ("level", "INFO")])
    item: Any = payload
    if form == "event":
        item = Members([("schema", "0.1.0"), ("header", header), ("payload", payload)])
    elif form == "header":
        twice = Members([*header, *([("id", "x-2")] if is_twice else [])])
        item = Members([("schema", "0.1.0"), ("header", twice), ("payload", Members([("cls_type", "sale")]))])
    elif form == "nested":
        item = Members([("cls_type", "sale"), ("rows", [Members([*first, ("cls_type", "sale")])])])
    text = spell(item, chance)
    body = {"array": f"[{text}, {text}]", "lines": text.replace("\n", " ")}.get(form, text).encode()
    items = split(body, "lines" if form == "lines" else "json", 10)
    reader = ItemReader(open_registry(None), ServiceConfig(topics="local:unused", unknown_types="accept"))
    for one in reader.read(items, ONLY_SALE if chance.random() < 0.5 else ANONYMOUS, "", None, may_wait=True):
        if is_twice:
            assert not isinstance(one, AcceptedEvent)
            assert (one.status, "twice" in one.problems[0].reason) == (422, True)
        else:
            assert isinstance(one, AcceptedEvent)
            assert not has_twice(one.body.decode())


@examples(100)
@given(
    st.lists(st.lists(st.tuples(texts, values), max_size=4).map(Members), min_size=1, max_size=6), st.integers(0, 99)
)
def test_the_reader_of_files_takes_the_events_that_decode_takes(payloads: list[Members], seed: int) -> None:
    lines = pytest.importorskip("balog.analytics.reading.validation", reason="pyarrow or duckdb is not installed")
    blocks = pytest.importorskip("balog.analytics.reading.blocks")
    chance = random.Random(seed)
    header = '"id":"x-1","channel":"c","timestamp":"2026-11-20T07:46:12Z","level":"INFO"'
    made, expected = [], []
    for payload in payloads:
        text = spell(payload, chance).replace("\n", " ")
        made.append(f'{{"schema":"0.1.0","header":{{{header}}},"payload":{text}}}'.encode("utf-8", "surrogatepass"))
        try:
            decode(made[-1])
        except EventError as error:
            expected.append("twice" in str(error))
        else:
            expected.append(False)
    data = memoryview(b"\n".join([*made, b""]))
    bad = lines.normalize(blocks.Block(0, data)).bad
    assert sum("twice" in one.reason for one in bad) == sum(expected)
    if lines.count_events(data) is not None:
        assert not bad


SECRET = "secret-of-a-user"


def first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def records_seen(out: bytes) -> list[Any]:
    """Read a stream as any target may: by lines or at carriage returns too, first or last key, several on a line."""
    seen = []
    text = out.decode("utf-8", "surrogateescape")
    for lines in (text.split("\n"), text.replace("\r", "\n").split("\n")):
        for read in (json.JSONDecoder().raw_decode, json.JSONDecoder(object_pairs_hook=first_wins).raw_decode):
            for line in lines:
                rest = line.strip()
                try:
                    while rest:
                        message, end = read(rest)
                        seen.append(message)
                        rest = rest[end:].lstrip()
                except ValueError:
                    pass
    return [
        one for one in seen if isinstance(one, dict) and one.get("type") == "RECORD" and one.get("stream") == "users"
    ]


plain_types = st.sampled_from(
    ["RECORD", "RECORD", "RECORD", "STATE", "STATE", "ACTIVATE_VERSION", "LOG", "record", "BATCH", "SCHEMA"]
)
envelope_keys = st.sampled_from(["type", "type", "stream", "stream", "record", "value"])
inner = st.sampled_from(
    [Members([("email", SECRET)]), Members([("email", SECRET)]), Members([("id", 1), ("type", "x")]), Members()]
)


@st.composite
def hostile_lines(draw: st.DrawFn) -> bytes:
    """Give lines as a tap or an attacker may write them, each with the secret where it may belong to a user."""
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind, stream = draw(plain_types), draw(st.sampled_from(["users", "free"]))
        members = [("type", kind), ("stream", stream), ("record", draw(inner)), ("value", Members())]
        for _ in range(draw(st.integers(0, 2))):
            key = draw(envelope_keys)
            value: Any = {"type": draw(plain_types), "stream": draw(st.sampled_from(["users", "free"]))}.get(key)
            members.insert(draw(st.integers(1, len(members))), (key, draw(inner) if value is None else value))
        text = spell(Members(members), chance)
        if draw(st.booleans()):  # begin as the Singer libraries do
            head = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in members[:2])
            text = f"{{{head}, {spell(Members(members[2:]), chance)[1:]}" if isinstance(members[1][1], str) else text
        text = text.replace("\n", " ")
        parts.append(text)
    joined = draw(st.sampled_from(["\r", " ", "", "\n", "\r\n", "\n\n"])).join(parts)
    return joined.encode() + draw(st.sampled_from([b"\n", b"\r\n", b"\r", b"\n"]))


@examples(300)
@given(st.lists(hostile_lines(), min_size=1, max_size=5), st.sampled_from(["users", "user*"]))
def test_no_reader_finds_a_masked_value_in_what_the_broker_passes(lines: list[bytes], stream: str) -> None:
    rule = RecordRule(stream=stream, mask={"email": "redact"})
    refused: list[bytes] = []

    class Kept:
        def put(self, reason: str, line: bytes) -> None:
            refused.append(line)

    editor = RecordEditor([rule], Kept(), lambda line: None)  # type: ignore[arg-type]
    out, _, _ = run_pipe([b"".join(lines)], editor=Chain([editor]), finish=True)
    assert SECRET not in json.dumps([one.get("record") for one in records_seen(out)])


def test_lines_that_every_reader_understands_alike_stay_the_bytes_that_they_were() -> None:
    lines = b"".join(
        [
            b'{"type": "RECORD", "stream": "free", "record": {"type": "a", "stream": "users", "x": NaN}}\n',
            b'{"type": "RECORD", "stream": "free", "record": {"text": "caf\\u00e9 \\u0041"}}\r\n',
            b'{"type": "STATE", "value": {"stream": "users", "type": "RECORD"}}\n',
            b'{"type": "LOG", "type": "ERROR", "value": {"message": "m"}}\n',
            b'{"type": "RECORD", "stream": "free", "record": {"email": "torn\n',
            b'{"type": "RECORD", "stream": "free", "record": {"a": 1, "a": 2}}\n',
        ]
    )
    editor = RecordEditor([RecordRule(stream="users", mask={"email": "redact"})], None, lambda line: None)
    out, logs, _ = run_pipe([lines], editor=Chain([editor]), finish=True)
    assert out == lines
    assert len(logs) == 1
