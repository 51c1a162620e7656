"""LIKE patterns, and the subset of regular expressions with the same meaning in Python and in Spark's Java."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct

MAX_PATTERN = 1000
"""Characters of a LIKE pattern or a regular expression."""

MAX_SEARCHED = 65_536
"""A search looks at so many characters of a text at most, from its beginning."""

MAX_STATES = 10_000
_MAX_WORK = 5_000_000  # states × characters of a search: some 0.2 s
_MAX_BYTES = 100 << 20  # of a compiled pattern

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
            end = head.end()
            for piece in middle:
                piece_match = piece.search(text, end)
                if piece_match is None:
                    return False
                end = piece_match.end()
            return len(text) - tail >= end and last.match(text, len(text) - tail) is not None

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
        raise ValueError("ESCAPE expects one character")
    pieces: list[list[str | None]] = [[]]
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, "")
            if not escaped or escaped not in ("%", "_", escape):
                raise ValueError(f"the escape character {escape!r} expects %, _ or itself behind it")
            pieces[-1].append(escaped)
        elif char == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if char == "_" else char)
    kept = [pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[-1:]] if len(pieces) > 1 else pieces
    if folded:
        kept = [[lower for char in piece for lower in (char.lower() if char else (None,))] for piece in kept]
    return LikePattern(tuple(tuple(piece) for piece in kept), folded)


class Regex:
    """A regular expression, searched in linear time by the engine of jsonschema-rs; may be used from any thread.

    Attributes:
        searched: characters of a text that a search looks at, from the beginning.

    Raises:
        ValueError: it is malformed, or unrolls to more than 10,000 states.
    """

    def __init__(self, pattern: str) -> None:
        import jsonschema_rs  # imported for the first pattern

        options = jsonschema_rs.RegexOptions(size_limit=_MAX_BYTES)
        try:
            parsed = _parse(pattern)
            part = parsed.part()
            if part.states > MAX_STATES:
                raise ValueError(f"the regular expression unrolls to more than {MAX_STATES:,} characters")
            re.compile(pattern, re.ASCII)  # it names what is wrong
            self._find = jsonschema_rs.validator_for({"pattern": part.text}, pattern_options=options).is_valid
        except (re.error, OverflowError, RecursionError, jsonschema_rs.ValidationError) as error:
            raise ValueError(f"not a regular expression: {error}") from None
        self._has_end = parsed.has_end
        self.searched = min(MAX_SEARCHED, max(_MAX_WORK // max(part.states, 1), 1))

    def search(self, text: str) -> bool:
        """Return whether the pattern is found in the first ``searched`` characters of a text."""
        text = text[: self.searched]
        try:
            # In Python and Java, ``$`` is also before a line end at the end.
            return self._find(text) or (self._has_end and text.endswith("\n") and self._find(text[:-1]))
        except UnicodeEncodeError:
            return self.search(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))


@lru_cache(maxsize=100)
def compile_regex(pattern: str) -> Regex:
    """Compile a regular expression after a check that Java reads it alike and that it cannot take exponential time.

    Raises:
        ValueError: it is too long, malformed, or uses what the language does not have.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a regular expression has at most {MAX_PATTERN} characters")
    return Regex(pattern)


_GROUP = re.compile(r"\((?:\?i?:)?(?!\?)")
_ESCAPE = re.compile(r"\\(?:[dDwWsSbBAtnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\w\s])", re.ASCII)
_CLASS = re.compile(
    r"\[\^?(?:\\(?:[dDwWsStnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\w\s])|(?!&&|--|~~|\|\|)[^\]\[\\])+\]", re.ASCII
)
_REPEAT = re.compile(r"[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_MOST_ROUNDS = 10


_ITEM = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))|(.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LAST = "\U0010ffff"
_SETS = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r"\x09-\x0d\x20",
    "D": rf"\x00-\x2f\x3a-{_LAST}",
    "W": rf"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-{_LAST}",
    "S": rf"\x00-\x08\x0e-\x1f\x21-{_LAST}",
}
_ANCHORS = {"^": "^", "$": "$", "\\A": "^", "\\b": r"(?-u:\b)", "\\B": r"(?-u:\B)"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _Part:
    """A part of a pattern as the engine reads it, and its characters when counted repeats are written out."""

    text: str
    states: int


@dataclass(slots=True)
class _Group:
    varies: bool = False  # holds a choice or a repeat whose number is not fixed
    endless: bool = False  # holds a repeat without an upper bound
    has_end: bool = False  # holds ``$``
    is_ended: bool = False  # its last branch does
    folded: bool = False
    branches: list[list[_Part]] = field(default_factory=lambda: [[]])

    def add(self, part: _Part, inner: _Group) -> None:
        """Add a part that is not an anchor; ``inner`` is what it holds."""
        if self.is_ended:
            raise ValueError("$ ends a regular expression or an alternative; no character can follow it")
        self.varies = self.varies or inner.varies
        self.endless = self.endless or inner.endless
        self.has_end = self.has_end or inner.has_end
        self.is_ended = inner.has_end
        self.branches[-1].append(part)

    def add_atom(self, text: str) -> None:
        """Add a character, a class or an anchor."""
        if text not in _ANCHORS:
            self.add(_Part(_translated(text, is_folded=self.folded), 1), _Group())
            return
        self.branches[-1].append(_Part(_ANCHORS[text], 1))
        self.has_end = self.has_end or text == "$"
        self.is_ended = self.is_ended or text == "$"

    def begin_branch(self) -> None:
        """Begin another alternative."""
        self.varies, self.is_ended = True, False
        self.branches.append([])

    def repeat_last(self, inner: _Group, repeat: re.Match[str]) -> None:
        """Repeat the last part, which holds ``inner``; reject a repeat that may take exponential time."""
        low, comma, high = repeat.groups()
        endless = repeat[0] in "*+" or bool(comma and high is None)
        most = 1 if repeat[0] == "?" else int(high or low or 0)
        if (endless and inner.varies) or (most > 1 and inner.endless) or (most > _MOST_ROUNDS and inner.varies):
            raise ValueError(
                "the regular expression repeats a group that holds a choice or a repeat: that can take forever"
            )
        if (endless or most > 1) and inner.has_end:
            raise ValueError("the regular expression repeats a group with $")
        self.varies = self.varies or endless or repeat[0] == "?" or bool(comma)
        self.endless = self.endless or endless
        part = self.branches[-1].pop()
        least = int(low) if low else int(repeat[0] == "+")
        states = part.states * max(least + 1 if endless else max(most, least), 1)
        self.branches[-1].append(_Part(f"(?:{part.text}){repeat[0]}", states))

    def part(self) -> _Part:
        """Return the group's alternatives as one part."""
        text = "|".join("".join(part.text for part in branch) for branch in self.branches)
        return _Part(f"(?:{text})", sum(part.states for branch in self.branches for part in branch))


def _translated(atom: str, *, is_folded: bool) -> str:
    """Return an atom of one character, such as ``a``, ``\\d`` or ``[a-z]``, as a class of the engine."""
    if atom == ".":
        return r"[^\x0a]"
    sign = "^" if atom.startswith("[^") else ""
    inside = atom[1 + len(sign) : -1] if atom.startswith("[") else atom
    folded = ""
    if is_folded:
        holds = re.compile(f"[{inside}]", re.ASCII).match
        folded = "".join(char for char in string.ascii_letters if holds(char.swapcase()))
    return f"[{sign}{folded}{''.join(_item(item, len(inside)) for item in _ITEM.finditer(inside))}]"


def _item(item: re.Match[str], length: int) -> str:
    """Return a character or a set of a class; a ``-`` between two stays the sign of a range."""
    code, named, plain = item[1] or item[2], item[3], item[4]
    if named in _SETS:
        return _SETS[named]
    if plain == "-" and item.start() > 0 and item.end() < length:
        return plain
    char = chr(int(code, 16)) if code else plain or _NAMED.get(named, named)
    return f"\\x{ord(char):02x}" if char.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", char)


def _parse(pattern: str) -> _Group:
    """Translate a pattern; reject syntax that Java reads differently, and repeats that may take exponential time."""
    index = len("(?i)") if pattern.startswith("(?i)") else 0
    groups = [_Group(folded=index > 0)]
    inner: _Group | None = None  # what the atom before this place holds; None when there is nothing to repeat
    while index < len(pattern):
        char = pattern[index]
        if char in "*+?{":
            repeat = _REPEAT.match(pattern, index)
            if repeat is None:
                raise ValueError(f"{{ at character {index + 1} of the regular expression begins no repeat; write \\{{")
            if inner is None:
                raise ValueError(f"nothing to repeat at character {index + 1} of the regular expression")
            index = repeat.end()
            lazy = pattern.startswith("?", index)
            index += lazy
            groups[-1].repeat_last(inner, repeat)
            inner = None
            continue
        token = {"\\": _ESCAPE, "[": _CLASS, "(": _GROUP}.get(char)
        match = token.match(pattern, index) if token else None
        if token and match is None:
            token_text = pattern[index : index + 3]
            raise ValueError(f"{token_text!r} at character {index + 1} is not supported in regular expressions")
        if char == "(":
            begin = match[0] if match else ""
            groups.append(_Group(folded=groups[-1].folded or begin == "(?i:"))
            inner = None
        elif char == ")":
            if len(groups) == 1:
                raise ValueError("a ) without its ( in the regular expression")
            inner = groups.pop()
            groups[-1].add(inner.part(), inner)
        elif char == "|":
            groups[-1].begin_branch()
            inner = None
        else:
            text = match[0] if match else char
            inner = None if char in "^$" else _Group()
            groups[-1].add_atom(text)
        index = match.end() if match else index + 1
    if len(groups) > 1:
        raise ValueError("a ( without its ) in the regular expression")
    return groups[0]
