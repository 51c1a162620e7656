"""Tracebacks as text: the same as Python's own, in short time and space."""

import traceback
from typing import Any

import pytest

from balog.common.errors import redact_error
from balog.consumers.error_text import TRACEBACK_LIMIT, error_line, format_traceback


def caught(function: Any) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("raised nothing")


def fail(text: str = "no") -> None:
    raise ValueError(text)


def chain() -> None:
    try:
        fail()
    except ValueError as error:
        raise RuntimeError("and so") from error


def python_says(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def test_it_is_what_python_prints_each_time_with_its_own_text() -> None:
    for text in ("one", "two", "one"):
        error = caught(lambda text=text: fail(text))
        assert format_traceback(error) == python_says(error)


def test_two_places_in_one_function_are_told_apart() -> None:
    def either(first: bool) -> None:
        if first:
            raise ValueError("at the first line")
        raise ValueError("at the second line")

    texts = [format_traceback(caught(lambda first=first: either(first))) for first in (True, False)]
    assert 'raise ValueError("at the first line")' in texts[0]
    assert 'raise ValueError("at the second line")' in texts[1]


def test_causes_are_in_it() -> None:
    error = caught(chain)
    assert format_traceback(error) == python_says(error)
    assert "direct cause" in format_traceback(error)


def test_without_a_traceback_there_is_the_text() -> None:
    assert format_traceback(KeyError("x")).endswith("KeyError: 'x'\n")


def test_it_has_a_bound_and_keeps_the_end() -> None:
    text = format_traceback(caught(lambda: fail("x" * 100_000 + "end")))
    assert len(text) == TRACEBACK_LIMIT
    assert text.endswith("end\n")


def test_recursion_is_written_in_short() -> None:
    def endless() -> None:
        endless()

    assert "more times" in format_traceback(caught(endless))


def test_an_error_that_can_not_be_written_has_its_name() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Odd" in format_traceback(Odd())


class InvalidToken(Exception):
    pass


def test_a_class_that_is_named_like_a_secret_keeps_its_reason_and_hides_secrets_in_it() -> None:
    try:
        raise InvalidToken("signature differs, password=hunter2pw")
    except InvalidToken as error:
        for text in (error_line(error), format_traceback(error)):
            assert "InvalidToken: signature differs, password=[redacted]" in text


@pytest.mark.parametrize("text", ["--password is required", "the options --token and --password must be given"])
def test_prose_about_an_option_is_no_secret(text: str) -> None:
    assert redact_error(text) == text
    assert "hunter2" not in redact_error("run --password hunter2 now")
