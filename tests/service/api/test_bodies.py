import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.event import decode
from balog.registry.json_schema import is_deeper
from balog.registry.registry import open_registry
from balog.service.api.bodies import ByteBudget, content_form, half_pair_path, inflate, split
from balog.service.api.errors import ApiError
from balog.service.api.item_reader import ItemReader, RejectedItem
from balog.service.api.tokens import ANONYMOUS
from balog.service.intake.batch import AcceptedEvent
from balog.service.settings import RequestLimits, ServiceConfig

strict = RequestLimits(depth=10, event_bytes=2000)
reader = ItemReader(open_registry(), ServiceConfig(topics="local:unused", limits=strict))
careless = ItemReader(open_registry(), ServiceConfig(topics="local:unused", unknown_types="accept"))

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
near = st.fixed_dictionaries(
    {"cls_type": st.sampled_from(["log", "metric", "nope", ""]) | anything},
    optional={
        "version": st.sampled_from(["1.0.0", "2.0.0"]) | anything,
        **dict.fromkeys(["message", "header", "schema", "payload"], anything),
    },
)
bodies = st.binary(max_size=300) | (near | anything | st.lists(near)).map(lambda one: json.dumps(one).encode())


@given(body=bodies, form=st.sampled_from(["json", "lines"]), key=st.sampled_from(["", "k"]))
def test_any_bytes_are_items_or_refused_and_what_is_accepted_can_be_read(body, form, key):
    try:
        items = split(body, form, 50)
    except ApiError as refusal:
        assert refusal.status in (400, 413)  # noqa: PT017
        return
    for each in (reader, careless):
        found = each.read(items, ANONYMOUS, key, None, may_wait=True)
        assert len(found) == len(items)
        for one in found:
            if isinstance(one, RejectedItem):
                assert one.status in (413, 422)
                assert all(problem.path.startswith("$") and "\n" not in problem.reason for problem in one.problems)
                assert one.problems
            else:
                assert isinstance(one, AcceptedEvent)
                assert b"\n" not in one.body
                assert decode(one.body).payload == one.event.payload


@pytest.mark.parametrize("before", ["[", r' [ {"a": "\ud83d\ude00 \\\\ud800"} ,'])
def test_half_a_surrogate_pair_refuses_its_event_alone_and_says_where(before):
    half = r'{"cls_type": "log", "m": ["x", "\uDBFF"]}'
    items = split(f'{before} {half} , {{"b": [2]}} ]'.encode(), "json", 50)
    (problem,) = reader.read(items, ANONYMOUS, "", None, may_wait=True)[-2].problems
    assert (items[-2], json.loads(items[-1]), problem.path) == (half.encode(), {"b": [2]}, "$.m[1]")
    with pytest.raises(ApiError, match=problem.reason) as refused:
        split(half.encode(), "json", 50)
    assert refused.value.path == "$.m[1]"


def test_half_a_surrogate_pair_is_looked_for_without_a_path_for_each_value():
    document = "[" * 900 + r'"\ud800\udc00", ' + ",".join(["0"] * 200_000) + "]" * 900
    tracemalloc.start()
    assert half_pair_path(document.encode()) == ""
    assert tracemalloc.get_traced_memory()[1] < 30 << 20
    tracemalloc.stop()


@given(document=anything, limit=st.integers(1, 6))
def test_depth_is_told_as_a_walk_would(document, limit):
    def depth(value):
        if isinstance(value, dict):
            value = list(value.values())
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    assert is_deeper(json.dumps(document).encode(), limit) == (depth(document) > limit)
    assert is_deeper(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"), limit) == (
        depth(document) > limit
    )


def test_the_object_that_is_sent_is_level_one():
    """Given a bare payload or a whole event, then as many levels as ``depth`` are accepted, and one more is not."""

    def sent(levels, form):
        lists = form.count("{")  # the levels around the innermost value
        return (form % ("[" * (levels - lists) + "]" * (levels - lists))).encode()

    bare = '{"cls_type": "log", "version": "1.0.0", "level": "INFO", "message": "m", "fields": {"deep": %s}}'
    event = '{"schema": "0.1.0", "header": 7, "payload": {"deep": %s}}'
    limited = ItemReader(open_registry(), ServiceConfig(topics="local:unused", limits=RequestLimits(depth=10)))
    for form in (bare, event):
        fits, deeper = limited.read([sent(10, form), sent(11, form)], ANONYMOUS, "k", None, may_wait=True)
        assert "nested deeper" not in str(fits)
        assert deeper.problems[0].reason == "nested deeper than 10"


@pytest.mark.parametrize("text", ['"[[[["', r'"\"[[[["', r'"\\"', r'["\\\"[[["]', '{"a{{{{": "}"}'])
def test_brackets_in_texts_are_no_depth(text):
    assert not is_deeper(text.encode(), 1)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "zstd", "x-gzip", "br", ""]))
def test_any_bytes_are_inflated_or_refused(body, encoding):
    try:
        assert len(inflate(body, encoding, 1000)) <= 1000
    except ApiError as refusal:
        assert refusal.status in (400, 413, 415)  # noqa: PT017


@pytest.mark.parametrize(
    ("said", "form"),
    [("", "json"), ("Application/JSON; charset=UTF-8", "json"), ("application/x-ndjson", "lines")],
)
def test_the_content_type_says_the_form(said, form):
    assert content_form(said) == form


def test_room_is_bounded():
    budget = ByteBudget(10)
    budget.acquire(10)
    with pytest.raises(ApiError) as refused:
        budget.acquire(1)
    assert refused.value.status == 503
    budget.release(10)
    budget.acquire(1)
