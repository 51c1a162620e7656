"""Test cases of a broker's config: which parts of an event are compared."""

import pytest

from balog.broker.cases import is_part


@pytest.mark.parametrize(
    ("expected", "found", "fits"),
    [
        ({"a": [1, 2]}, {"a": [1, 2], "b": 3}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": []}, {"a": []}, True),
        ({"a": []}, {"a": [1]}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, True),
        ({"a": [{"b": 1}]}, {"a": [{"c": 2}]}, False),
        ({"a": [1]}, {"a": 1}, False),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": [True]}, {"a": [1]}, False),
    ],
)
def test_a_list_has_all_its_items_and_objects_in_it_may_have_more_keys(
    expected: object, found: object, fits: bool
) -> None:
    assert is_part(expected, found) is fits
