"""The secrets of a tap's config: collected from it, searched for in the output, and redacted in quoted output."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote

from balog.common.redaction import Redactor, default_names
from balog.common.redaction.names import SecretNames
from balog.common.text import cut, printable

MIN_SECRET = 6
"""Characters; shorter values occur by chance."""

_MIN_LINE = 16  # characters of a line of a key in PEM form
_VAGUE_NAMES = ("key", "auth", "session")  # names of properties and methods, too
_SHORT_NAMES = re.compile(r"(?:.*[_.-])?(?:pat|pass|sas|bearer|pin|hmac)", re.IGNORECASE)
_PLAIN_NAMES = re.compile(
    r"(?:.*[_.-])?(?:ids?|name|names|user|username|email|uri|url|urls|host|hosts|hostname|endpoint|server|domain|region|path|"
    r"file|folder|bucket|prefix|pattern|date|since|until|timezone|type|kind|mode|method|format|version|agent|schema|"
    r"schemas|database|dbname|table|tables|stream|streams|project|account|environment|universe_domain)",
    re.IGNORECASE,
)
"""Names whose values are not secret, also inside of an object with a secret's name such as ``credentials``."""

_PLAIN_WORDS = re.compile(r"[a-z]{1,15}\d?(?:_[a-z]{1,15}){0,3}")
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?P<user>[^/\s:@]*):(?P<password>\S+)@", re.IGNORECASE)
_IN_ORACLE = re.compile(r"[\w$#]+/(?P<password>[^\s/@]+)@[\w.-]+(?::\d+)?(?:/\w+)?")
_IN_DSN = re.compile(
    r"(?:^|[;\s?&])(?:password|pwd|passwd|secret|token|api_?key|sig|access_token)\s*=\s*('[^']*'|\{[^}]*\}|[^;\s&]+)",
    re.IGNORECASE,
)
_ORDINARY = re.compile(
    r"\d{4}-\d\d-\d\d.*|[\d.,:+-]+|[/.~].*|[a-z]+:.*|.*@[\w-]+\.\w+|[\w-]+(?:\.[\w-]+)+(?:[:/].*)?|\w+/[\w.]+.*|"
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z]+\d*|[A-Za-z]+(?:[_-][A-Za-z0-9]+)*",
    re.IGNORECASE | re.DOTALL,
)
"""Dates, numbers, paths, URLs, addresses, hosts, UUIDs, and words with or without a number at their end."""

_SWITCHES = re.compile(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])")
_LONG = 12


class ConfigSecret(NamedTuple):
    """A text that must not appear in an output.

    Attributes:
        path: its place in the config.
        text: the secret.
        is_guess: no name declares it a secret, but it looks random.
    """

    path: str
    text: str
    is_guess: bool = False


def secrets_of(config: Any) -> Iterator[ConfigSecret]:
    """Yield the secrets of a decoded config, of at least 6 characters each.

    Secrets are texts and numbers under secret names, passwords in URLs and connection strings, and texts that look
    random. Values that also stand elsewhere in the config, under a name that is not secret, are not: nobody can tell
    which of the two an output shows.
    """
    texts = list(_walk(config, "$", "", default_names(), is_inside=False))
    plain = [text for text, kind, _ in texts if not kind]
    for text, kind, path in texts:
        if kind and not any(_holds(other, text) for other in plain):
            yield ConfigSecret(path, text, is_guess=kind == "guess")


def _holds(other: str, text: str) -> bool:
    """Return whether a plain text of the config is a secret's, or has it as a word."""
    if other == text:
        return True
    is_word = _PLAIN_WORDS.fullmatch(text) is not None
    return is_word and re.search(rf"(?<![a-z]){re.escape(text)}(?![a-z])", other) is not None


def _walk(node: Any, path: str, name: str, names: SecretNames, *, is_inside: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the texts of a config: text, how it is known as a secret ("" if it is none), and path."""
    if isinstance(node, dict):
        for key, value in ((str(key), value) for key, value in node.items()):
            is_secret = _is_secret_name(key, value, names)
            inherits = is_inside and not _PLAIN_NAMES.fullmatch(key)
            yield from _walk(value, f"{path}.{key}", key, names, is_inside=is_secret or inherits)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _walk(value, f"{path}[{index}]", name, names, is_inside=is_inside)
    elif isinstance(node, (str, int)) and not isinstance(node, bool):
        yield from ((text, how, path) for text, how in _texts(str(node), name, is_secret=is_inside))


def _texts(text: str, name: str, *, is_secret: bool) -> Iterator[tuple[str, str]]:
    passwords = [inner for inner in _passwords_in(text) if len(inner) >= MIN_SECRET]
    yield from ((inner, "password") for inner in passwords)
    if len(text) < MIN_SECRET or passwords:
        return
    if is_secret and "://" not in text:
        yield text, "name"
        lines = text.split("\n")
        yield from ((line, "name") for line in lines if len(lines) > 1 and len(line) >= _MIN_LINE and line[:3] != "---")
    elif not is_secret and not _PLAIN_NAMES.fullmatch(name) and looks_random(text):
        yield text, "guess"
    else:
        yield text, ""


def looks_random(text: str) -> bool:
    """Return whether a text looks like a key or a password: mixed letters and digits, and no usual form."""
    if any(map(str.isspace, text)) or _ORDINARY.fullmatch(text):
        return False
    switches = len(_SWITCHES.findall(text))
    if len(text) >= _LONG and switches >= 3:
        return True
    kinds = [any(map(kind, text)) for kind in (str.islower, str.isupper, str.isdigit)]
    has_mark = any(char in "!@#$%^&*+=" for char in text)
    return sum(kinds) + has_mark >= 3 and (switches >= 3 or has_mark)


def _is_secret_name(name: str, value: Any, names: SecretNames) -> bool:
    if name.lower() in _VAGUE_NAMES:
        return isinstance(value, str) and not _PLAIN_WORDS.fullmatch(value)
    return name in names or bool(_SHORT_NAMES.fullmatch(name))


def _passwords_in(text: str) -> Iterator[str]:
    """Yield the passwords in a URL (``scheme://user:password@host``) or a connection string (``Password=…;``)."""
    for match in (_IN_URL.match(text), _IN_ORACLE.fullmatch(text)):
        if match is not None:
            yield match["password"]
            if unquote(match["password"]) != match["password"]:
                yield unquote(match["password"])
    for match in _IN_DSN.finditer(text):
        yield match[1].strip("'{}")


_MAX_QUOTE = 240


class Leaks:
    """Finds the secrets of a config: unchanged, escaped as in JSON and URLs, and in base64.

    A secret is found as a part of a longer text, too; in base64 at any offset, as in ``Authorization: Basic``.

    Args:
        config: the tap's decoded config.

    Attributes:
        secrets: the secrets by path.
        found: by the key's path and the output, the first line (from 1) with the value.
    """

    def __init__(self, config: Any) -> None:
        self.secrets: dict[str, ConfigSecret] = {}
        self._forms: dict[bytes, str] = {}
        for secret in secrets_of(config):
            self.secrets.setdefault(secret.path, secret)
            for form in _forms_of(secret.text):
                self._forms.setdefault(form, secret.path)
        self._redactor = Redactor()
        self.found: dict[tuple[str, str], int] = {}

    def search_line(self, line: bytes | bytearray, output: str, number: int) -> None:
        """Search a line of an output."""
        for form, path in self._forms.items():
            if form in line:
                self.found.setdefault((path, output), number)

    def search_output(self, data: bytes | bytearray, output: str) -> None:
        """Search a whole output."""
        for form, path in self._forms.items():
            at = data.find(form)
            if at >= 0:
                self.found.setdefault((path, output), data.count(b"\n", 0, at) + 1)

    def redact(self, text: str) -> str:
        """Return a text of the tap without secrets, as one short printable line."""
        for form in self._forms:
            text = text.replace(form.decode("utf-8", "replace"), "[redacted]")
        text = " ".join(self._redactor.redact_text(text[: 4 * _MAX_QUOTE]).split())
        return cut(printable(text), _MAX_QUOTE)


def _forms_of(text: str) -> Iterator[bytes]:
    for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text, "")):
        yield form.encode("utf-8", "replace")
    yield quote_plus(text).encode()
    yield from _in_base64(text)


def _in_base64(value: str) -> Iterator[bytes]:
    """Yield the base64 forms of a value inside any text: one for each offset in a group of three bytes."""
    data = value.encode("utf-8", "replace")
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        start = (0, 2, 3)[before]  # characters that the bytes before have a part in
        end = len(whole) - (0, 3, 2)[(before + len(data)) % 3]  # likewise those after
        part = whole[start:end]
        yield part
        yield part.replace(b"+", b"-").replace(b"/", b"_")
