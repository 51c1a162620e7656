"""The secrets of a tap's config: looked for in what it writes, and kept out of what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from balog.redaction import DEFAULT_KEPT, DEFAULT_KEYS, Redactor
from balog.redaction.text import SecretNames

__all__ = ["Leaks"]

_SHORTEST = 6  # characters: what is shorter stands anywhere by chance
_LONGEST_SAID = 240


class Leaks:
    """Looks for values of keys that sound secret, as they are, as JSON writes them and as a URL does.

    Args:
        config: the tap's config as JSON has it.

    Attributes:
        found: by the key's path and the output, the first line (from 1) in which it stood.
    """

    def __init__(self, config: Any) -> None:
        names = SecretNames([*((name, True) for name in DEFAULT_KEYS), *((name, False) for name in DEFAULT_KEPT)])
        self._forms: dict[bytes, str] = {}
        for path, value in _secrets(config, "$", names, secret=False):
            for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, "")):
                self._forms.setdefault(form.encode("utf-8", "replace"), path)
        self._redactor = Redactor()
        self.found: dict[tuple[str, str], int] = {}

    @property
    def keys(self) -> list[str]:
        """Paths of what is looked for."""
        return sorted(set(self._forms.values()))

    def look(self, line: bytes | bytearray, output: str, number: int) -> None:
        """Look at a line of an output."""
        for form, path in self._forms.items():
            if form in line:
                self.found.setdefault((path, output), number)

    def search(self, data: bytes | bytearray, output: str) -> None:
        """Look at all that came on an output."""
        for form, path in self._forms.items():
            at = data.find(form)
            if at >= 0:
                self.found.setdefault((path, output), data.count(b"\n", 0, at) + 1)

    def hide(self, text: str) -> str:
        """Give what a tap said without secrets, as one short printable line."""
        for form in self._forms:
            text = text.replace(form.decode("utf-8", "replace"), "[redacted]")
        text = " ".join(self._redactor.redact_text(text[: 4 * _LONGEST_SAID]).split())
        text = "".join(char if char.isprintable() else "�" for char in text)
        return text if len(text) <= _LONGEST_SAID else text[: _LONGEST_SAID - 1] + "…"


def _secrets(node: Any, path: str, names: SecretNames, *, secret: bool) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _secrets(value, f"{path}.{key}", names, secret=secret or str(key) in names)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _secrets(value, f"{path}[{index}]", names, secret=secret)
    elif secret and isinstance(node, str) and len(node) >= _SHORTEST:
        yield path, node
