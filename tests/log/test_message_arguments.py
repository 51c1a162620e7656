"""The text of a message and its arguments."""

from typing import Any

import pytest

from balog.log.logger import get_logger
from balog.log.values.encoding import message_text
from balog.testing import capture_events


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


class Broken:
    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize("text", ["%s of %s", "{} of {}", "%s of %s in %d", "of"])
def test_an_argument_that_raises_costs_no_other(text: str) -> None:
    written = message_text(text, (5, Broken()))
    assert "5" in written
    assert "<Broken>" in written


def test_arguments_that_do_not_fit_and_hold_themselves_stay_short() -> None:
    root: dict[str, Any] = {"children": []}
    root["children"] += [{"name": str(n), "parent": root} for n in range(6)]
    assert len(message_text("tree of", ("a", root))) < 1000


@pytest.mark.parametrize(("text", "args"), [("%d rows", ("x",)), ("{:d}", ("x",)), ("%s", (Broken(),))])
def test_arguments_that_do_not_fit_are_an_error_of_a_strict_call(text: str, args: tuple[Any, ...]) -> None:
    with capture_events(strict=True), pytest.raises((ValueError, TypeError)):
        get_logger("a").info(text, *args)
    assert message_text("rows", (1,), strict=True) == "rows (1,)"
