"""Notes, groups, causes and contexts of exceptions as data; ``traceback.TracebackException`` is the oracle."""

import builtins
import random
import sys
import traceback
from typing import Any

import msgspec
import pytest

from balog.event.payload import LogPayload
from balog.log.values.exceptions import MAX_EXCEPTIONS, describe

BaseGroup: Any = getattr(builtins, "BaseExceptionGroup", None)
Group: Any = getattr(builtins, "ExceptionGroup", None)
needs_groups = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has neither groups nor notes")


def data_of(error: BaseException) -> Any:
    return describe(error)["exception"]


def shape(data: dict[str, Any]) -> Any:
    """Reduce a description to what the oracle knows: message, notes, cause, context and members."""
    return (
        data["message"],
        data.get("notes", []),
        shape(data["cause"]) if "cause" in data else None,
        shape(data["context"]) if "context" in data else None,
        [shape(one) for one in data.get("exceptions", [])],
    )


def expected(found: traceback.TracebackException, error: BaseException) -> Any:
    """Read the same from the standard library's description, which prints a context only without a cause."""
    is_context = found.__cause__ is None and found.__context__ is not None and not found.__suppress_context__
    return (
        str(error),
        list(getattr(found, "__notes__", None) or []),
        None if found.__cause__ is None else expected(found.__cause__, error.__cause__),  # type: ignore[arg-type]
        expected(found.__context__, error.__context__) if is_context else None,  # type: ignore[arg-type]
        [
            expected(one, member)
            for one, member in zip(getattr(found, "exceptions", None) or [], getattr(error, "exceptions", []))
        ],
    )


@needs_groups
def test_random_trees_agree_with_the_standard_library() -> None:
    """Small trees of every kind of link, each exception once."""
    chance = random.Random(7)
    number = 0

    def grow(depth: int) -> BaseException:
        nonlocal number
        number += 1
        if depth and chance.random() < 0.4:
            members = [grow(depth - 1) for _ in range(chance.randint(1, 2))]
            error: Any = BaseGroup(f"group {number}", members)
        else:
            error = chance.choice([ValueError, KeyboardInterrupt, OSError])(f"e{number}")
        for note in range(chance.choice([0, 0, 2])):
            error.add_note(f"note {note}")
        if depth and chance.random() < 0.3:
            error.__context__ = grow(depth - 1)
        if depth and chance.random() < 0.3:
            error.__cause__ = grow(depth - 1)
        error.__suppress_context__ = error.__cause__ is not None or chance.random() < 0.2
        return error  # type: ignore[no-any-return]

    for _ in range(300):
        number = 0
        error = grow(3)
        if number <= MAX_EXCEPTIONS:
            assert shape(data_of(error)) == expected(traceback.TracebackException.from_exception(error), error)


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_a_cycle_ends(link: str) -> None:
    """Each exception is described once, and the rest is counted."""
    one, two = ValueError("one"), ValueError("two")
    setattr(one, link, two)
    setattr(two, link, one)
    one.__suppress_context__ = two.__suppress_context__ = False

    data = data_of(one)
    assert data[link.strip("_")]["message"] == "two"
    assert data[link.strip("_")]["omitted"] == 1
    assert str(data).count("'one'") == 1


def test_a_long_chain_is_bounded() -> None:
    """The outermost are kept; the text is bounded, too."""
    error = ValueError("x" * 10**6)
    for number in range(200):
        error, inner = ValueError(number), error
        error.__cause__ = inner

    told = describe(error)
    assert str(told["exception"]).count("'type'") <= 10
    assert '"omitted":1' in msgspec.json.encode(told["exception"]).decode()
    assert len(told["exc_text"]) < 300_000


@needs_groups
def test_a_wide_and_deep_group_is_bounded() -> None:
    """By the number of exceptions in all."""
    group: Any = Group("g", [ValueError(number) for number in range(1000)])
    for _ in range(50):
        group = Group("g", [group, *(ValueError(number) for number in range(30))])

    encoded = msgspec.json.encode(data_of(group)).decode()
    assert encoded.count('"type"') <= MAX_EXCEPTIONS
    assert data_of(group)["omitted"] >= 15


@needs_groups
def test_the_log_payload_reads_it() -> None:
    """Consumers get the same data, typed."""
    group = Group("g", [ValueError("a"), OSError("b")])
    group.add_note("in the nightly run")
    read = msgspec.convert({"cls_type": "log", "message": "m", **describe(group)}, LogPayload)

    assert read.exception is not None
    assert msgspec.to_builtins(read.exception) == data_of(group)
    assert [one.message for one in read.exception.exceptions] == ["a", "b"]


@pytest.mark.parametrize("notes", [5, "text", [object(), "\ud800"], None])
def test_odd_notes_never_raise(notes: Any) -> None:
    """``__notes__`` is a plain attribute."""
    error = ValueError("x")
    error.__notes__ = notes  # type: ignore[attr-defined]

    assert data_of(error)["message"] == "x"


def test_an_attribute_named_exceptions_is_no_group() -> None:
    """Only groups have members."""

    class Odd(Exception):
        exceptions = (ValueError("a"),)

    assert "exceptions" not in data_of(Odd())
