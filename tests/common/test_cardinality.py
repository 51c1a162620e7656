from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common import cardinality
from balog.common.cardinality import OTHER, REST, Cardinality
from tests.waiting import run_threads


def test_tags_pass_as_they_are_up_to_the_limit() -> None:
    tags = Cardinality(3)
    sets = [{"user": number} for number in range(3)]

    assert all(tags.admit("m", one) is one for one in sets * 2)
    assert tags.folded == {}


def test_beyond_the_limit_the_tag_with_the_most_values_is_folded() -> None:
    tags = Cardinality(10)
    for number in range(10):
        tags.admit("m", {"status": 200 + number % 2, "user": number})

    assert tags.admit("m", {"status": 200, "user": "new"}) == {"status": 200, "user": OTHER}
    assert tags.admit("m", {"status": 500, "user": "new"}) == {"status": 500, "user": OTHER}
    assert tags.admit("m", {"status": 201, "user": 3}) == {"status": 201, "user": 3}
    assert tags.admit("other metric", {"user": "new"}) == {"user": "new"}
    assert tags.folded == {"m": 2}


@given(
    sets=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 40) | st.text(max_size=2)), max_size=200),
    limit=st.integers(1, 8),
)
def test_no_metric_gets_more_than_twice_the_limit_and_one_for_each_set_of_names(sets: list[Any], limit: int) -> None:
    tags = Cardinality(limit)
    given_back = [tags.admit("m", one) for one in sets]

    distinct = {frozenset(one.items()) for one in given_back if one}
    whole = {one for one in distinct if all(value == OTHER for _, value in one)}
    assert len(distinct - whole) <= 2 * limit
    assert all(one.keys() == new.keys() for one, new in zip(sets, given_back))
    assert tags.folded.get("m", 0) == sum(one is not new for one, new in zip(sets, given_back))


def test_metrics_beyond_the_cap_lose_their_tags_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cardinality, "_MAX_METRICS", 2)
    tags = Cardinality(5)
    for name in "ab":
        tags.admit(name, {"x": 1})

    assert tags.admit("c", {"x": 1, "y": 2}) == {"x": OTHER, "y": OTHER}
    assert tags.admit("a", {"x": 2}) == {"x": 2}
    assert tags.folded == {REST: 1}


def test_values_that_have_no_hash_and_no_tags_at_all_are_fine() -> None:
    tags = Cardinality(2)
    assert tags.admit("m", {}) == {}
    for number in count():
        new = tags.admit("m", {"x": [number], "y": 1})
        if number == 2:
            assert new == {"x": OTHER, "y": 1}
            break
        assert new == {"x": [number], "y": 1}
    assert tags.admit("m", {"x": [1], "y": 1}) == {"x": [1], "y": 1}


def test_threads_together_stay_within_the_limit() -> None:
    tags = Cardinality(100)
    given_back: list[Any] = []

    def hammer(number: int) -> None:
        for turn in range(500):
            given_back.append(tags.admit("m", {"x": turn * 4 + number})["x"])

    run_threads(*(partial(hammer, number) for number in range(4)))

    assert len(set(given_back)) == 101
    assert tags.folded == {"m": given_back.count(OTHER)}
