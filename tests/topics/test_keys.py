"""The key of an event's message."""

from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.event import Event
from balog.topics.keys import RUN, key_reader

EVENT = Event.new("c", {"n": 7, "s": "x", "none": None}, context={"run_id": "R1"})


@pytest.mark.parametrize(
    ("expression", "key"),
    [(None, None), (RUN, "R1"), ("payload.n", "7"), ("payload.s", "x"), ("payload.none", None), ("NULL", None)],
)
def test_a_key_is_a_text_or_none(expression: str | None, key: Any) -> None:
    assert key_reader(expression, "key")(EVENT) == key


def test_an_event_outside_of_any_run_has_none() -> None:
    assert key_reader(RUN, "key")(Event.new("c", {})) is None


def test_what_is_no_expression_is_refused_where_it_was_written() -> None:
    with pytest.raises(ConfigError, match=r"^--key: "):
        key_reader("payload.", "--key")
