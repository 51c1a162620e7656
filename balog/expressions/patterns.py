"""LIKE patterns, and the subset of regular expressions with the same meaning in Python and in Spark's Java."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from balog.expressions.regex import Alternation, Anchor, Atom, Regex, Repeat, Sequence

MAX_PATTERN = 1000
"""Characters of a LIKE pattern or a regular expression."""

Piece = tuple[str | None, ...]
"""Characters in a row; None stands for any one character."""


class LikePattern(Struct, frozen=True):
    """A LIKE pattern, split at its ``%``; one piece without any.

    ``folded`` patterns (ILIKE) are in lower case and match texts in lower case.
    """

    pieces: tuple[Piece, ...]
    folded: bool = False

    def matcher(self) -> Callable[[str], bool]:
        """Return a function that returns whether a text matches the pattern, in linear time."""
        match = self._match_plain() or self._match_pieces()
        return (lambda text: match(text.lower())) if self.folded else match

    def _match_plain(self) -> Callable[[str], bool] | None:
        if any(None in piece for piece in self.pieces):
            return None
        first, *middle = ["".join(char or "" for char in piece) for piece in self.pieces]
        if not middle:
            return lambda text: text == first
        last = middle.pop()
        if not middle:
            length = len(first) + len(last)
            return lambda text: text.startswith(first) and text.endswith(last) and len(text) >= length
        if len(middle) == 1 and not first and not last:
            return lambda text: middle[0] in text
        return None

    def _match_pieces(self) -> Callable[[str], bool]:
        first, *rest = [_fixed(piece) for piece in self.pieces]
        if not rest:
            return lambda text: first.fullmatch(text) is not None
        *middle, last = rest
        tail = len(self.pieces[-1])

        def match(text: str) -> bool:
            head = first.match(text)
            if head is None:
                return False
            place = head.end()
            for piece in middle:
                found = piece.search(text, place)
                if found is None:
                    return False
                place = found.end()
            return len(text) - tail >= place and last.match(text, len(text) - tail) is not None

        return match


def _fixed(piece: Piece) -> re.Pattern[str]:
    return re.compile("".join("." if char is None else re.escape(char) for char in piece), re.DOTALL)


def read_like(pattern: str, escape: str | None = None, *, folded: bool = False) -> LikePattern:
    """Read a LIKE pattern: ``%`` is any text, ``_`` any one character, both literal after the escape character.

    Raises:
        ValueError: the escape is not one character, or nothing that needs one follows it.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
    if escape is not None and len(escape) != 1:
        raise ValueError("ESCAPE wants one character")
    pieces: list[list[str | None]] = [[]]
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, "")
            if not escaped or escaped not in ("%", "_", escape):
                raise ValueError(f"the escape character {escape!r} wants %, _ or itself behind it")
            pieces[-1].append(escaped)
        elif char == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if char == "_" else char)
    kept = [pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[-1:]] if len(pieces) > 1 else pieces
    if folded:
        kept = [[lower for char in piece for lower in (char.lower() if char else (None,))] for piece in kept]
    return LikePattern(tuple(tuple(piece) for piece in kept), folded)


def compile_regex(pattern: str) -> Regex:
    """Compile a regular expression after a check that Java reads it alike and that it cannot take exponential time.

    Raises:
        ValueError: it is too long, malformed, or uses what the language does not have.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a regular expression has at most {MAX_PATTERN} characters")
    return Regex(pattern, _parse(pattern))


_GROUP = re.compile(r"\((?:\?i?:)?(?!\?)")
_ESCAPE = re.compile(r"\\(?:[dDwWsSbBAtnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\w\s])", re.ASCII)
_CLASS = re.compile(
    r"\[\^?(?:\\(?:[dDwWsStnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\w\s])|(?!&&|--|~~|\|\|)[^\]\[\\])+\]", re.ASCII
)
_REPEAT = re.compile(r"[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_MOST_ROUNDS = 10


@dataclass(slots=True)
class _Group:
    varies: bool = False  # holds a choice or a repeat whose number is not fixed
    endless: bool = False  # holds a repeat without an upper bound
    folded: bool = False
    branches: list[list[Any]] = field(default_factory=lambda: [[]])

    def take_in(self, inner: _Group) -> None:
        self.varies = self.varies or inner.varies
        self.endless = self.endless or inner.endless

    def tree(self) -> Any:
        parts = [Sequence(tuple(branch)) for branch in self.branches]
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))


def _parse(pattern: str) -> Any:
    """Parse a pattern; reject syntax that Java reads differently, and nested repeats that may take exponential time."""
    place = len("(?i)") if pattern.startswith("(?i)") else 0
    groups = [_Group(folded=place > 0)]
    inner: _Group | None = None  # what the atom before this place holds; None when there is nothing to repeat
    while place < len(pattern):
        char = pattern[place]
        if char in "*+?{":
            repeat = _REPEAT.match(pattern, place)
            if repeat is None:
                raise ValueError(f"{{ at character {place + 1} of the regular expression begins no repeat; write \\{{")
            if inner is None:
                raise ValueError(f"nothing to repeat at character {place + 1} of the regular expression")
            place = repeat.end()
            lazy = pattern.startswith("?", place)
            place += lazy
            _repeat(groups[-1], inner, repeat)
            inner = None
            continue
        token = {"\\": _ESCAPE, "[": _CLASS, "(": _GROUP}.get(char)
        match = token.match(pattern, place) if token else None
        if token and match is None:
            token_text = pattern[place : place + 3]
            raise ValueError(f"{token_text!r} at character {place + 1} is not supported in regular expressions")
        if char == "(":
            begin = match[0] if match else ""
            groups.append(_Group(folded=groups[-1].folded or begin == "(?i:"))
            inner = None
        elif char == ")":
            if len(groups) == 1:
                raise ValueError("a ) without its ( in the regular expression")
            inner = groups.pop()
            groups[-1].take_in(inner)
            groups[-1].branches[-1].append(inner.tree())
        elif char == "|":
            groups[-1].varies = True
            groups[-1].branches.append([])
            inner = None
        else:
            text = match[0] if match else char
            is_anchor = text in ("^", "$", "\\A", "\\b", "\\B")
            groups[-1].branches[-1].append(Anchor(text) if is_anchor else Atom(text, groups[-1].folded))
            inner = None if char in "^$" else _Group()
        place = match.end() if match else place + 1
    if len(groups) > 1:
        raise ValueError("a ( without its ) in the regular expression")
    return groups[0].tree()


def _repeat(group: _Group, inner: _Group, repeat: re.Match[str]) -> None:
    low, comma, high = repeat.groups()
    endless = repeat[0] in "*+" or bool(comma and high is None)
    most = 1 if repeat[0] == "?" else int(high or low or 0)
    if (endless and inner.varies) or (most > 1 and inner.endless) or (most > _MOST_ROUNDS and inner.varies):
        raise ValueError(
            "the regular expression repeats a group that holds a choice or a repeat: that can take forever"
        )
    group.varies = group.varies or endless or repeat[0] == "?" or bool(comma)
    group.endless = group.endless or endless
    least = int(low) if low else int(repeat[0] == "+")
    part = group.branches[-1].pop()
    group.branches[-1].append(Repeat(part, least, None if endless else max(most, least)))
