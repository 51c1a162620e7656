"""The redactor: its rules, and the fast checks that let clean data pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from balog.common.errors import ConfigError, EventError
from balog.common.redaction.names import NameRule, SecretNames
from balog.common.redaction.patterns import EMAIL, SECRET_PATTERNS
from balog.common.redaction.structure import HARMLESS, VALUE_NAMES, SecretFinding, StructureRedactor, hides_text
from balog.common.redaction.text import SecretText

DEFAULT_KEYS: tuple[str, ...] = (
    *("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "password_hash"),
    *("secret", "secrets", "secret_key", "secret_access_key", "secret_string", "secret_value", "client_secret"),
    *("token", "access_token", "access_tokens", "refresh_token", "refresh_tokens", "id_token", "auth_token", "jwt"),
    *("authorization", "auth_header", "auth_key", "authorization_code", "basic_auth", "code_verifier"),
    *("api_key", "api_keys", "access_key", "private_key", "signing_key", "encryption_key", "master_key", "ssh_key"),
    *("credential", "credentials", "creds", "cookie", "cookies"),
    *("session_id", "sessid", "session_key", "gitlab_session"),
    *("connection_string", "dsn", "app_key", "account_key", "contribsys_com"),
)
"""Suffixes of names of keys whose values are secret; see ``balog.common.redaction.names.SecretNames``."""

DEFAULT_NAMES: tuple[str, ...] = ("auth", "pass", "session", "otp", "ssn", "pat", "totp", "mfa_code", "cvv")
"""Names of keys whose values are secret, although longer names with the same end are not."""

DEFAULT_EXPRESSIONS: tuple[str, ...] = (r"[\W_](?i:pass|otp|ssn|totp)\d*$|[a-z](?:Pass|PASS|Otp|OTP|Ssn|SSN|Totp)\d*$",)
"""Regular expressions for such names as a separate last word: ``db_pass`` and ``userSsn``, but not ``compass``."""

_ENDS = ("pass", "otp", "ssn", "totp")

DEFAULT_KEPT: tuple[str, ...] = (
    *("page_token", "next_token", "continuation_token", "sync_token", "delta_token", "skip_token", "cursor_token"),
    *("resume_token", "change_token", "cancellation_token"),
)
"""Names that end like a secret's, of values that show a sync's position: debugging a tap needs them."""

DEFAULT_PATTERNS: tuple[str, ...] = tuple(SECRET_PATTERNS)
"""Regular expressions of what is secret wherever it stands in a text."""

_LISTS = (
    *("keys", "names", "expressions", "patterns", "extra_keys", "extra_suffixes", "extra_expressions"),
    *("extra_patterns", "keep_keys", "keep_suffixes"),
)
_CARD_KEYS = ("card_number", "cvv", "cvc")
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_MAX_KNOWN = 2048
_MAX_KNOWN_BYTES = 1024
_MAX_NAMES = 4096
_MANY_NAMES = 16

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


class Redactor:
    """Replaces secrets in data, text and encoded documents. Immutable and thread-safe.

    Three kinds of rules match names of keys: exact names, suffixes and regular expressions. The value of a matching
    key is replaced as a whole, unless it is None, a boolean or empty. ``balog.common.redaction.names.SecretNames``
    describes which rule decides if several match.

    Args:
        keys: the built-in suffixes.
        names: the built-in exact names.
        expressions: the built-in regular expressions for names.
        patterns: regular expressions for text. The whole match is replaced, or only the group ``secret`` if the
            expression has one. Your own patterns run on every text: keep them free of nested repetition.
        emails: whether e-mail addresses are replaced, too.
        cards: whether card numbers (13 to 19 digits, alone or in groups, with a correct check digit) and values of
            keys such as ``cvc`` are replaced, too.
        extra_keys: more exact names.
        extra_suffixes: more suffixes.
        extra_expressions: more regular expressions for names, searched in the original name.
        extra_patterns: more regular expressions for text.
        keep_keys: exact names whose values are kept although another rule matches.
        keep_suffixes: suffixes whose values are kept, in addition to ``DEFAULT_KEPT``.
        replacement: the text that replaces a secret.

    Attributes:
        known_clean: documents without secrets, by what ``bytes.translate(fold)`` returns for them. For quick checks.
        fold: a table that makes all digits equal; None if a rule depends on a digit.

    Raises:
        ConfigError: a name has no letter, or a pattern is not a regular expression.
    """

    def __init__(
        self,
        keys: Iterable[str] = DEFAULT_KEYS,
        patterns: Iterable[str] = DEFAULT_PATTERNS,
        *,
        names: Iterable[str] = DEFAULT_NAMES,
        expressions: Iterable[str] = DEFAULT_EXPRESSIONS,
        emails: bool = False,
        cards: bool = False,
        extra_keys: Iterable[str] = (),
        extra_suffixes: Iterable[str] = (),
        extra_expressions: Iterable[str] = (),
        extra_patterns: Iterable[str] = (),
        keep_keys: Iterable[str] = (),
        keep_suffixes: Iterable[str] = (),
        replacement: str = "[redacted]",
    ) -> None:
        given = (keys, names, expressions, patterns, extra_keys, extra_suffixes, extra_expressions, extra_patterns)
        lists = dict(zip(_LISTS, (*given, keep_keys, keep_suffixes), strict=True))
        for option, texts in lists.items():
            if isinstance(texts, str):
                raise ConfigError(f"{texts[:80]!r} is a single text; expected a list of texts", path=f"$.{option}")
        options: dict[str, Any] = {option: tuple(texts) for option, texts in lists.items()}
        self._compile({**options, "emails": emails, "cards": cards, "replacement": replacement}, frozenset())

    def _compile(self, options: dict[str, Any], known: frozenset[str]) -> None:
        """Compile the rules, and a pattern for each known secret."""
        self._options, self._known = options, known
        emails, cards, replacement = options["emails"], options["cards"], options["replacement"]
        expressions = (*options["patterns"], *options["extra_patterns"], *((EMAIL,) if emails else ()))
        secret = sorted(known, key=len, reverse=True)
        self._names = SecretNames(
            [
                *(NameRule("suffix", name, False) for name in DEFAULT_KEPT),
                *(NameRule("suffix", name) for name in (*options["keys"], *(_CARD_KEYS if cards else ()))),
                *(NameRule("name", name) for name in options["names"]),
                *(
                    NameRule("expression", text, ends=_ENDS if text in DEFAULT_EXPRESSIONS else ())
                    for text in (*options["expressions"], *options["extra_expressions"])
                ),
                *(NameRule("suffix", name) for name in options["extra_suffixes"]),
                *(NameRule("name", name) for name in options["extra_keys"]),
                *(NameRule("suffix", name, False) for name in options["keep_suffixes"]),
                *(NameRule("name", name, False) for name in options["keep_keys"]),
            ]
        )
        self._text = SecretText(
            self._names, (*expressions, *map(re.escape, secret)), cards=cards, replacement=replacement
        )
        self._replacement = replacement
        self._cards = cards
        self._seen_names: dict[str, tuple[NameRule | None, str]] = {}
        self._plain_names: set[str] = set()
        # If no rule depends on a digit, the cache of clean documents can ignore digits.
        own = known or any(expression not in SECRET_PATTERNS and expression != EMAIL for expression in expressions)
        exact = own or cards or self._names.tell_digits_apart or any(char.isdigit() for char in replacement)
        self.fold = None if exact else _DIGITS
        self.known_clean: set[bytes] = set()

    def knowing(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor with the same rules that also replaces exactly these texts everywhere.

        The new redactor does not replace texts of an earlier call.
        """
        known = frozenset(secret for secret in secrets if secret)
        if known == self._known:
            return self
        redactor = Redactor.__new__(Redactor)
        redactor._compile(self._options, known)
        return redactor

    def redact_text(self, text: str) -> str:
        """Return the text without its secrets; the same object if there are none."""
        return self._text.redact(text)

    def redact(self, value: Any) -> Any:
        """Return JSON-like data without its secrets; the same object if there are none, else a copy.

        Besides the values of secret keys and all texts, these are redacted: ``{"name": …, "value": …}`` with a secret
        name, a list of pairs ``[["password", …]]``, the text after ``"--password"`` in a list of arguments, fields of a
        named tuple, and keys and texts in bytes that are UTF-8. In a copy, tuples and sets are lists; numbers and other
        objects are unchanged. Any depth and cycles are supported.
        """
        if self._is_plainly_clean(value):
            return value
        walk = self._walk()
        new = walk.run(value)
        return new if walk.changed else value

    def explain(self, value: Any) -> list[SecretFinding]:
        """Return each secret that ``redact`` replaces in a value, with its path and rule, sorted by path."""
        findings: list[SecretFinding] = []
        self._walk(findings).run(value)
        return findings

    def _walk(self, findings: list[SecretFinding] | None = None) -> StructureRedactor:
        return StructureRedactor(self._text, self._name, self._replacement, cards=self._cards, findings=findings)

    def redact_value(self, value: Any, encoded: bytes) -> bytes:
        """Return the encoding of a value without its secrets; the same object if there are none.

        In the encoding, bytes are base64 and a named tuple has lost its names. So this examines the value itself, too,
        if it has a list or is not in the cache of clean documents.

        Raises:
            EventError: as ``redact_encoded``.
        """
        if b"[" not in encoded and encoded.translate(self.fold) in self.known_clean:
            return encoded
        try:
            is_hidden = hides_text(value)
        except RecursionError:
            is_hidden = True
        if is_hidden:
            redacted = self.redact(value)
            if redacted is not value:
                encoded = _encoder.encode(redacted)
        return self.redact_encoded(encoded)

    def redact_encoded(self, encoded: bytes) -> bytes:
        """Return an encoded JSON document without its secrets; the same object if there are none.

        A cache of clean documents (at most 2048 of up to 1 KiB each) ignores digits. So a document that differs from an
        earlier one only by its numbers costs a fraction of its encoding.

        Raises:
            EventError: the document is not JSON, or is nested too deep.
        """
        shape = encoded.translate(self.fold)
        if shape in self.known_clean:
            return encoded
        try:
            data = _decoder.decode(encoded)
            redacted = self.redact(data)
            if redacted is not data:
                return _encoder.encode(redacted)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise EventError("not valid JSON, so secrets in it can't be found") from None
        if len(shape) <= _MAX_KNOWN_BYTES and b"\\u" not in shape:  # the digits of \u0041 matter
            if len(self.known_clean) >= _MAX_KNOWN:
                self.known_clean.clear()
            self.known_clean.add(shape)
        return encoded

    def keeps_numbers_of(self, name: str) -> bool:
        """Return whether no integer under a key with this name is a secret."""
        return self.fold is not None and self._name(name) == (None, name)

    def _name(self, name: str) -> tuple[NameRule | None, str]:
        """Return the rule that makes a key's value secret, and the redacted key."""
        seen = self._seen_names.get(name)
        if seen is None:
            rule = self._names.rule_of(name)
            seen = (rule if rule is not None and rule.is_secret else None, self._text.redact(name))
            if len(name) <= 100:
                if len(self._seen_names) >= _MAX_NAMES:
                    self._seen_names.clear()
                    self._plain_names.clear()
                self._seen_names[name] = seen
                if seen == (None, name):
                    self._plain_names.add(name)
        return seen

    def _learn(self, members: dict[Any, Any]) -> None:
        """Add the unknown names of many members to the plain names at once, if a quick check finds nothing in them."""
        plain_names = self._plain_names
        unknown = [name for name in members if name not in plain_names and type(name) is str and len(name) <= 100]
        if len(unknown) > _MANY_NAMES:
            plain = self._names.plainly_harmless(unknown)
            if plain and not self._text.has_hint(self._distinct(plain)):
                if len(plain_names) + len(plain) > _MAX_NAMES:
                    self._seen_names.clear()
                    plain_names.clear()
                plain_names.update(plain)

    def _distinct(self, names: list[str]) -> str:
        """Join names, of those that differ only by digits one, unless a rule depends on a digit."""
        joined = "\n".join(names)
        if self.fold is None:
            return joined
        folded = joined.encode("utf-8", "surrogatepass").translate(self.fold)
        return b"\n".join(set(folded.split(b"\n"))).decode("utf-8", "surrogatepass")

    def _is_plainly_clean(self, value: Any) -> bool:
        """Return whether a quick check finds no secret's name and no hint of a secret, as in most data."""
        if not self._text.is_hinted:
            return False
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
                if not self._has_plain_names(node):
                    return False
                for item in node.values():
                    kind = type(item)
                    if kind is str:
                        texts.append(item)
                    elif kind not in HARMLESS:
                        waiting.append(item)
            elif kind is list or kind is tuple:
                if id(node) not in seen:
                    seen.add(id(node))
                    waiting += node
                    if len(node) > 2 and "-u" in node:
                        return False
            elif kind not in HARMLESS:
                return False
        text = "\n".join(texts)
        return "--" not in text and not self._text.has_hint(text)

    def _has_plain_names(self, members: dict[Any, Any]) -> bool:
        """Return whether no name is a secret's, and no member may have the name of a secret beside it."""
        if len(members) > _MANY_NAMES:
            self._learn(members)
        if len(members) > 1 and not VALUE_NAMES.isdisjoint(members):
            return False
        return self._plain_names.issuperset(members) or all(
            type(name) is str and self._name(name) == (None, name) for name in members
        )


def default_names() -> SecretNames:
    """Return the built-in rules for names of keys."""
    return Redactor()._names
