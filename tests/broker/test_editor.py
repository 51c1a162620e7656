from collections.abc import Iterable, Iterator

import pytest

from balog.broker.editor import Chain, Line, PipeError


class Renames:
    """Gives for each message of its type the lines that it is made with."""

    is_strict = False

    def __init__(self, kind: str, *given: Line, streams: frozenset[str] | None = None) -> None:
        self.types = frozenset({kind})
        self.streams = streams
        self.given = given
        self.seen: list[bytes] = []

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        self.seen.append(line)
        return self.given or None

    def due(self) -> Iterable[Line]:
        return ()

    def end(self) -> Iterable[Line]:
        return ()


class Gives(Renames):
    """Gives a line at the end, and when asked what is due."""

    def __init__(self, kind: str, line: bytes) -> None:
        super().__init__("NONE")
        self.line = (kind, line)

    def due(self) -> Iterable[Line]:
        return [self.line]

    def end(self) -> Iterable[Line]:
        return [self.line]


class Endless(Renames):
    """Stands for a file that fits in no memory."""

    def edit(self, kind: str, line: bytes) -> Iterator[Line]:
        number = 0
        while True:
            yield "RECORD", b"%d" % number
            number += 1


def lines(edited: Iterable[Line] | None) -> list[bytes]:
    assert edited is not None
    return [line for _, line in edited]


def test_what_nobody_changes_passes():
    first, second = Renames("RECORD"), Renames("STATE")
    assert Chain([first, second]).edit("RECORD", b"a") is None
    assert (first.seen, second.seen) == ([b"a"], [])


def test_what_one_gives_is_seen_by_those_behind_it_only():
    first = Renames("RECORD", ("RECORD", b"b"), ("STATE", b"s"))
    behind = Renames("STATE", ("STATE", b"t"), ("STATE", b"u"))
    last = Renames("RECORD")
    assert lines(Chain([first, behind, last]).edit("RECORD", b"a")) == [b"b", b"t", b"u"]
    assert (first.seen, behind.seen, last.seen) == ([b"a"], [b"s"], [b"b"])


def test_what_is_dropped_is_gone():
    class Drops(Renames):
        def edit(self, kind: str, line: bytes) -> Iterable[Line]:
            return ()

    behind = Renames("RECORD")
    assert lines(Chain([Drops("RECORD"), behind]).edit("RECORD", b"a")) == []
    assert behind.seen == []


def test_lines_are_made_only_when_they_are_asked_for():
    behind = Renames("RECORD")
    given = iter(Chain([Endless("BATCH"), behind]).edit("BATCH", b"x") or ())
    assert [next(given), next(given)] == [("RECORD", b"0"), ("RECORD", b"1")]
    assert behind.seen == [b"0", b"1"]


@pytest.mark.parametrize("method", ["due", "end"])
def test_what_comes_without_a_message_goes_through_those_behind(method):
    behind = Renames("STATE", ("STATE", b"changed"))
    chain = Chain([Gives("STATE", b"first"), behind, Gives("STATE", b"last")])
    assert lines(getattr(chain, method)()) == [b"changed", b"last"]
    assert behind.seen == [b"first"]


def test_a_refusal_comes_through():
    class Refuses(Renames):
        def edit(self, kind: str, line: bytes) -> Iterable[Line]:
            raise PipeError("no")

    with pytest.raises(PipeError, match="no"):
        lines(Chain([Renames("RECORD", ("STATE", b"s")), Refuses("STATE")]).edit("RECORD", b"a"))


@pytest.mark.parametrize(
    ("editors", "streams"),
    [
        ([Renames("RECORD", streams=frozenset({"a"})), Renames("RECORD", streams=frozenset({"b"}))], {"a", "b"}),
        ([Renames("RECORD", streams=frozenset({"a"})), Renames("RECORD", streams=None)], None),
        ([Renames("RECORD", streams=frozenset({"a"})), Renames("STATE", streams=None)], {"a"}),
    ],
)
def test_a_chain_wants_the_records_that_one_of_it_wants(editors, streams):
    assert Chain(editors).streams == streams
