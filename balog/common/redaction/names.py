"""Match names of keys whose values are secret, by exact names, suffixes and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from balog.common.errors import ConfigError

_SEPARATORS = re.compile(r"[\s_.\-\"'()\[\]<>]+")
_NO_SEPARATORS = {char: None for char in range(128) if chr(char) != "\n" and _SEPARATORS.fullmatch(chr(char))}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\s_.\-A-Z]+")
_LAST_PART = re.compile(r"[\"'()\[\]<>\s]+")
_LONGEST_NAME = 100
_MAX_KNOWN = 4096
_AFTER_NAME = ("=", " =", '"', "'", "%", "\\", ":", ">")  # one of these follows an exact name in a text


def fold(name: str) -> str:
    """Return the name's last 100 characters in lower case, without separators and digits at its end."""
    return _SEPARATORS.sub("", name[-_LONGEST_NAME:].lower()).rstrip("0123456789")


def _fold_rule(name: str) -> str:
    """Return a rule's name folded with its digits, because ``s3`` is not ``s``."""
    return _SEPARATORS.sub("", name.lower())


def _expression(words: Iterable[str]) -> str:
    return r"[_\-. ]?".join(words)


class NameRule(NamedTuple):
    """A rule for names.

    Attributes:
        kind: ``name`` matches exactly that name, ``suffix`` every name that ends with it, ``expression`` every name in
            which the regular expression is found.
        text: the name, the suffix or the expression.
        is_secret: False keeps values that another rule would replace.
        ends: with one of these, in lower case and before digits, ends every name that the expression matches; empty if
            unknown.
    """

    kind: str
    text: str
    is_secret: bool = True
    ends: tuple[str, ...] = ()

    def __str__(self) -> str:
        form = {"name": "names", "suffix": "suffixes", "expression": "expressions"}[self.kind]
        return f"{form}: {self.text}"


class SecretNames:
    """Names whose values are secret.

    Matching ignores case, ``_ - .``, brackets, quotes, spaces and digits at the end. The suffix ``token`` matches
    ``token``, ``GITHUB_TOKEN``, ``accessToken``, ``user[token]`` and ``token2``, but not ``tokens`` or ``token_count``.
    An exact name takes precedence over an expression, an expression over a suffix, and a longer suffix over a shorter.

    Args:
        rules: a later rule for the same name replaces an earlier one.

    Raises:
        ConfigError: a name has no letter, or an expression is not a regular expression.
    """

    def __init__(self, rules: Iterable[NameRule]) -> None:
        self._known: dict[str, NameRule | None] = {}
        self._exact: dict[str, NameRule] = {}
        self._suffixes: dict[str, NameRule] = {}
        self._expressions: list[tuple[re.Pattern[str], NameRule]] = []
        for rule in rules:
            if rule.kind == "expression":
                self._expressions.insert(0, (compile_expression(rule.text), rule))
                continue
            folded = _fold_rule(rule.text)
            if not any(char.isalpha() for char in folded):
                raise ConfigError(f"{rule.text!r} is not the name of a key; it needs a letter")
            (self._exact if rule.kind == "name" else self._suffixes)[folded] = rule
        self._folded = sorted(self._suffixes, key=len, reverse=True)
        ends = [*self._exact, *self._suffixes, *(end for _, rule in self._expressions for end in rule.ends)]
        self._end_length = min((3, *map(len, ends)))
        self._ends = frozenset(end[-self._end_length :] for end in ends)
        self._by_suffix = self._words(self._suffixes)
        by_name = self._words(self._exact)
        self.expressions = list(self._by_suffix)
        """Regular expressions that find each secret suffix in a lower-case text."""
        self.exact_expressions = list(by_name)
        """The same for exact names."""
        exact_hints = _hints_after([name for name, rule in self._exact.items() if rule.is_secret])
        self.hints = list(dict.fromkeys([*self._by_suffix.values(), *exact_hints]))
        """Regular expressions of which at least one matches every text with such a name, in lower case."""

    def _words(self, rules: dict[str, NameRule]) -> dict[str, str]:
        """Return an expression and a hint for each secret name, except those that a shorter suffix finds."""
        secret = [folded for folded, rule in rules.items() if rule.is_secret]
        shortest = [name for name in secret if not any(name != end and name.endswith(end) for end in secret)]
        if rules is self._exact:
            shortest = secret
        hints: dict[str, str] = {}
        for folded in sorted(shortest, key=len, reverse=True):
            words = [word.lower() for word in _WORDS.findall(rules[folded].text)]
            first, *rest = [_hint_of(words[0]), *map(re.escape, words[1:])]
            hints[_expression(map(re.escape, words))] = _expression([first, *rest])
        return hints

    def __contains__(self, name: str) -> bool:
        rule = self.rule_of(name)
        return rule is not None and rule.is_secret

    def rule_of(self, name: str) -> NameRule | None:
        """Return the rule that decides about a name; None if no rule matches. The rules of short names are cached."""
        if name in self._known:
            return self._known[name]
        rule = self._find_rule(name)
        if len(name) <= _LONGEST_NAME:
            if len(self._known) >= _MAX_KNOWN:
                self._known = {}
            self._known[name] = rule
        return rule

    def _find_rule(self, name: str) -> NameRule | None:
        folded = fold(name)
        with_digits = _SEPARATORS.sub("", name[-_LONGEST_NAME:].lower())
        for form in (with_digits, folded, fold(_last_part(name))):
            if form in self._exact:
                return self._exact[form]
        for expression, rule in self._expressions:
            if expression.search(name):
                return rule
        return next(
            (self._suffixes[end] for end in self._folded if folded.endswith(end) or with_digits.endswith(end)), None
        )

    def plainly_harmless(self, names: list[str]) -> list[str]:
        """Return those of many names that a quick check of their ends finds to match no rule; others may not either."""
        text = "\n".join(names)
        if self.tell_digits_apart or not text.isascii() or text.count("\n") != len(names) - 1:
            return []
        length, ends = self._end_length, self._ends
        folded = text.lower().translate(_NO_SEPARATORS).split("\n")
        harmless = [
            name
            for name, form in zip(names, folded, strict=True)
            if form[-length:] not in ends and form.rstrip("0123456789")[-length:] not in ends
        ]
        for expression, rule in self._expressions:
            if not rule.ends:
                harmless = [name for name in harmless if not expression.search(name)]
        return harmless

    @cached_property
    def tell_digits_apart(self) -> bool:
        """Whether a rule depends on a digit."""
        texts = (*self._exact, *self._suffixes, *(rule.text for _, rule in self._expressions))
        return any(char.isdigit() for text in texts for char in text)


def _last_part(name: str) -> str:
    """Return the last part of a name in brackets or quotes, such as ``password`` of ``user['password']``."""
    parts = [part for part in _LAST_PART.split(name[-_LONGEST_NAME:]) if part]
    return parts[-1] if parts else ""


_RAREST_FIRST = "zjqxkvbpgwyfmcudlhrsnioate"


def _hint_of(word: str) -> str:
    """Return a regular expression that finds a lower-case word by its rarest letter first."""
    at = min(range(len(word)), key=lambda index: _RAREST_FIRST.find(word[index]))
    before = f"(?<={re.escape(word[: at + 1])})" if at else ""
    return re.escape(word[at]) + before + re.escape(word[at + 1 :])


def _hints_after(names: list[str]) -> list[str]:
    """Return cheap regular expressions that find exact names in a text by the characters after them."""
    ends = "".join(sorted({re.escape(name[-1]) for name in names}))
    hints = []
    for after in _AFTER_NAME if names else ():
        any_name = "|".join(f"(?<={re.escape(name[-4:] + after)})" for name in names)
        hints.append(f"{re.escape(after[-1])}(?<=[{ends}]{re.escape(after)})(?:{any_name})")
    return [*hints, r"-(?<=--)(?=\w)"] if names else hints


def compile_expression(expression: str) -> re.Pattern[str]:
    """Compile a regular expression.

    Raises:
        ConfigError: the expression is invalid, or matches the empty text.
    """
    try:
        compiled = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{expression[:80]!r} is not a regular expression: {error}") from None
    if compiled.search(""):
        raise ConfigError(f"{expression[:80]!r} matches the empty text, so it would match anywhere")
    return compiled
