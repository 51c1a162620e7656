"""Find secrets in text: tokens of known forms, and values after a secret's name (``password=…``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import Any

from balog.common.redaction.code_lines import CodeLines
from balog.common.redaction.names import NameRule, SecretNames, compile_expression, fold
from balog.common.redaction.patterns import SECRET_PATTERNS
from balog.common.redaction.tokens import TOKEN_PATTERN, TOKENS, by_first, has_token
from balog.common.redaction.value_spans import Span, element_span, loose_span, member_span, percent_span, value_span


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


_PLACEHOLDER = re.compile(r"\?|%s|\$\d{1,3}|%\(\w{1,64}\)s?")  # of a parameter in SQL


_MOST_ADJOINING = 8
"""The number of secrets without a separator that are replaced after the first one."""

_MOST_VALUES = 500
"""The number of named values in one text that are replaced one by one. After them, the rest of the text is replaced."""

_ENTITY = re.compile(r"&(?:amp;)?(?:#|quot;|apos;|lt;|gt;|equals;|colon;)")


_ATTRIBUTES = r"(?:\s{1,4}[\w:.\-]{1,64}=(?:\"[^\"<>]{0,256}\"|'[^'<>]{0,256}')){0,8}"
_COLOR = r"\x1b\[[\d;]{0,16}m"  # of a terminal
_SPACE = r"\s{0,4}[ \t]{0,64}"  # aligned values have many


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
        self._hinted = [(_any_of(entry.hints), compile_expression(entry.pattern), entry.pattern) for entry in known]
        self._always = [(compile_expression(regex), regex) for regex in patterns if regex not in SECRET_PATTERNS]
        hints = [*(hint for entry in known for hint in entry.hints), _ENTITY.pattern]
        self._hint = _any_of([*names.hints, *hints])
        self._has_token = has_token if TOKEN_PATTERN in patterns else lambda text: False
        self._named = re.compile(
            rf"(?:(?P<name>{by_first(names.expressions)})|(?P<exact>{by_first(names.exact_expressions)}))"
            rf"\d{{0,6}}(?:\[\d{{1,6}}\])?(?:(?P<xml>{_ATTRIBUTES}>)|(?P<close>(?:[\\\"'`\])]|%\d\d|%\dd|{_COLOR}){{0,6}})"
            rf"(?:{_SPACE}(?P<sep>=>|:=|={{1,2}}|:|%\d[ad]){_SPACE}(?:(?:{_COLOR}){{1,4}}{_SPACE})?|(?P<loose>[\s,]{_SPACE})))"
        )

    def redact(self, text: str, rules: list[str] | None = None) -> str:
        """Return the text without its secrets; the same object if there are none.

        Args:
            rules: the rule of each secret is appended here.

        If entities of HTML hide a secret, the new text is without entities.
        """
        new = self._redact_adjoining(text, rules)
        if "&" in new and _ENTITY.search(new):
            plain = unescape(unescape(new))
            clean = self._redact_adjoining(plain, rules)
            return new if clean is plain else clean
        return new

    def _redact_adjoining(self, text: str, rules: list[str] | None) -> str:
        new = self._redact_once(text, rules)
        for _ in range(_MOST_ADJOINING):
            before, new = new, new if new is text else self._redact_once(new, rules)
            if new == before:
                break
        return new

    def _redact_once(self, text: str, rules: list[str] | None) -> str:
        """Replace the secrets that begin a word. One that adjoined another begins a word from then on."""
        new = text
        lower = _lower(new)
        is_token = self._has_token(new)
        if is_token or self._hint.search(lower):
            for hint, pattern, source in self._hinted:
                if is_token if source is TOKEN_PATTERN else hint.search(lower):
                    new = self._without(new, _spans(pattern, new), source, rules)
            new = self._without(new, self._named_values(new, rules), "", None)
        # Last: an address or a number that is a part of a secret would leave the rest of it.
        if self._cards:
            new = self._without(new, _card_numbers(new), "cards: a card number", rules)
        for pattern, source in self._always:
            new = self._without(new, _spans(pattern, new), f"patterns: {_short(source)}", rules)
        return text if new == text else new

    @property
    def is_hinted(self) -> bool:
        """Whether a text without a hint has no secret; false with additional patterns or cards."""
        return not (self._always or self._cards)

    def has_hint(self, text: str) -> bool:
        """Return whether the text may have a secret of a known form; a cheap check."""
        return self._hint.search(_lower(text)) is not None or self._has_token(text)

    def _without(self, text: str, spans: Iterator[Span], rule: str, rules: list[str] | None) -> str:
        parts: list[str] = []
        done = 0
        for begin, end, quote in spans:
            parts += (text[done:begin], quote, self._replacement, quote)
            if rules is not None and text[begin:end] != self._replacement:
                rules.append(_named_rule(rule, text[begin:end]))
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _named_values(self, text: str, rules: list[str] | None) -> Iterator[Span]:
        lower = _lower(text)
        code = CodeLines(text)
        at = count = 0
        while match := self._named.search(lower, at):
            at = match.end()
            rule = self._rule_of(text, lower, match)
            span = self._span(text, match, code) if rule is not None else None
            if rule is None or span is None or span.end <= span.begin:
                continue
            value = text[span.begin : span.end].strip("\"'` \t.,;:)]}>\\")
            if not (is_no_secret(value) or _PLACEHOLDER.fullmatch(value)):
                if rules is not None and text[span.begin : span.end] != self._replacement:
                    rules.append(str(rule))
                count += 1
                if count > _MOST_VALUES:
                    yield Span(span.begin, len(text))
                    return
                yield span
            at = span.end

    def _span(self, text: str, match: re.Match[str], code: CodeLines) -> Span | None:
        """Return the span of the value after a name; None if the text has none."""
        at, line_end = match.end(), code.end_of_line(match.start())
        stop = line_end or code.end_of_text(at)
        if match["loose"] is not None:
            return loose_span(text, match.start(), at, stop, is_quoted=_KEY_QUOTE.search(match["close"]) is not None)
        if match["xml"]:
            return element_span(text, at)
        if line_end and not code.is_in_literal(at):
            return Span(*code.value(at, line_end))
        if match["sep"][0] == "%":
            return percent_span(text, at)
        if match["sep"] in (":", "=>") and (
            quote := _KEY_QUOTE.search(text[match.start("close") : match.end("close")])
        ):
            return member_span(text, at, quote[0], stop)
        name = fold(match["name"] or match["exact"])
        return value_span(text, at, name, stop, is_assigned=match["sep"] == "=")

    def _rule_of(self, text: str, lower: str, match: re.Match[str]) -> NameRule | None:
        """Return the rule for a name in text.

        An exact name needs ``=`` after it, quotes or a tag around it, or to be a flag: ``pass: 12`` is no secret. After
        a name that an expression finds, ``:`` is enough: ``db_pass: …``.
        """
        group = "exact" if match["exact"] is not None else "name"
        before = _name_before(text[max(0, match.start() - 64) : match.start()])
        rule = self._names.rule_of(before + text[match.start() : match.end(group)])
        if rule is None or not rule.is_secret:
            return None
        if rule.kind != "suffix":
            separator = match["sep"] or ""
            start = match.start() - len(before)
            is_clear = separator[:1] in ("=", "%") or (separator and (match["close"] or rule.kind == "expression"))
            is_tag = match["xml"] and text[max(0, start - 1) : start] == "<"
            return rule if is_clear or is_tag or match["loose"] is not None else None
        wider = self._names.rule_of(lower[max(0, match.start() - 40) : match.end(group)])
        return rule if wider is not None and wider.is_secret else None


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 60 else pattern[:60] + "…"


def _named_rule(rule: str, secret: str) -> str:
    if rule == TOKEN_PATTERN:
        name = next((token.name for token in TOKENS if re.match(token.pattern, secret)), "token")
        return f"tokens: {name}"
    return f"patterns: {SECRET_PATTERNS[rule].reason}" if rule in SECRET_PATTERNS else rule


_KEY_QUOTE = re.compile(r"\\{0,7}[\"']")
_NAME_BACKWARDS = re.compile(r"([\w.\-]*)(%?)")
_HEX_DIGITS = re.compile(r"[0-9a-fA-F]{2}")


def _name_before(text: str) -> str:
    """Return the name at the end of a text, without the digits of a percent-encoded character before it."""
    match = _NAME_BACKWARDS.match(text[::-1])
    name = match[1][::-1] if match else ""
    if match and match[2]:
        return name[2 if _HEX_DIGITS.match(name) else 1 :]
    return name


def _lower(text: str) -> str:
    """Return the text in lower case, with the same length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        if match.end(group) > match.start(group):
            yield Span(*match.span(group))


_CARD = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4}(?:[ -]\d{2,7}){2,4})(?!\d)", re.ASCII)


def _card_numbers(text: str) -> Iterator[Span]:
    at = 0
    while match := _CARD.search(text, at):
        begin, end = match.span()
        at = begin + 4
        while end > begin:  # try without its last groups
            if has_card_number(text[begin:end].replace(" ", "").replace("-", "")):
                yield Span(begin, end)
                at = end
                break
            end = max(text.rfind(" ", begin, end), text.rfind("-", begin, end))


def has_card_number(digits: str) -> bool:
    """Return whether digits are a payment card's: 13 to 19, of an issuer's range, with a correct Luhn check digit."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456":
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0
