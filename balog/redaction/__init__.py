"""Secrets and personal data never leave: they are replaced before an event is written, by their keys or their looks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from balog.errors import ConfigError, EventError, split_refusal
from balog.redaction.text import EMAIL, HINTS, SecretNames, SecretText, has_card_number

__all__ = ["DEFAULT_KEPT", "DEFAULT_KEYS", "DEFAULT_PATTERNS", "Redactor", "from_config"]

DEFAULT_KEYS: tuple[str, ...] = (
    *("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "password_hash"),
    *("secret", "secrets", "secret_key", "secret_access_key", "secret_string", "secret_value", "client_secret"),
    *("token", "access_token", "access_tokens", "refresh_token", "refresh_tokens", "id_token", "auth_token", "jwt"),
    *("authorization", "auth_header", "auth_key", "authorization_code", "basic_auth", "code_verifier"),
    *("api_key", "api_keys", "access_key", "private_key", "signing_key", "encryption_key", "master_key", "ssh_key"),
    *("credential", "credentials", "cookie", "cookies", "session_id", "sessid", "session_key"),
    *("connection_string", "dsn"),
)
"""Names of keys whose values are secret; see ``balog.redaction.text.SecretNames`` for what fits them."""

DEFAULT_KEPT: tuple[str, ...] = (
    *("page_token", "next_token", "continuation_token", "sync_token", "delta_token", "skip_token", "cursor_token"),
    *("resume_token", "change_token", "cancellation_token"),
)
"""Names that end like one of a secret and say where a sync stands: who debugs a tap needs their values."""

DEFAULT_PATTERNS: tuple[str, ...] = tuple(HINTS)
"""Regular expressions of what is secret wherever it stands in a text."""

_LISTS = ("keys", "patterns", "extra_keys", "extra_patterns", "keep_keys")
_CARD_KEYS = ("card_number", "cvv", "cvc")
_HARMLESS = frozenset({int, float, bool, type(None)})
_CONTAINERS = (dict, list, tuple, set, frozenset)
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_MAX_KNOWN = 2048
_MAX_KNOWN_BYTES = 1024
_MAX_NAMES = 4096

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


class Redactor:
    """Replaces secrets in data, text and encoded documents. Its rules never change, and threads share it.

    Args:
        keys: names of keys whose values are replaced whole, whatever they are; see ``SecretNames``.
        patterns: regular expressions for text. The whole match is replaced or, when the expression has one, only its
            group named ``secret``. One's own run on every text: keep them free of nested repetition.
        emails: replace e-mail addresses too.
        cards: replace card numbers too (13 to 19 digits, alone or in groups, with a right check digit), also as a
            number, and values of keys such as ``cvv``.
        extra_keys: more names beside ``keys``.
        extra_patterns: more expressions beside ``patterns``.
        keep_keys: names that fit ``keys`` and are no secret, beside ``DEFAULT_KEPT``.
        replacement: what stands there instead.

    Raises:
        ConfigError: a name without a letter, or a pattern that is no regular expression.
    """

    def __init__(
        self,
        keys: Iterable[str] = DEFAULT_KEYS,
        patterns: Iterable[str] = DEFAULT_PATTERNS,
        *,
        emails: bool = False,
        cards: bool = False,
        extra_keys: Iterable[str] = (),
        extra_patterns: Iterable[str] = (),
        keep_keys: Iterable[str] = (),
        replacement: str = "[redacted]",
    ) -> None:
        lists = {"keys": keys, "patterns": patterns, "extra_keys": extra_keys, "extra_patterns": extra_patterns}
        lists["keep_keys"] = keep_keys
        for option, given in lists.items():
            if isinstance(given, str):
                raise ConfigError(f"{given[:80]!r} is one text; want a list of them", path=f"$.{option}")
        self._said: dict[str, Any] = {option: tuple(given) for option, given in lists.items()}
        self._said |= {"emails": emails, "cards": cards, "replacement": replacement}
        self._begin(self._said, frozenset())

    def _begin(self, said: dict[str, Any], known: frozenset[str]) -> None:
        """Compile the rules, and a pattern for each known secret."""
        self._said, self._known = said, known
        keys, patterns, extra_keys, extra_patterns, keep_keys = (said[option] for option in _LISTS)
        emails, cards, replacement = said["emails"], said["cards"], said["replacement"]
        extra_patterns = (*extra_patterns, *map(re.escape, sorted(known, key=len, reverse=True)))
        secret = (*keys, *(_CARD_KEYS if cards else ()))
        rules = {**dict.fromkeys(DEFAULT_KEPT, False), **dict.fromkeys(secret, True)}
        rules |= dict.fromkeys(extra_keys, True) | dict.fromkeys(keep_keys, False)
        expressions = (*patterns, *extra_patterns, *((EMAIL,) if emails else ()))
        self._names = SecretNames(rules.items())
        self._text = SecretText(self._names, expressions, cards=cards, replacement=replacement)
        self._replacement = replacement
        self._cards = cards
        self._seen_names: dict[str, tuple[bool, str]] = {}
        self._plain_names: set[str] = set()
        # Where no rule tells one digit from another, neither need what is remembered of clean documents.
        own = any(expression not in HINTS and expression != EMAIL for expression in expressions)
        exact = own or cards or self._names.tell_digits_apart or any(char.isdigit() for char in replacement)
        self._fold = None if exact else _DIGITS
        self._known_clean: set[bytes] = set()

    def knowing(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor with the same rules that replaces exactly these texts too, wherever they stand.

        Texts that this redactor already knows are forgotten, unless they are given again.
        """
        known = frozenset(secret for secret in secrets if secret)
        if known == self._known:
            return self
        redactor = Redactor.__new__(Redactor)
        redactor._begin(self._said, known)
        return redactor

    def redact_text(self, text: str) -> str:
        """Give the text without its secrets; the same object when there are none."""
        return self._text.redact(text)

    def redact(self, value: Any) -> Any:
        """Give JSON-like data without its secrets; the same object when there are none, else a copy.

        Beside the values of secret keys and the texts, keys and all, these are seen to: ``{"name": …, "value": …}``
        with a secret name, a list of pairs ``[["password", …]]``, and what follows ``"--password"`` in a list of
        arguments. In a copy, tuples and sets are
        lists, and what is neither a container nor text (numbers, bytes, other objects) is what it was. Any depth and
        cycles are fine. What bytes hold is not looked into.
        """
        if self._is_plainly_clean(value):
            return value
        walk = _Walk(self)
        new = walk.part(value)
        while walk.waiting:
            walk.fill(*walk.waiting.pop())
        return new if walk.changed else value

    def redact_encoded(self, encoded: bytes) -> bytes:
        """Give an encoded JSON document without its secrets; the same object when there are none.

        Clean ones are remembered by what they are without their digits (at most 2048 of up to 1 KiB), so that a
        document that differs from an earlier one by its numbers costs a fraction of its encoding.

        Raises:
            EventError: it is not JSON, or is nested too deep.
        """
        shape = encoded.translate(self._fold)
        if shape in self._known_clean:
            return encoded
        try:
            data = _decoder.decode(encoded)
            redacted = self.redact(data)
            if redacted is not data:
                return _encoder.encode(redacted)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise EventError("not JSON that can be read, so nobody knows whether secrets are in it") from None
        if len(shape) <= _MAX_KNOWN_BYTES and b"\\u" not in shape:  # the digits of \u0041 do make a difference
            if len(self._known_clean) >= _MAX_KNOWN:
                self._known_clean.clear()
            self._known_clean.add(shape)
        return encoded

    def _name(self, name: str) -> tuple[bool, str]:
        """Tell whether a key's value is secret, and give the key as it may be written."""
        seen = self._seen_names.get(name)
        if seen is None:
            seen = (name in self._names, self._text.redact(name))
            if len(name) <= 100:
                if len(self._seen_names) >= _MAX_NAMES:
                    self._seen_names.clear()
                    self._plain_names.clear()
                self._seen_names[name] = seen
                if seen == (False, name):
                    self._plain_names.add(name)
        return seen

    def _is_plainly_clean(self, value: Any) -> bool:
        """Tell at a glance what most data is: without a secret's name, and without a hint of a secret in its texts."""
        if not self._text.is_hinted:
            return False
        plain_names = self._plain_names
        texts = []
        seen = set()
        waiting = [value]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is str:
                texts.append(node)
            elif kind is dict:
                if id(node) in seen:
                    continue
                seen.add(id(node))
                for name, item in node.items():
                    if name not in plain_names and not (type(name) is str and self._name(name) == (False, name)):
                        return False
                    kind = type(item)
                    if kind is str:
                        texts.append(item)
                    elif kind not in _HARMLESS:
                        waiting.append(item)
                if "value" in node and type(node["value"]) is str:
                    return False  # it may have a secret's name beside it
            elif kind is list or kind is tuple:
                if id(node) not in seen:
                    seen.add(id(node))
                    waiting += node
            elif kind not in _HARMLESS:
                return False
        text = "\n".join(texts)
        return "--" not in text and not self._text.has_hint(text)


class _Walk:
    """One copy of a value, container by container: no recursion, so that depth and cycles don't matter."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._copies: dict[int, dict[Any, Any] | list[Any]] = {}
        self.waiting: list[tuple[Any, Any]] = []
        self.changed = False

    def part(self, value: Any) -> Any:
        """Give what a part becomes; a container's copy is filled later."""
        if isinstance(value, str):
            return self._noting(value, self._redactor._text.redact(value))
        if isinstance(value, _CONTAINERS):
            copy = self._copies.get(id(value))
            if copy is None:
                copy = self._copies[id(value)] = {} if isinstance(value, dict) else []
                self.waiting.append((value, copy))
            return copy
        if self._redactor._cards and type(value) is int and value > 0 and has_card_number(str(value)):
            return self._secret(value)
        return value

    def fill(self, old: Any, new: Any) -> None:
        """Fill a container's copy."""
        if isinstance(old, dict):
            self._fill_dict(old, new)
            return
        items = list(old)
        if items and all(map(_is_pair, items)):
            new.extend(self._pair(*pair) for pair in items)
            return
        follows_flag = False
        for item in items:
            new.append(self._secret(item) if follows_flag else self.part(item))
            follows_flag = isinstance(item, str) and item.startswith("--") and self._redactor._name(item)[0]

    def _pair(self, name: str, value: Any) -> list[Any]:
        return [self.part(name), self._secret(value) if self._redactor._name(name)[0] else self.part(value)]

    def _fill_dict(self, old: dict[Any, Any], new: dict[Any, Any]) -> None:
        for key, item in list(old.items()):
            is_secret, shown = False, key
            if isinstance(key, str):
                is_secret, name = self._redactor._name(key)
                if name != key:
                    self.changed = True
                    shown = _unused(name, old, new)
            new[shown] = self._secret(item) if is_secret else self.part(item)
        called = old.get("name", old.get("key"))
        if isinstance(called, str) and isinstance(old.get("value"), str) and self._redactor._name(called)[0]:
            new["value"] = self._secret(old["value"])

    def _secret(self, value: Any) -> str:
        replacement: str = self._redactor._replacement
        self.changed = self.changed or not (isinstance(value, str) and value == replacement)
        return replacement

    def _noting(self, old: str, new: str) -> str:
        self.changed = self.changed or new is not old
        return new


def _is_pair(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)


def _unused(name: str, *taken: dict[Any, Any]) -> str:
    """Give the name, with a number when it is taken: two secrets as keys must not become one."""
    number = 1
    unused = name
    while any(unused in one for one in taken):
        number += 1
        unused = f"{name} {number}"
    return unused


class _Config(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    keys: list[str] | None = None
    patterns: list[str] | None = None
    emails: bool = False
    cards: bool = False
    extra_keys: list[str] = []
    extra_patterns: list[str] = []
    keep_keys: list[str] = []
    replacement: str = "[redacted]"


def from_config(config: dict[str, Any] | bool) -> Redactor | None:
    """Make a redactor of the arguments of ``Redactor`` as plain data; ``True`` for the default one, ``False`` for none.

    Raises:
        ConfigError: an option that does not exist, is of another type or is refused by ``Redactor``.
    """
    if isinstance(config, bool):
        return Redactor() if config else None
    try:
        options = msgspec.convert(config, _Config)
    except msgspec.ValidationError as error:
        reason, where = split_refusal(error)
        raise ConfigError(reason, path=where) from None
    return Redactor(**{name: item for name, item in msgspec.structs.asdict(options).items() if item is not None})
