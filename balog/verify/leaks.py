"""Search for the config's secrets in a tap's output, and redaction of quoted output."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from balog.redaction import Redactor
from balog.verify.config_secrets import ConfigSecret, secrets_of

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

    @property
    def keys(self) -> list[str]:
        """The paths of the secrets."""
        return sorted(self.secrets)

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
