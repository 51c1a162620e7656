"""Redact the texts and the values of secret keys in data of any depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from balog.common.duplicate_keys import unused_key
from balog.common.redaction.names import NameRule
from balog.common.redaction.text import SecretText, has_card_number, is_no_secret

VALUE_NAMES = frozenset(["value", "Value", "VALUE", "val", "default", "string_value", "stringValue"])
"""Keys of the value in ``{"name": …, "value": …}``."""

HARMLESS = frozenset({int, float, bool, type(None)})
"""Types that hold no text."""

_NAME_NAMES = ("name", "Name", "key", "Key", "NAME", "KEY", "header", "field", "variable")
_CONTAINERS = (Mapping, list, tuple, set, frozenset)


class SecretFinding(NamedTuple):
    """One secret: its path, and the rule that finds it.

    Attributes:
        path: a JSONPath.
        rule: the kind of the rule and the rule itself.
    """

    path: str
    rule: str


class StructureRedactor:
    """Copy a value container by container, without recursion, because of depth and cycles.

    Args:
        text: redacts texts.
        rule_of: returns the rule that makes a key's value secret, and the redacted key.
        replacement: the text that replaces a secret.
        cards: whether numbers of payment cards are secrets.
        findings: each secret is added here, if given.
    """

    def __init__(
        self,
        text: SecretText,
        rule_of: Callable[[str], tuple[NameRule | None, str]],
        replacement: str,
        *,
        cards: bool,
        findings: list[SecretFinding] | None = None,
    ) -> None:
        self._text = text
        self._rule_of = rule_of
        self._replacement = replacement
        self._cards = cards
        self._copies: dict[int, dict[Any, Any] | list[Any]] = {}
        self._waiting: list[tuple[Any, Any, str]] = []
        self.findings = findings
        self.changed = False

    def run(self, value: Any) -> Any:
        """Return the copy."""
        new = self._part(value, "$")
        while self._waiting:
            self._fill(*self._waiting.pop())
        if self.findings is not None:
            self.findings.sort(key=lambda finding: finding.path)
        return new

    def _part(self, value: Any, path: str) -> Any:
        """Return the redacted part; a container's copy is filled later."""
        if isinstance(value, str):
            return self._redact_text(value, path)
        if isinstance(value, _CONTAINERS):
            copy = self._copies.get(id(value))
            if copy is None:
                copy = self._copies[id(value)] = {} if isinstance(value, Mapping) else []
                self._waiting.append((value, copy, path))
            return copy
        if self._cards and type(value) is int and value > 0 and has_card_number(str(value)):
            return self._secret(value, "cards: a card number", path)
        if isinstance(value, (bytes, bytearray)) and (text := _text_of(value)) is not None:
            redacted = self._redact_text(text, path)
            return value if redacted is text else redacted
        return value

    def _fill(self, old: Any, new: Any, path: str) -> None:
        """Fill a container's copy."""
        names = getattr(type(old), "_fields", ()) if isinstance(old, tuple) else ()
        old = _as_encoded(old)
        if isinstance(old, Mapping):
            self._fill_dict(old, new, path)
            return
        items = list(old)
        if names and len(names) == len(items):
            for name, item in zip(names, items, strict=True):
                new.append(self._named(str(name), item, self._place(path, str(name))))
            return
        if items and all(map(_is_pair, items)):
            for number, (name, item) in enumerate(map(_as_encoded, items)):
                item_path = self._place(path, number)
                new.append([self._part(name, item_path), self._named(_text_of(name) or "", item, item_path)])
            return
        before: Any = None
        is_curl = any(isinstance(item, str) and item.rpartition("/")[2] == "curl" for item in items[:3])
        for number, item in enumerate(items):
            item_path = path if self.findings is None else self._place(path, number)
            if isinstance(before, str) and before[:2] == "--" and (rule := self._rule_of(before)[0]):
                new.append(self._secret(item, str(rule), item_path))
            elif is_curl and before in ("-u", "--user"):
                new.append(self._secret(item, "patterns: the user and the password of curl", item_path))
            else:
                new.append(self._part(item, item_path))
            before = item

    def _named(self, name: str, value: Any, path: str) -> Any:
        """Return the redacted value of a name."""
        rule = self._rule_of(name)[0]
        return self._part(value, path) if rule is None else self._secret(value, str(rule), path)

    def _fill_dict(self, old: Mapping[Any, Any], new: dict[Any, Any], path: str) -> None:
        for key, item in list(old.items()):
            name, shown, item_path = key if isinstance(key, str) else _text_of(key), key, path
            rule = None
            if name is not None:
                rule, safe = self._rule_of(name)
                if safe != name:
                    self.changed = True
                    shown = unused_key(safe, old, new)
                    self._find("patterns: in the name of a key", self._place(path, safe))
            if self.findings is not None:
                item_path = self._place(path, shown if name is None or shown is not key else name)
            new[shown] = self._part(item, item_path) if rule is None else self._secret(item, str(rule), item_path)
        if len(old) > 1 and not VALUE_NAMES.isdisjoint(old):
            self._fill_value(old, new, path)

    def _fill_value(self, old: Mapping[Any, Any], new: dict[Any, Any], path: str) -> None:
        """Replace the value in ``{"name": …, "value": …}`` if the name is a secret's."""
        called = next((old[name] for name in _NAME_NAMES if isinstance(old.get(name), (str, bytes))), None)
        if called is not None and (rule := self._rule_of(_text_of(called) or "")[0]):
            for name in VALUE_NAMES.intersection(old):
                if isinstance(old[name], (str, bytes, list, tuple, dict)):
                    new[name] = self._secret(old[name], f"{rule}, in the name beside it", self._place(path, name))

    def _place(self, path: str, step: Any) -> str:
        """Return the path of a part, only if secrets are collected, because it takes time."""
        if self.findings is None:
            return path
        return f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}"

    def _find(self, rule: str, path: str) -> None:
        if self.findings is not None:
            self.findings.append(SecretFinding(path, rule))

    def _secret(self, value: Any, rule: str, path: str) -> Any:
        if is_no_secret(value):
            return value
        if not (isinstance(value, str) and value == self._replacement):
            self.changed = True
            self._find(rule, path)
        return self._replacement

    def _redact_text(self, text: str, path: str) -> str:
        rules: list[str] | None = None if self.findings is None else []
        new = self._text.redact(text, rules)
        self.changed = self.changed or new is not text
        for rule in rules or ():
            self._find(rule, path)
        return new


def _as_encoded(value: Any) -> Any:
    """Return a container as the encoder reads it, without the methods of a subclass, which may raise."""
    if type(value) in _BUILT_IN:
        return value
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, list):
        return list.copy(value)
    if isinstance(value, tuple):
        return tuple.__getitem__(value, slice(None))
    if isinstance(value, (set, frozenset)):
        return frozenset.union(frozenset(), value)
    return value


_BUILT_IN = frozenset({dict, list, tuple, set, frozenset})


def _text_of(value: Any) -> str | None:
    """Return a text or decoded bytes; None for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None


def _is_pair(item: Any) -> bool:
    if not isinstance(item, (list, tuple)) or hasattr(item, "_fields"):
        return False
    item = _as_encoded(item)
    return len(item) == 2 and isinstance(item[0], (str, bytes))


_SCALARS = frozenset({str, *HARMLESS})
_are_scalars = _SCALARS.issuperset


def hides_text(value: Any) -> bool:
    """Return whether a value has text that its encoding hides: bytes, or named tuples without their names."""
    kind = type(value)
    if kind is dict:
        try:
            "".join(value)
        except TypeError:
            return True
        value = value.values()
    elif kind not in (list, tuple, set, frozenset):
        return kind in (bytes, bytearray, memoryview) or isinstance(value, (dict, list, tuple, set, frozenset))
    return not _are_scalars(map(type, value)) and any(map(hides_text, value))
