"""Find secrets in text: tokens of known forms, and values after a secret's name (``password=…``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from balog.redaction.code_lines import CodeLines
from balog.redaction.names import SecretNames, compile_expression, fold
from balog.redaction.patterns import SECRET_PATTERNS
from balog.redaction.tokens import TOKEN_PATTERN, TOKENS, by_first, has_token


def _any_of(hints: Iterable[str]) -> re.Pattern[str]:
    return re.compile(by_first(dict.fromkeys(hints)))


_NO_SECRETS = frozenset(["", "none", "null", "nil", "undefined", "true", "false", "yes", "no"])


def is_no_secret(value: Any) -> bool:
    """Return whether a value cannot be a secret: None, a boolean or empty."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)) and not value:
        return True
    return isinstance(value, str) and len(value) <= 9 and value.lower() in _NO_SECRETS


_QUOTE = re.compile(r"[bBuUrR]{0,2}(\\{0,7})([\"'`])")
_BRACKET = re.compile(r"[\[\]{}]")
# A bare value includes , ; & and quotes, except where the following characters show that they end it.
_BARE = re.compile(r"(?:[^\s\"'`&;,]|[&;,](?!\s|$|[\w.%-]{1,40}[=:])|[\"'`](?![\s,;:)\]}>&\\]|$))+")
_HEADER = re.compile(r"(?:[A-Za-z][\w-]{0,30}[ \t]{1,4})?\S+(?:(?<=[;,])[ \t]{1,2}\S+)*")
_HEADER_NAMES = ("authorization", "cookie", "cookies")
_LONGEST_ELEMENT = 8192
_FLAG = re.compile(r"(?:\A|[\s\"'=\[(,])--[\w.-]{0,64}\Z")


_MOST_ADJOINING = 8
"""The number of secrets without a separator that are replaced after the first one."""


class SecretText:
    """Replaces secrets in text, in time that grows linearly with it.

    Args:
        names: names whose values are replaced. A value follows ``=``, ``:``, ``=>`` or ``:=``. It is a quoted text, a
            list or an object, or a text up to the next white space or ``name=``. The value of a ``--flag``, an XML
            element, and the whole line of an ``Authorization`` or ``Cookie`` are replaced, too.
        patterns: regular expressions; the whole match is replaced, or the group ``secret`` if it has one.
        cards: whether card numbers are replaced, too: 13 to 19 digits, alone or in groups, with a correct check digit.
        replacement: the text that replaces a secret.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, names: SecretNames, patterns: Sequence[str], *, cards: bool, replacement: str) -> None:
        self._names = names
        self._cards = cards
        self._replacement = replacement
        known = [SECRET_PATTERNS[pattern] for pattern in patterns if pattern in SECRET_PATTERNS]
        self._hinted = [(_any_of(one.hints), compile_expression(one.pattern), one.pattern) for one in known]
        self._always = [(compile_expression(one), one) for one in patterns if one not in SECRET_PATTERNS]
        hints = [hint for one in known for hint in one.hints]
        self._hint = _any_of([*names.hints, *hints])
        self._has_token = has_token if TOKEN_PATTERN in patterns else lambda text: False
        self._named = re.compile(
            rf"(?:(?P<name>{by_first(names.expressions)})|(?P<exact>{by_first(names.exact_expressions)}))"
            r"\d{0,6}(?:(?P<xml>>)|(?P<close>(?:[\\\"'`\])]|%\d\d|%\dd){0,6})"
            r"(?:\s{0,4}(?P<sep>=>|:=|={1,2}|:|%\d[ad])\s{0,4}|(?P<loose>[\s,]\s{0,4})))"
        )

    def redact(self, text: str, rules: list[str] | None = None) -> str:
        """Return the text without its secrets; the same object if there are none.

        Args:
            rules: the rule of each secret is appended here.
        """
        new = self._redact_once(text, rules)
        for _ in range(_MOST_ADJOINING):
            before, new = new, new if new is text else self._redact_once(new, rules)
            if new == before:
                break
        return new

    def _redact_once(self, text: str, rules: list[str] | None) -> str:
        """Replace the secrets that begin a word. One that adjoined another begins a word from then on."""
        new = text
        if self._cards:
            new = self._without(new, _card_numbers(new), "cards: a card number", rules)
        for pattern, source in self._always:
            new = self._without(new, _spans(pattern, new), f"patterns: {_short(source)}", rules)
        lower = _lower(new)
        is_token = self._has_token(new)
        if is_token or self._hint.search(lower):
            for hint, pattern, source in self._hinted:
                if is_token if source is TOKEN_PATTERN else hint.search(lower):
                    new = self._without(new, _spans(pattern, new), source, rules)
            new = self._without(new, self._named_values(new, rules), "", None)
        return text if new == text else new

    @property
    def is_hinted(self) -> bool:
        """Whether a text without a hint has no secret; false with additional patterns or cards."""
        return not (self._always or self._cards)

    def has_hint(self, text: str) -> bool:
        """Return whether the text may have a secret of a known form; a cheap check."""
        return self._hint.search(_lower(text)) is not None or self._has_token(text)

    def _without(self, text: str, spans: Iterator[tuple[int, int]], rule: str, rules: list[str] | None) -> str:
        parts: list[str] = []
        done = 0
        for begin, end in spans:
            parts += (text[done:begin], self._replacement)
            if rules is not None and text[begin:end] != self._replacement:
                rules.append(_named_rule(rule, text[begin:end]))
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _named_values(self, text: str, rules: list[str] | None) -> Iterator[tuple[int, int]]:
        lower = _lower(text)
        code = CodeLines(text)
        at = 0
        while found := self._named.search(lower, at):
            at = found.end()
            rule = self._rule_of(text, lower, found)
            if rule is None:
                continue
            if found["loose"] is not None and (
                text.startswith("-", at) or not _FLAG.search(lower[max(0, found.start() - 65) : found.start()])
            ):
                continue
            line_end = code.end_of_line(found.start())
            if found["xml"]:
                begin, end = _xml_value(text, at)
            elif line_end and not code.is_in_literal(at):
                begin, end = code.value(at, line_end)
            elif found["sep"] is not None and found["sep"][0] == "%":
                begin, end = _percent_value(text, at)
            else:
                begin, end = _value(text, at, fold(found["name"] or found["exact"]), line_end or code.end_of_text(at))
            if end > begin:
                if not is_no_secret(text[begin:end].strip("\"'` \t.,;:)]}>\\")):
                    if rules is not None and text[begin:end] != self._replacement:
                        rules.append(rule)
                    yield begin, end
                at = end

    def _rule_of(self, text: str, lower: str, found: re.Match[str]) -> str | None:
        """Return the rule for a name in text. An exact name needs ``=`` after it, or quotes around it."""
        group = "exact" if found["exact"] is not None else "name"
        begin = max(0, found.start() - 64)
        before = _IDENTIFIER.search(text[begin : found.start()])
        name = (before["name"] if before else "") + text[found.start() : found.end(group)]
        rule = self._names.rule_of(name)
        if rule is None or not rule.is_secret:
            return None
        if rule.kind != "suffix":
            separator = found["sep"] or ""
            return str(rule) if separator[:1] in ("=", "%") or (separator and found["close"]) else None
        wider = self._names.rule_of(lower[max(0, found.start() - 40) : found.end(group)])
        return str(rule) if wider is not None and wider.is_secret else None


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 60 else pattern[:60] + "…"


def _named_rule(rule: str, secret: str) -> str:
    if rule == TOKEN_PATTERN:
        name = next((token.name for token in TOKENS if re.match(token.pattern, secret)), "token")
        return f"tokens: {name}"
    return f"patterns: {SECRET_PATTERNS[rule].reason}" if rule in SECRET_PATTERNS else rule


_IDENTIFIER = re.compile(r"(?:(?<=%)[0-9a-fA-F]{2}|(?<!%))(?P<name>[\w.\-]*)\Z")
_PERCENT_VALUE = re.compile(r"(?:%\d[02ad])*((?:[^\s&\"'<>%]|%(?!\d[26cd]|7[dD]|0[aA]))+)")


def _percent_value(text: str, at: int) -> tuple[int, int]:
    found = _PERCENT_VALUE.match(text, at)
    return found.span(1) if found else (at, at)


def _lower(text: str) -> str:
    """Return the text in lower case, with the same length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    group = "secret" if "secret" in pattern.groupindex else 0
    for found in pattern.finditer(text):
        if found.end(group) > found.start(group):
            yield found.span(group)


def _value(text: str, at: int, name: str, stop: int) -> tuple[int, int]:
    """Return the span of a value without its quotes. A value without an end reaches to ``stop``."""
    if quote := _QUOTE.match(text, at):
        return quote.end(), max(quote.end(), _closing_quote(text, quote.end(), quote[2], len(quote[1]), stop))
    if text.startswith(("[", "{"), at):
        depth = 0
        for bracket in _BRACKET.finditer(text, at, stop):
            depth += 1 if bracket[0] in "[{" else -1
            if not depth:
                return at, bracket.end()
        line = text[at + 1 : stop].partition("\n")[0] if stop < len(text) else text[at + 1 : stop]
        return at, (stop if line.strip() else at)
    bare = (_HEADER if name.endswith(_HEADER_NAMES) else _BARE).match(text, at)
    return at, bare.end() if bare else at


def _closing_quote(text: str, begin: int, quote: str, slashes: int, stop: int) -> int:
    """Return the end of a quoted value. In JSON within JSON, backslashes precede its quotes; inner ones have more."""
    at = begin
    while (at := text.find(quote, at, stop)) >= 0:
        before = 0
        while at - before > begin and text[at - before - 1] == "\\":
            before += 1
        if before % (2 * slashes + 2) == slashes:
            return at - slashes
        at += 1
    return stop


def _xml_value(text: str, at: int) -> tuple[int, int]:
    return at, text.find("<", at, at + _LONGEST_ELEMENT)


_CARD = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4}(?:[ -]\d{2,7}){2,4})(?!\d)", re.ASCII)


def _card_numbers(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _CARD.search(text, at):
        begin, end = found.span()
        at = begin + 4
        while end > begin:  # try without its last groups
            if has_card_number(text[begin:end].replace(" ", "").replace("-", "")):
                yield begin, end
                at = end
                break
            end = max(text.rfind(" ", begin, end), text.rfind("-", begin, end))


def has_card_number(digits: str) -> bool:
    """Return whether digits are a payment card's: 13 to 19, of an issuer's range, with a correct Luhn check digit."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456":
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0
