"""Regular expressions with a bounded search time, of the subset with the same meaning in Python and Spark's Java.

``re`` tries alternatives one after the other, so the ways through ``a.*b.*c`` grow with the cube of the text.
Short texts are left to it. For longer ones a lazily built automaton goes through the text once, and ``searched`` bounds
the length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

MAX_SEARCHED = 65_536
"""A search looks at so many characters of a text at most, from its beginning."""

MAX_STATES = 10_000
_MAX_WORK = 5_000_000  # states × characters of a search
_QUICK_STEPS = 3_000_000.0  # of `re`: some milliseconds
_MAX_CACHED = 2_000  # sets of states
_MAX_MOVES = 100_000


class Atom(Struct, frozen=True):
    """One character: a token such as ``a``, ``\\d`` or ``[a-z]``."""

    token: str
    folded: bool


class Anchor(Struct, frozen=True):
    """``^``, ``$``, ``\\A``, ``\\b`` or ``\\B``."""

    kind: str


class Sequence(Struct, frozen=True):
    """Parts in a row."""

    parts: tuple[Any, ...]


class Alternation(Struct, frozen=True):
    """Any one of the parts."""

    parts: tuple[Any, ...]


class Repeat(Struct, frozen=True):
    """A part from ``low`` to ``high`` times; None: without end."""

    part: Any
    low: int
    high: int | None


class Regex:
    """A regular expression; may be used from any thread.

    Args:
        pattern: as written.
        tree: as parsed.

    Attributes:
        pattern: as written.
        searched: characters of a text that a search looks at, from the beginning.

    Raises:
        ValueError: it is malformed, or unrolls to more than 10,000 states.
    """

    def __init__(self, pattern: str, tree: Any) -> None:
        self.pattern = pattern
        states = _states(tree)
        if states > MAX_STATES:
            raise ValueError(f"the regular expression unrolls to more than {MAX_STATES:,} characters")
        try:
            self._search = re.compile(pattern, re.ASCII).search  # \d, \w and \s are ASCII in Java
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a regular expression: {error}") from None
        self._quick = _longest(tree, states)
        self._automaton = _Automaton(tree)
        self.searched = min(MAX_SEARCHED, max(_MAX_WORK // max(states, 1), 1))

    def search(self, text: str) -> bool:
        """Return whether the pattern is found in the first ``searched`` characters of a text."""
        text = text[: self.searched]
        if len(text) <= self._quick:
            return self._search(text) is not None
        return self._automaton.search(text)


def _states(node: Any) -> int:
    """Count the characters of an expression whose counted repeats are written out."""
    if isinstance(node, (Sequence, Alternation)):
        return sum(map(_states, node.parts))
    if isinstance(node, Repeat):
        return _states(node.part) * max(node.low + 1 if node.high is None else node.high, 1)
    return 1


def _longest(tree: Any, states: int) -> int:
    """Return a length of texts that ``re`` searches quickly."""
    length = MAX_SEARCHED
    while length and (1 if _is_anchored(tree) else length) * _ways(tree, length) * states > _QUICK_STEPS:
        length = length * 3 // 4
    return length


def _is_anchored(node: Any) -> bool:
    if isinstance(node, Alternation):
        return all(map(_is_anchored, node.parts))
    if isinstance(node, Sequence):
        return bool(node.parts) and _is_anchored(node.parts[0])
    return isinstance(node, Anchor) and node.kind in ("^", "\\A")


def _ways(node: Any, length: int) -> float:
    """Return an upper limit of the ways in which an expression can match from one position."""
    if isinstance(node, Sequence):
        return math.prod((_ways(part, length) for part in node.parts), start=1.0)
    if isinstance(node, Alternation):
        return sum(_ways(part, length) for part in node.parts)
    if isinstance(node, Repeat):
        inner = _ways(node.part, length)
        most = length if node.high is None else min(node.high, length)
        if inner <= 1:
            return max(most - min(node.low, most), 0) + 1.0
        return inner**most * (most + 1) if most * math.log(inner) < 100 else math.inf
    return 1.0


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_START, _AFTER_WORD, _BEFORE_WORD, _LAST_LINE_END, _END = 1, 2, 4, 8, 16

_HOLDS: dict[str, Callable[[int], bool]] = {
    "^": lambda around: bool(around & _START),
    "\\A": lambda around: bool(around & _START),
    "$": lambda around: bool(around & (_END | _LAST_LINE_END)),
    "\\b": lambda around: bool(around & _AFTER_WORD) != bool(around & _BEFORE_WORD),
    "\\B": lambda around: bool(around & _AFTER_WORD) == bool(around & _BEFORE_WORD),
}


@dataclass(eq=False, slots=True)
class _Set:
    """States at a position, and the next set for each character; None if the pattern is found."""

    states: tuple[int, ...]
    moves: dict[tuple[str, int], _Set | None] = field(default_factory=dict)


class _Automaton:
    """An automaton of a pattern that creates its sets of states on demand.

    State 0 is the end. A state takes a character and goes on, or goes on to others without one.
    """

    def __init__(self, tree: Any) -> None:
        self._takes: list[Callable[[str], bool] | None] = [None]
        self._next: list[tuple[int, ...]] = [()]
        self._holds: list[Callable[[int], bool] | None] = [None]
        self._tests: dict[tuple[str, bool], Callable[[str], bool]] = {}
        self._begin = self._add(tree, 0)
        self._looks_around = any(self._holds)
        self._forget()

    def search(self, text: str) -> bool:
        """Return whether the pattern is found anywhere."""
        here = self._first
        around, last = 0, len(text) - 1
        if not self._looks_around:
            for char in text:
                try:
                    after = here.moves[char, 0]
                except KeyError:
                    after = self._move(here, char, 0)
                if after is None:
                    return True
                here = after
        else:
            around = _START
            for place, char in enumerate(text):
                is_word = char in _WORD
                around |= _BEFORE_WORD if is_word else 0
                around |= _LAST_LINE_END if place == last and char == "\n" else 0
                try:
                    after = here.moves[char, around]
                except KeyError:
                    after = self._move(here, char, around)
                if after is None:
                    return True
                here = after
                around = _AFTER_WORD if is_word else 0
        return self._closed(here, around | _END) is None

    def _move(self, found: _Set, char: str, around: int) -> _Set | None:
        closed = self._closed(found, around)
        after: _Set | None = None
        if closed is not None:
            reached = tuple(sorted({self._next[state][0] for state in closed if self._takes[state](char)}))  # type: ignore[misc]
            if len(self._sets) >= _MAX_CACHED or self._moves >= _MAX_MOVES:
                self._forget()
            after = self._sets.setdefault(reached, _Set(reached))
        self._moves += 1
        found.moves[char, around] = after
        return after

    def _closed(self, found: _Set, around: int) -> list[int] | None:
        """Return the states that take a character, reached from a set or begun here; None when the end is reached."""
        seen, rest, closed = {self._begin, *found.states}, [self._begin, *found.states], []
        while rest:
            state = rest.pop()
            if state == 0:
                return None
            if self._takes[state] is not None:
                closed.append(state)
                continue
            holds = self._holds[state]
            if holds is None or holds(around):
                fresh = [each for each in self._next[state] if each not in seen]
                seen.update(fresh)
                rest += fresh
        return closed

    def _forget(self) -> None:
        self._first = _Set(())
        self._sets: dict[tuple[int, ...], _Set] = {(): self._first}
        self._moves = 0

    def _state(
        self,
        after: Iterable[int],
        takes: Callable[[str], bool] | None = None,
        holds: Callable[[int], bool] | None = None,
    ) -> int:
        self._takes.append(takes)
        self._next.append(tuple(after))
        self._holds.append(holds)
        return len(self._next) - 1

    def _add(self, node: Any, after: int) -> int:
        """Add an expression in front of a state, and return where it begins."""
        if isinstance(node, Atom):
            return self._state([after], takes=self._test(node))
        if isinstance(node, Anchor):
            return self._state([after], holds=_HOLDS[node.kind])
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = self._add(part, after)
            return after
        if isinstance(node, Alternation):
            return self._state([self._add(part, after) for part in node.parts])
        if node.high is None:
            loop = self._state([after])
            self._next[loop] = (self._add(node.part, loop), after)
            after = loop
        else:
            end = after
            for _ in range(node.high - node.low):
                after = self._state([self._add(node.part, after), end])
        for _ in range(node.low):
            after = self._add(node.part, after)
        return after

    def _test(self, atom: Atom) -> Callable[[str], bool]:
        key = atom.token, atom.folded
        if key not in self._tests:
            match = re.compile(atom.token, re.ASCII | (re.IGNORECASE if atom.folded else 0)).match
            self._tests[key] = lambda char: match(char) is not None
        return self._tests[key]
