"""Headers that contain a credential."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping


class Bearer:
    """A header with a credential, for ``Client(auth=…)``; refreshed if the source rejects it.

    Args:
        credential: a text, or a function that returns one, such as a ``Credential``.
        name: the name of the header.
        before: the text before the credential.
    """

    def __init__(
        self, credential: str | Callable[[], str], name: str = "Authorization", before: str = "Bearer "
    ) -> None:
        self._credential = credential
        self._name = name
        self._before = before
        if hasattr(credential, "refresh"):
            self.refresh = self._refresh

    def __call__(self) -> dict[str, str]:
        """Return the header."""
        value = self._credential() if callable(self._credential) else self._credential
        return {self._name: f"{self._before}{value}"}

    def _refresh(self, used: Mapping[str, str]) -> None:
        self._credential.refresh(used.get(self._name, "").removeprefix(self._before))  # type: ignore[union-attr]

    def __repr__(self) -> str:
        return f"<{self._name}: {self._before}…>"


def bearer(credential: str | Callable[[], str]) -> Bearer:
    """Return ``Authorization: Bearer …`` (RFC 6750)."""
    return Bearer(credential)


def header(name: str, credential: str | Callable[[], str]) -> Bearer:
    """Return a header whose value is a credential, such as ``X-Api-Key: …``."""
    return Bearer(credential, name, "")


def basic(user: str, password: str) -> Bearer:
    """Return ``Authorization: Basic …`` (RFC 7617)."""
    return Bearer(b64encode(f"{user}:{password}".encode()).decode(), before="Basic ")
