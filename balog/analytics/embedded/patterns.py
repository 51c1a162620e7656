"""Regular expressions of Java as those of RE2, where both match the same texts."""

from __future__ import annotations

import re

from balog.analytics.embedded.values import SparkNeeded

_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_ESCAPES = {"d": "[0-9]", "w": "[0-9A-Za-z_]", "s": r"[ \t\n\x0B\f\r]", "t": r"\t", "n": r"\n", "r": r"\r",
            "D": "[^0-9]", "W": "[^0-9A-Za-z_]", "S": r"[^ \t\n\x0B\f\r]"}  # fmt: skip
_CLASS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r", "t": r"\t", "n": r"\n", "r": r"\r"}
_PIECE = re.compile(
    r"\\(.)|(\[\^?)((?:[^\\\[\]&^]|\\.)+)\]|(\(\?:|\((?!\?)|(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![*+?{])|[)|^.])|([^\\\[\]{}$()*+?])",
    re.DOTALL,
)


def to_re2(pattern: str) -> str:
    r"""Return a pattern for RE2.

    >>> to_re2(r"^tap_\d+\.(a|b)[\w-]*")
    '^tap_[0-9]+\\.(a|b)[0-9A-Za-z_-]*'

    Raises:
        SparkNeeded: the pattern uses something else than literals, classes, groups, ``^ | * + ? .`` and counts.
    """
    made, position = [], 0
    while position < len(pattern):
        found = _PIECE.match(pattern, position)
        if found is None:
            raise SparkNeeded(
                f"a regular expression with {pattern[position : position + 10]!r}, which engines read differently"
            )
        escaped, opening, inside, operator, literal = found.groups()
        if escaped is not None:
            made.append(_escape(escaped, _ESCAPES))
        elif opening is not None:
            made.append(opening + re.sub(r"\\(.)", lambda one: _escape(one[1], _CLASS), inside, flags=re.DOTALL) + "]")
        elif operator == ".":
            made.append(_DOT)
        else:
            made.append(operator or literal)
        position = found.end()
    return "".join(made)


def _escape(symbol: str, known: dict[str, str]) -> str:
    if symbol in known:
        return known[symbol]
    if symbol.isalnum():
        raise SparkNeeded(f"a regular expression with \\{symbol}, which engines read differently")
    return "\\" + symbol
