"""Headers that have a credential in them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping

__all__ = ["Bearer", "basic", "bearer", "header"]


class Bearer:
    """Headers with a credential in one of them, for ``Client(auth=…)``; refreshed when the source refuses it.

    Args:
        credential: a text, or what gives one: a ``Credential``, or any function.
        name: the header's.
        before: stands before the credential.
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
        """Give the headers."""
        value = self._credential() if callable(self._credential) else self._credential
        return {self._name: f"{self._before}{value}"}

    def _refresh(self, used: Mapping[str, str]) -> None:
        self._credential.refresh(used.get(self._name, "").removeprefix(self._before))  # type: ignore[union-attr]

    def __repr__(self) -> str:
        return f"<{self._name}: {self._before}…>"


def bearer(credential: str | Callable[[], str]) -> Bearer:
    """Give ``Authorization: Bearer …`` (RFC 6750)."""
    return Bearer(credential)


def header(name: str, credential: str | Callable[[], str]) -> Bearer:
    """Give a header that is a credential, as APIs with keys want it: ``X-Api-Key: …``."""
    return Bearer(credential, name, "")


def basic(user: str, password: str) -> Bearer:
    """Give ``Authorization: Basic …`` (RFC 7617)."""
    return Bearer(b64encode(f"{user}:{password}".encode()).decode(), before="Basic ")
