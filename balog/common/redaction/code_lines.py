"""Find source lines in tracebacks, where literals are values, but names and calls are code."""

from __future__ import annotations

import re
from bisect import bisect_right

_PLACE = re.compile(r"^([ \t|+]*)File \"[^\"\n]{1,1000}\", line \d+[^\n]*\n", re.MULTILINE)
_STRUCTURE = re.compile(
    r"\n(?=[ \t|+]*(?:File \"|Traceback \(|During handling of|The above exception was|\[Previous line repeated)"
    r"|[ \t|+]*[A-Za-z_][\w.]{0,200}(?:Error|Exception|Warning|Interrupt|Exit|Group|Iteration|Timeout)\b)"
)
_MAX_LINES = 20
_LITERAL = re.compile(r"[bBuUrRfF]{0,2}(\"{3}|'{3}|\"|')")
_ADDED = re.compile(r"\s*(?:\+\s*)?[bBuUrRfF]{0,2}(\"{3}|'{3}|\"|')")
_NUMBER = re.compile(r"-?\d[\w.]*")
_CALL = re.compile(r"[\w.]{1,200}\(\s{0,4}(?=[bBuUrRfF]{0,2}[\"'])")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_QUOTES = re.compile(r"\\.|([\"'])")
_VALUES = re.compile(r"[\"'0-9]")


class CodeLines:
    """The source lines of a text: those below ``File "…", line 1, in …``.

    Args:
        text: any text, with or without a traceback.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._stops: list[int] = []
        if 'File "' not in text:
            return
        for frame in _PLACE.finditer(text):
            self._add(frame.end(), len(frame[1]))
        self._stops = [match.start() for match in _STRUCTURE.finditer(text)]

    def _add(self, at: int, indent: int) -> None:
        """Add the following lines that are indented further than the line ``File …``."""
        text = self._text
        for _ in range(_MAX_LINES):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            begin = text[at : at + indent + 1]
            if len(begin) <= indent or begin.strip(" \t|+") or text.startswith('File "', at + indent):
                return
            self._begins.append(at)
            self._ends.append(end)
            at = end + 1

    def end_of_line(self, at: int) -> int:
        """Return the end of the source line at an index; 0 outside source lines."""
        number = bisect_right(self._begins, at) - 1
        return self._ends[number] if number >= 0 and at <= self._ends[number] else 0

    def is_in_literal(self, at: int) -> bool:
        """Return whether an index in a source line is inside a quoted text."""
        line = self._text[self._begins[bisect_right(self._begins, at) - 1] : at]
        quote = ""
        for match in _QUOTES.finditer(line):
            if not quote:
                quote = match[1] or ""
            elif match[1] == quote:
                quote = ""
        return bool(quote)

    def end_of_text(self, at: int) -> int:
        """Return the end of a value without a closing quote: before the next line of the traceback."""
        number = bisect_right(self._stops, at)
        return self._stops[number] if number < len(self._stops) else len(self._text)

    def value(self, at: int, end: int) -> tuple[int, int]:
        """Return the span of the literal at an index of a source line; an empty span for a name."""
        text = self._text
        if call := _CALL.match(text, at, end):
            literal = _LITERAL.match(text, call.end(), end)
            begin, close = self._literal(literal, end) if literal else (at, at)
            return (begin, begin) if _VARIABLE.fullmatch(text, begin, close) else (begin, close)
        if literal := _LITERAL.match(text, at, end):
            return self._literal(literal, end)
        if text.startswith(("[", "{", "("), at):
            return self._bracket(at, end)
        number = _NUMBER.match(text, at, end)
        return number.span() if number else (at, at)

    def _literal(self, opening: re.Match[str], end: int) -> tuple[int, int]:
        """Return the span of a literal, and of those that are added to it, without the first and the last quote."""
        begin = opening.end()
        while True:
            close = self._end_of_literal(opening, end)
            if close is None:
                return begin, end
            following = _ADDED.match(self._text, close + len(opening[1]), end)
            if following is None:
                return begin, close
            opening = following

    def _end_of_literal(self, opening: re.Match[str], end: int) -> int | None:
        quote, begin = opening[1], opening.end()
        at = begin
        while (at := self._text.find(quote, at, end)) >= 0:
            slashes = at - begin - len(self._text[begin:at].rstrip("\\"))
            if slashes % 2 == 0:
                return at
            at += 1
        return None

    def _bracket(self, at: int, end: int) -> tuple[int, int]:
        depth = 0
        for index in range(at, end):
            char = self._text[index]
            depth += (char in "[{(") - (char in ")}]")
            if not depth:
                return (at, index + 1) if _VALUES.search(self._text, at, index) else (at, at)
        return (at, end) if _VALUES.search(self._text, at, end) else (at, at)
