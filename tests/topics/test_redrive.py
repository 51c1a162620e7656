"""What is changed in a dead letter before it goes back, and which of them go."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError, EventError
from balog.event import Event, decode, encode
from balog.filters import Expression
from balog.topics import DeadLetter
from balog.topics.redrive import Patch, Redrive


def body(payload: object, **more: object) -> bytes:
    return encode(Event.new("a.b", payload, **more))  # type: ignore[arg-type]


def patched(before: object, *pairs: str, unset: tuple[str, ...] = ()) -> object:
    return decode(Patch(pairs, unset).apply(body(before))).payload


@pytest.mark.parametrize(
    ("before", "pair", "after"),
    [
        ({"a": 1}, "payload.a=2", {"a": 2}),
        ({"a": 1}, "payload.b=text", {"a": 1, "b": "text"}),
        ({"a": 1}, 'payload.b="3"', {"a": 1, "b": "3"}),
        ({"a": 1}, "payload.b=null", {"a": 1, "b": None}),
        ({"a": 1}, "payload.b=x=y", {"a": 1, "b": "x=y"}),
        ({}, "payload.a.b.c=[1]", {"a": {"b": {"c": [1]}}}),
        ({"a": [1, 2]}, "payload.a[1]=3", {"a": [1, 3]}),
        ({"a": [1, 2]}, "payload.a[2]=3", {"a": [1, 2, 3]}),
        ({"a": [{"b": 1}]}, "payload.a[0].b=2", {"a": [{"b": 2}]}),
    ],
)
def test_a_member_is_set(before: object, pair: str, after: object) -> None:
    assert patched(before, pair) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ({"a": 1, "b": 2}, "payload.a", {"b": 2}),
        ({"a": {"b": 1, "c": 2}}, "payload.a.b", {"a": {"c": 2}}),
        ({"a": [1, 2]}, "payload.a[0]", {"a": [2]}),
        ({"a": 1}, "payload.b.c", {"a": 1}),
        ({"a": 1}, "payload.a.c", {"a": 1}),
    ],
)
def test_a_member_is_taken_away(before: object, path: str, after: object) -> None:
    assert patched(before, unset=(path,)) == after


def test_the_header_can_be_mended_but_the_id_stays() -> None:
    before = body({}, context={"k": "v"})
    after = decode(Patch(["channel=c.d", "level=ERROR", "context.n.m=1"], ["context.k"]).apply(before))
    assert (after.header.channel, after.level, after.header.context) == ("c.d", "ERROR", {"n": {"m": 1}})
    assert after.header.id == decode(before).header.id


@pytest.mark.parametrize(
    "pair",
    [
        *("a=1", "payload=1", "id=LGx", "schema=0.1.0", "header.id=1", "channel.x=1", "context=1"),
        *("payload..a=1", "payload.a", "payload.a[x]=1", "=1", "payload[0]x=1"),
    ],
)
def test_what_is_no_member_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Patch([pair])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pair", ["level=LOUD", "timestamp=soon", "payload.a.b=1", "payload.l[5]=1", "channel=7"])
def test_a_patch_that_makes_no_event_is_an_error(pair: str) -> None:
    with pytest.raises(EventError):
        Patch([pair]).apply(body({"a": 1, "l": []}))


def test_keys_of_a_later_version_stay() -> None:
    before = body({"a": 1}).replace(b'"0.1.0"', b'"0.9.0"', 1).replace(b'"header":{', b'"later":[1],"header":{')
    after = Patch(["payload.a=2"]).apply(before)
    assert decode(after).unknown == {"": {"later": [1]}, "header": {}}


@given(st.recursive(st.integers() | st.text(max_size=5) | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_set_is_there_and_the_rest_is_as_it_was(value: object) -> None:
    before = body({"a": 1, "deep": {"b": [2]}})
    after = decode(Patch([f"payload.deep.c={msgspec.json.encode(value).decode()}"]).apply(before))
    assert after.payload == {"a": 1, "deep": {"b": [2], "c": value}}
    assert after.header == decode(before).header


def test_without_a_patch_the_bytes_are_the_same() -> None:
    before = body({"a": 1}).replace(b",", b" , ")
    assert Patch().apply(before) == before


def letter(content: bytes) -> DeadLetter:
    return DeadLetter("a", content, "g", "why", 1, 0.0)


def decider(where: str | None = None, *pairs: str, dry_run: bool = False):
    told: list[object] = []
    decide = Redrive(
        Expression(where) if where else None,
        Patch(pairs),
        dry_run,
        lambda letter, sent: told.append(sent),
        lambda letter, error: told.append(error),
    )
    return decide, told


def test_what_is_chosen_goes_back_as_it_was() -> None:
    decide, told = decider("payload.a = 1")
    chosen, other = body({"a": 1}), body({"a": 2})
    assert [decide(letter(chosen)), decide(letter(other)), decide(letter(b"no event"))] == [chosen, None, None]
    assert (decide.chosen, decide.unwanted, decide.no_events, told) == (1, 1, 1, [chosen])


def test_a_dry_run_tells_and_leaves_all() -> None:
    decide, told = decider(None, "payload.a=5", dry_run=True)
    assert decide(letter(body({"a": 1}))) is None
    assert decode(told[0]).payload == {"a": 5}  # type: ignore[arg-type]


def test_what_the_patch_spoils_stays_and_is_told() -> None:
    decide, told = decider(None, "level=LOUD")
    assert decide(letter(body({}))) is None
    assert decide.refused == 1
    assert isinstance(told[0], EventError)


class TestAPatchInAFile:
    def load(self, tmp_path: Path, **patch: Any) -> Patch:
        path = tmp_path / "patch.json"
        path.write_text(json.dumps(patch))
        return Patch.load(str(path))

    def test_it_sets_computes_and_takes_away(self, tmp_path: Path) -> None:
        patch = self.load(
            tmp_path,
            set={"payload.currency": "EUR", "payload.tags": [1]},
            compute={"payload.price": "CAST(payload.cost AS DOUBLE) * 2"},
            unset=["payload.cost"],
        )
        body = encode(Event.new("a", {"cls_type": "x", "cost": "1.5"}))

        assert decode(patch.apply(body)).payload == {"cls_type": "x", "currency": "EUR", "tags": [1], "price": 3.0}

    def test_what_is_computed_as_null_is_left_as_it_was(self, tmp_path: Path) -> None:
        patch = self.load(tmp_path, compute={"payload.price": "CAST(payload.price AS DOUBLE)"})
        body = encode(Event.new("a", {"price": "dear"}))

        assert decode(patch.apply(body)).payload == {"price": "dear"}

    @pytest.mark.parametrize(
        ("patch", "said"),
        [
            ({}, "changes nothing; give set, compute or unset"),
            ({"set": {"id": "x"}}, "'id': not a member that can be changed"),
            ({"compute": {"payload.a": "LOWER("}}, "column 6"),
            ({"add": {}}, "no field 'add'"),
        ],
    )
    def test_what_is_no_patch_is_refused_with_its_file(self, tmp_path: Path, patch: Any, said: str) -> None:
        with pytest.raises(ConfigError) as refused:
            self.load(tmp_path, **patch)
        assert str(tmp_path / "patch.json") in str(refused.value)
        assert said in str(refused.value)
