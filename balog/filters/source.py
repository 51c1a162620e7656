"""The text of an expression: parse it by sqlglot within limits, and raise errors with positions in it."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError

from balog.common.errors import ConfigError
from balog.common.text import cut, printable

MAX_TEXT = 16 * 1024
"""Bytes of an expression in UTF-8."""

MAX_NESTING = 32
"""Parentheses, brackets and CASEs inside each other: the parser below takes many Python frames for each."""

MARK = "\0"
"""Ends a name that the parser would otherwise take for something else."""

# Tokens that no expression has, by name: the set of them differs between releases of sqlglot.
_REFUSED_TOKENS = {
    "SEMICOLON": "a ; ends a statement",
    "SELECT": "SELECT makes a subquery or a statement",
    "WITH": "WITH makes a statement",
    "PLACEHOLDER": "? is a placeholder",
    "PARAMETER": "@ makes a placeholder",
    "COLON": ": makes a placeholder",
    "ARROW": "-> makes a lambda or a JSON path",
    "DARROW": "->> makes a JSON path",
    "FARROW": "=> names an argument",
    "OVER": "OVER makes a window",
    "L_BRACE": "{ makes an object or a template",
    "BLOCK_START": "{% makes a template",
}
_OPENING = frozenset({"L_PAREN", "L_BRACKET", "CASE"})
_CLOSING = frozenset({"R_PAREN", "R_BRACKET"})
_ARRAYS = frozenset({"ARRAY", "LIST"})
_WORD = re.compile(r"[^\W\d]")
_PREFIXES = frozenset({"NOT", "DASH", "PLUS", "TILDE", "INTERVAL"})

# Flags with which sqlglot notes how something was spelled, not what it means.
_HARMLESS = frozenset(
    {"safe", "typed", "quoted", "is_string", "is_nvl", "coalesce", "returns_list_for_maps", "big_int"}
)


class Source:
    """The text of an expression. ``parse`` parses it; ``refuse`` raises a ConfigError with a position in it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def parse(self) -> exp.Expression:
        """Return sqlglot's tree.

        Raises:
            ConfigError: the text is empty, too long, nested too deep, or no expression.
        """
        try:
            size = len(self._text.encode())
        except UnicodeEncodeError as error:
            self.refuse("a lone surrogate is no character", error.start)
        if size > MAX_TEXT:
            raise ConfigError(f"an expression has at most {MAX_TEXT} bytes; this one has {size}")
        if MARK in self._text:
            self.refuse("a NUL is no part of an expression", self._text.index(MARK))
        dialect = Dialect.get_or_raise(None)
        try:
            tokens = dialect.tokenize(self._text)
        except TokenError as error:
            raise ConfigError(f"cannot be read as an expression: {short_line(str(error))}") from None
        tokens = self._checked(tokens)
        try:
            parsed: Any = dialect.parser().parse_into(exp.Condition, tokens, self._text)[0]
        except ParseError as error:
            self._refuse_unparsed(error)
        except (SqlglotError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise ConfigError(f"cannot be read as an expression: {short_line(str(error))}") from None
        return parsed  # type: ignore[no-any-return]

    def _checked(self, tokens: list[Any]) -> list[Any]:
        """Return the tokens, each word after a dot as a name, even if SQL reserves it.

        Raises:
            ConfigError: a token is not in the language.
        """
        if not tokens:
            raise ConfigError("an empty expression; leave it out to take everything")
        checked: list[Any] = []
        open_now, prefixes = 0, 0
        for before, token, behind in zip([None, *tokens], tokens, [*tokens[1:], None]):
            is_key = before is not None and before.token_type is TokenType.DOT and _WORD.match(token.text) is not None
            is_name = is_key and token.token_type is not TokenType.STRING
            name = "IDENTIFIER" if is_name else token.token_type.name
            if name in _REFUSED_TOKENS:
                self.refuse(f"{_REFUSED_TOKENS[name]}; an expression is one condition over one event", token.start)
            # A CASE stays open for good: END may as well be a name, and the parser's stack must not be at its mercy.
            open_now += (name in _OPENING) - (name in _CLOSING)
            prefixes = prefixes + 1 if name in _PREFIXES else 0
            if open_now > MAX_NESTING or prefixes > MAX_NESTING:
                self.refuse(f"more than {MAX_NESTING} parentheses or CASEs inside each other", token.start)
            is_array = token.text.upper() in _ARRAYS and behind is not None and behind.text == "["
            if is_array and token.token_type is not TokenType.STRING:  # else sqlglot takes it for an array written out
                checked.append(_name_token(token, MARK))
            else:
                checked.append(_name_token(token) if is_name else token)
        return checked

    def refuse(self, reason: str, position: int | exp.Expression) -> NoReturn:
        """Raise a ConfigError that begins with a position: an offset in characters, or a node of sqlglot's tree."""
        start = position if isinstance(position, int) else _start(position)
        if start is None:
            raise ConfigError(reason)
        before = self._text[:start]
        line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
        where = f"column {column}" if "\n" not in self._text.strip() else f"line {line}, column {column}"
        raise ConfigError(f"{where}: {reason}")

    def _refuse_unparsed(self, error: ParseError) -> NoReturn:
        details = error.errors[0] if error.errors else {}
        description = short_line(str(details.get("description") or "nothing that can be read"))
        near = short_line(details.get("highlight") or "")
        hint = "; a name that is a word of SQL goes in double quotes" if near.isidentifier() else ""
        if "Invalid expression" in description:
            description = f"{near!r} is not expected here{hint}"
        elif description.startswith("Required keyword"):
            description = f"something is missing at {near!r}{hint}"
        line, last = details.get("line"), details.get("col")
        if not isinstance(line, int) or not isinstance(last, int):
            raise ConfigError(description) from None
        column = max(last - len(details.get("highlight") or "x") + 1, 1)
        where = f"column {column}" if "\n" not in self._text.strip() else f"line {line}, column {column}"
        raise ConfigError(f"{where}: {description}") from None

    def allow(self, node: exp.Expression, *known: str) -> None:
        """Reject a node with other arguments than these."""
        for key, value in node.args.items():
            if value and key not in known and key not in _HARMLESS:
                name = type(node).__name__.upper()
                self.refuse(f"{name} has no {key.replace('_', ' ')} in this language", node)


def _name_token(token: Any, mark: str = "") -> Token:
    """Return a word as a name, even if SQL reserves it."""
    return Token(TokenType.IDENTIFIER, token.text + mark, token.line, token.col, token.start, token.end, token.comments)


def _start(node: exp.Expression) -> int | None:
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) if starts else None


def short_line(text: str) -> str:
    """Return a text on one line, cut at 160 characters, for a message."""
    return cut(printable(text[:161], " "), 160)
