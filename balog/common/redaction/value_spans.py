"""Find the end of a value that follows a secret's name in text, in the notation that the text around it shows."""

from __future__ import annotations

import re
from typing import NamedTuple

_QUOTE = re.compile(r"[bBuUrR]{0,2}(\\{0,7})([\"'`])")
_TRIPLE = re.compile(r"[bBuUrR]{0,2}(\\{0,7}[\"'])\1\1")  # of TOML and Python
_DOUBLED = re.compile(r'""(?=[^\s",;:/)}\]>&])')  # of JSON in CSV
_BRACKET = re.compile(r"[\[\]{}]")
# A bare value includes , ; & and quotes, except where the following characters show that they end it.
_BARE = re.compile(
    r"(?:[^\s\"'`&;,\x1b]|(?<=\\)\n(?=\S)|\x1b(?!\[)|[&;,](?!\s|$|[\"'\\]{0,3}[\w.%-]{1,40}[\"'\\]{0,3}[=:])|[\"'`](?![\s,;:)\]}>&\\]|$))+"
)
_HEADER = re.compile(r"(?:[A-Za-z][\w-]{0,30}[ \t]{1,4})?\S+(?:(?<=[;,])[ \t]{1,2}\S+)*")
_PARAMETER = re.compile(r"(?:[^\s&]|&(?![\w.%-]{1,40}=))+(?:(?<=[;,])[ \t]{1,2}(?:[^\s&]|&(?![\w.%-]{1,40}=))+)*")
_NO_HEADER = re.compile(r"(?i:none|null|nil|true|false)(?=[\s,;)}\]]|$)")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]{0,9}\n([ \t]{1,40})([^\n]*(?:\n(?:\1[^\n]*|[ \t]{0,40}(?=\n)))*)")
_HEADER_NAMES = ("authorization", "cookie", "cookies")
_LONGEST_ELEMENT = 8192
# After a quoted key: a literal of JSON or Python, up to the next sign of its structure.
_LITERAL = re.compile(r"[^\s,;:{}\[\]()\"'`\\]+")
_PART = re.compile(r"(\\{0,7})([\"'])|([\[({])|[\])}]")
_PERCENT_VALUE = re.compile(r"(?:%\d[02ad])*((?:[^\s&\"'<>%]|%(?!\d[26cd]|7[dD]|0[aA]))+)")
_FLAG = re.compile(r"(?:\A|(?<=[\s\"'=\[(,]))--[\w.-]{0,64}\Z")
_PROSE = re.compile(r"(?:is|are|was|must|needs?|has|cannot|can't|requires?|or|and|not|with|without) [a-z-]")
_BEFORE_PAIR = re.compile(r"\([bBuUrR]{0,2}\\{0,7}[\"'][\w.\-]{0,64}\Z")
_BEFORE_NAMED = re.compile(
    r"\b(?:name|key|field|header|param|parameter|variable)\\{0,7}[\"']\s{0,64}:\s{0,64}\\{0,7}[\"'][\w.\-]{0,64}\Z"
)
_VALUE_KEY = re.compile(r"\s{0,64}\\{0,7}[\"']value\\{0,7}[\"']\s{0,64}:\s{0,64}")
_INPUT_VALUE = re.compile(r"[^\n]{0,400}?\binput_value=")


class Span(NamedTuple):
    """The part of a text to replace. ``quote`` is put around the replacement, so that the text keeps its notation."""

    begin: int
    end: int
    quote: str = ""


def value_span(text: str, at: int, name: str, stop: int, *, is_assigned: bool) -> Span:
    """Return the span of a value without its quotes. A value without an end reaches to ``stop``.

    Args:
        text: the whole text.
        at: where the value begins.
        name: the name before it, folded.
        stop: the end of a value that has no end.
        is_assigned: whether ``=`` is between the two.
    """
    if quoted := _quoted_span(text, at, stop):
        return quoted
    if text.startswith(("[", "{"), at):
        depth = 0
        for bracket in _BRACKET.finditer(text, at, stop):
            depth += 1 if bracket[0] in "[{" else -1
            if not depth:
                return Span(at, bracket.end())
        line = text[at + 1 : stop].partition("\n")[0] if stop < len(text) else text[at + 1 : stop]
        return Span(at, stop if line.strip() else at)
    if block := _BLOCK.match(text, at):
        return Span(*block.span(2))
    if name.endswith(_HEADER_NAMES) and _NO_HEADER.match(text, at):
        return Span(at, at)
    form = (_PARAMETER if is_assigned else _HEADER) if name.endswith(_HEADER_NAMES) else _BARE
    bare = form.match(text, at)
    return Span(at, bare.end() if bare else at)


def member_span(text: str, at: int, quote: str, stop: int) -> Span:
    """Return the span of the value of a quoted key, as in JSON or in a ``repr``.

    Args:
        text: the whole text.
        at: where the value begins.
        quote: the key's quote, with the backslashes before it.
        stop: the end of a value that has no end.
    """
    if quoted := _quoted_span(text, at, stop):
        return quoted
    literal = _LITERAL.match(text, at)
    opening = literal.end() if literal else at
    if not text.startswith(("(", "[", "{"), opening):
        return Span(at, opening, quote)
    end = _closing_bracket(text, opening, stop)
    return Span(at, end, quote) if end else Span(at, stop if text[opening + 1 : stop].strip() else at)


def loose_span(text: str, begin: int, at: int, stop: int, *, is_quoted: bool) -> Span | None:
    """Return the span of a value that no separator connects to its name; None if the text does not show a value.

    The forms are ``--password VALUE``, ``('password', 'VALUE')``, ``{"name": "password", "value": "VALUE"}`` and the
    lines of pydantic's errors, ``password`` and ``… input_value='VALUE'``.

    Args:
        text: the whole text.
        begin: where the name begins.
        at: where the next word begins.
        stop: the end of a value that has no end.
        is_quoted: whether a quote is after the name.
    """
    before = text[max(0, begin - 130) : begin]
    if "--" in before and _FLAG.search(before):
        if text.startswith("-", at) or _PROSE.match(text, at):
            return None
        span = value_span(text, at, "", stop, is_assigned=False)
        value = text[span.begin : span.end]
        in_brackets = before.rfind("[--") > before.rfind("]")
        is_usage = in_brackets and value.endswith("]") and not value.startswith("[")  # [--password PASSWORD]
        return span._replace(end=span.end - 1) if is_usage else span
    if is_quoted and _BEFORE_PAIR.search(before):
        span = value_span(text, at, "", stop, is_assigned=False)
        is_pair = span.begin > at and re.match(r"\\{0,7}[\"']\s{0,4}\)", text[span.end : span.end + 16])
        return span if is_pair else None
    if is_quoted and _BEFORE_NAMED.search(before):
        key = _VALUE_KEY.match(text, at)
        return member_span(text, key.end(), '"', stop) if key else None
    if "\n" in text[begin:at] and text[at - 1] in " \t" and (match := _INPUT_VALUE.match(text, at)):
        return value_span(text, match.end(), "", stop, is_assigned=False)
    return None


def _quoted_span(text: str, at: int, stop: int) -> Span | None:
    """Return the span of a quoted value without its quotes; None without an opening quote."""
    if quote := _TRIPLE.match(text, at):
        end = text.find(quote[1] * 3, quote.end(), stop)
    elif (quote := _DOUBLED.match(text, at)) and (end := text.find('""', quote.end(), stop)) >= 0:
        pass
    elif quote := _QUOTE.match(text, at):
        end = _closing_quote(text, quote.end(), quote[2], len(quote[1]), stop)
    else:
        return None
    begin = quote.end()
    return Span(begin, stop if end < 0 else max(begin, end))


def percent_span(text: str, at: int) -> Span:
    """Return the span of a value in a URL that is encoded twice."""
    match = _PERCENT_VALUE.match(text, at)
    return Span(*match.span(1)) if match else Span(at, at)


def element_span(text: str, at: int) -> Span:
    """Return the span of the text of an XML element."""
    return Span(at, text.find("<", at, at + _LONGEST_ELEMENT))


def _closing_bracket(text: str, at: int, stop: int) -> int:
    """Return the end of a list, object, tuple or call, 0 without one. Brackets in quotes are text."""
    depth = 0
    while part := _PART.search(text, at, stop):
        at = part.end()
        if part[2]:
            at = min(stop, _closing_quote(text, at, part[2], len(part[1]), stop) + len(part[1]) + 1)
            continue
        depth += 1 if part[3] else -1
        if not depth:
            return at
    return 0


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
