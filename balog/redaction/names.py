"""Names of keys whose values are secret: exact names, ends of names and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from balog.errors import ConfigError

__all__ = ["NameRule", "SecretNames", "fold"]

_SEPARATORS = re.compile(r"[\s_.\-\"'()\[\]<>]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\s_.\-A-Z]+")
_LAST_PART = re.compile(r"[\"'()\[\]<>\s]+")
_LONGEST_NAME = 100
_AFTER_NAME = ("=", " =", '"', "'", "%", "\\")  # an exact name in a text has one of these after it


def fold(name: str) -> str:
    """Return the name's last 100 characters in small letters, without separators and digits at its end."""
    return _SEPARATORS.sub("", name[-_LONGEST_NAME:].lower()).rstrip("0123456789")


def _fold_rule(name: str) -> str:
    """Return a rule's name folded with its digits, because ``s3`` is not ``s``."""
    return _SEPARATORS.sub("", name.lower())


def _expression(words: Iterable[str]) -> str:
    return r"[_\-. ]?".join(words)


class NameRule(NamedTuple):
    """A rule for names.

    Attributes:
        kind: ``name`` fits exactly that name, ``suffix`` every name that ends with it, ``expression`` every name in
            which the regular expression is found.
        text: the name, the end or the expression.
        is_secret: False keeps values that another rule would replace.
    """

    kind: str
    text: str
    is_secret: bool = True

    def __str__(self) -> str:
        form = {"name": "names", "suffix": "suffixes", "expression": "expressions"}[self.kind]
        return f"{form}: {self.text}"


class SecretNames:
    """Names whose values are secret.

    Capitals, ``_ - .``, brackets, quotes, spaces and digits at the end make no difference. The suffix ``token`` stands
    for ``token``, ``GITHUB_TOKEN``, ``accessToken``, ``user[token]`` and ``token2``, and not for ``tokens`` or
    ``token_count``. An exact name wins against an expression, an expression against a suffix, and a longer suffix
    against a shorter one.

    Args:
        rules: rules, or pairs of a suffix and whether it is a secret's. Of two rules for one name the later counts.

    Raises:
        ConfigError: a name without a letter, or an expression that is not a regular expression.
    """

    def __init__(self, rules: Iterable[NameRule | tuple[str, bool]]) -> None:
        self._exact: dict[str, NameRule] = {}
        self._suffixes: dict[str, NameRule] = {}
        self._expressions: list[tuple[re.Pattern[str], NameRule]] = []
        for given in rules:
            rule = given if isinstance(given, NameRule) else NameRule("suffix", given[0], given[1])
            if rule.kind == "expression":
                self._expressions.insert(0, (_compiled(rule.text), rule))
                continue
            folded = _fold_rule(rule.text)
            if not any(char.isalpha() for char in folded):
                raise ConfigError(f"{rule.text!r} is no name of a key; it needs a letter")
            (self._exact if rule.kind == "name" else self._suffixes)[folded] = rule
        self._folded = sorted(self._suffixes, key=len, reverse=True)
        self._by_suffix = self._words(self._suffixes)
        by_name = self._words(self._exact)
        self.expressions = list(self._by_suffix)
        """Regular expressions that find the end of each secret suffix in a text of small letters."""
        self.exact_expressions = list(by_name)
        """The same for exact names."""
        exact_hints = _hints_after([name for name, rule in self._exact.items() if rule.is_secret])
        self.hints = list(dict.fromkeys([*self._by_suffix.values(), *exact_hints]))
        """One of these regular expressions is found in the small letters of every text with such a name."""

    def _words(self, rules: dict[str, NameRule]) -> dict[str, str]:
        """Return an expression and a hint for each secret name that is not found by a shorter one of the same kind."""
        secret = [folded for folded, rule in rules.items() if rule.is_secret]
        shortest = [one for one in secret if not any(one != end and one.endswith(end) for end in secret)]
        if rules is self._exact:
            shortest = secret
        found: dict[str, str] = {}
        for folded in sorted(shortest, key=len, reverse=True):
            words = [word.lower() for word in _WORDS.findall(rules[folded].text)]
            first, *rest = [_hint_of(words[0]), *map(re.escape, words[1:])]
            found[_expression(map(re.escape, words))] = _expression([first, *rest])
        return found

    def __contains__(self, name: str) -> bool:
        rule = self.rule_of(name)
        return rule is not None and rule.is_secret

    def rule_of(self, name: str) -> NameRule | None:
        """Return the rule that decides about a name, or None when none fits."""
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

    @property
    def tell_digits_apart(self) -> bool:
        """Whether another digit in a name could make a difference."""
        texts = (*self._exact, *self._suffixes, *(rule.text for _, rule in self._expressions))
        return any(char.isdigit() for text in texts for char in text)


def _last_part(name: str) -> str:
    """Return the last part of a name in brackets or quotes, such as ``password`` of ``user['password']``."""
    parts = [part for part in _LAST_PART.split(name[-_LONGEST_NAME:]) if part]
    return parts[-1] if parts else ""


_RAREST_FIRST = "zjqxkvbpgwyfmcudlhrsnioate"


def _hint_of(word: str) -> str:
    """Return a regular expression that finds a word of small letters, turned about its rarest letter."""
    at = min(range(len(word)), key=lambda place: _RAREST_FIRST.find(word[place]))
    before = f"(?<={re.escape(word[: at + 1])})" if at else ""
    return re.escape(word[at]) + before + re.escape(word[at + 1 :])


def _hints_after(names: list[str]) -> list[str]:
    """Return regular expressions that find exact names in a text by what comes after them: a cheap look first."""
    ends = "".join(sorted({re.escape(name[-1]) for name in names}))
    found = []
    for after in _AFTER_NAME if names else ():
        any_name = "|".join(f"(?<={re.escape(name[-4:] + after)})" for name in names)
        found.append(f"{re.escape(after[-1])}(?<=[{ends}]{re.escape(after)})(?:{any_name})")
    return found


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{expression[:80]!r} is no regular expression: {error}") from None
    if compiled.search(""):
        raise ConfigError(f"{expression[:80]!r} matches the empty text, so it would match anywhere")
    return compiled
