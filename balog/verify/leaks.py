"""Search for the config's secrets in a tap's output, and redaction of quoted output."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from balog.redaction import Redactor, default_names
from balog.redaction.names import SecretNames

_MIN_SECRET = 6  # characters; shorter values occur by chance
_MIN_ENCODED = 8
_VAGUE_NAMES = ("key", "auth", "session")  # names of properties and methods, too
_SHORT_NAMES = re.compile(r"(?:.*[_.-])?(?:pat|pass|sas|bearer)", re.IGNORECASE)
_PLAIN_WORDS = re.compile(r"[a-z]{1,15}(?:_[a-z]{1,15}){0,3}")
_IN_DSN = re.compile(
    r"(?:^|[;\s?&])(?:password|pwd|passwd|secret|token)\s*=\s*('[^']*'|\{[^}]*\}|[^;\s&]+)", re.IGNORECASE
)
_MAX_QUOTE = 240


class Leaks:
    """Finds the values of secret keys: unchanged, escaped as in JSON and URLs, and in base64.

    Passwords inside connection strings and URLs count, whatever their key is. In base64 a value is found at any offset,
    as in ``Authorization: Basic``.

    Args:
        config: the tap's decoded config.

    Attributes:
        found: by the key's path and the output, the first line (from 1) with the value.
    """

    def __init__(self, config: Any) -> None:
        names = default_names()
        self._forms: dict[bytes, str] = {}
        for path, value in _secrets(config, "$", names, secret=False):
            for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, "")):
                self._forms.setdefault(form.encode("utf-8", "replace"), path)
            for encoded in _in_base64(value):
                self._forms.setdefault(encoded, path)
        self._redactor = Redactor()
        self.found: dict[tuple[str, str], int] = {}

    @property
    def keys(self) -> list[str]:
        """The paths of the secrets."""
        return sorted(set(self._forms.values()))

    def fresh(self) -> Leaks:
        """Return a search for the same secrets that has found none yet."""
        made = copy.copy(self)
        made.found = {}
        return made

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
        text = "".join(char if char.isprintable() else "�" for char in text)
        return text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1] + "…"


def _in_base64(value: str) -> Iterator[bytes]:
    """Yield the base64 forms of a value inside any text: one for each offset in a group of three bytes."""
    data = value.encode("utf-8", "replace")
    if len(data) < _MIN_ENCODED:
        return
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        start = (0, 2, 3)[before]  # characters that the bytes before have a part in
        end = len(whole) - (0, 3, 2)[(before + len(data)) % 3]  # likewise those after
        part = whole[start:end]
        yield part
        yield part.replace(b"+", b"-").replace(b"/", b"_")


def _secrets(node: Any, path: str, names: SecretNames, *, secret: bool) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            is_named = str(key) in names and str(key).lower() not in _VAGUE_NAMES
            is_secret = secret or is_named or _is_secret_name(str(key), value)
            yield from _secrets(value, f"{path}.{key}", names, secret=is_secret)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _secrets(value, f"{path}[{index}]", names, secret=secret)
    elif isinstance(node, str):
        if secret and len(node) >= _MIN_SECRET:
            yield path, node
        yield from ((path, inner) for inner in _passwords_in(node) if len(inner) >= _MIN_SECRET)


def _is_secret_name(name: str, value: Any) -> bool:
    """Return whether a name that is too short or too common for the redaction rules is a secret's."""
    if name.lower() in _VAGUE_NAMES:
        return isinstance(value, str) and not _PLAIN_WORDS.fullmatch(value)
    return bool(_SHORT_NAMES.fullmatch(name))


def _passwords_in(text: str) -> Iterator[str]:
    """Yield the passwords in a URL (``scheme://user:password@host``) or a connection string (``Password=…;``)."""
    if "://" in text:
        try:
            password = urlsplit(text).password
        except ValueError:
            password = None
        if password:
            yield password
            if unquote(password) != password:
                yield unquote(password)
    for match in _IN_DSN.finditer(text):
        yield match[1].strip("'{}")
