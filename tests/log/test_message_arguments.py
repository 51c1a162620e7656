"""The text of a message and its arguments."""

from typing import Any

import pytest

from balog.log.values.encoding import message_text


@pytest.mark.parametrize(
    ("text", "args", "wanted"),
    [
        ("{} of {}", (1, 2), "1 of 2"),
        ("%s of %s", (1, 2), "1 of 2"),
        ("{0} {0}", (1,), "1 1"),
        ("{1} {0}", (1, 2), "2 1"),
        ("{:{}}", (5, 3), "  5"),
        ("{} %s", (1, 2), "1 %s (2,)"),
        ("%s {}", (1, 2), "%s 1 (2,)"),
        ("{} {}", (1, 2, 3, 4), "1 2 (3, 4)"),
        ("{{}}", (1,), "{} (1,)"),
        ("x", (1, 2), "x (1, 2)"),
        ("{x}", (1,), "{x} (1,)"),
        ("%s of %d", ("a", 3), "a of 3"),
        ("%(n)s rows", ({"n": 7},), "7 rows"),
        ("100%", (), "100%"),
        ("{} of {:03}", ("a", 3), "a of 003"),
        ("%d", ("x",), "%d ('x',)"),
    ],
)
def test_no_argument_is_dropped(text: str, args: tuple[Any, ...], wanted: str) -> None:
    """Arguments without a place in the text are put after it."""
    assert message_text(text, args) == wanted
