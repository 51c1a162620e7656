"""Headers and cookies that contain a credential."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TypeAlias

from balog.tap.credentials.credential import Credential
from balog.tap.credentials.grant import TokenGrant
from balog.tap.errors import TapError

Text: TypeAlias = "str | Callable[[], str] | TokenGrant"
"""A text; a function that returns one, such as a ``Credential``; or an OAuth grant, which is made one."""


def shared(credential: Text) -> Callable[[], str]:
    """Return a function that returns the credential; an OAuth grant as a ``Credential``, which all threads share."""
    if isinstance(credential, TokenGrant):
        return Credential(credential)
    return credential if callable(credential) else lambda: credential


class Bearer:
    """A header with a credential, for ``Client(auth=…)``; refreshed if the source rejects it.

    Args:
        credential: see ``Text``.
        name: the name of the header.
        before: the text before the credential.
    """

    def __init__(self, credential: Text, name: str = "Authorization", before: str = "Bearer ") -> None:
        self._credential = shared(credential)
        self._name = name
        self._before = before
        if hasattr(self._credential, "refresh"):
            self.refresh = self._refresh

    def __call__(self) -> dict[str, str]:
        """Return the header."""
        return {self._name: f"{self._before}{self._credential()}"}

    def _refresh(self, used: Mapping[str, str]) -> None:
        self._credential.refresh(used.get(self._name, "").removeprefix(self._before))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self._name}: {self._before}…>"


def bearer(credential: Text) -> Bearer:
    """Return ``Authorization: Bearer …`` (RFC 6750)."""
    return Bearer(credential)


def header(name: str, credential: Text) -> Bearer:
    """Return a header whose value is a credential, such as ``X-Api-Key: …``."""
    return Bearer(credential, name, "")


def basic(user: str, password: str) -> Bearer:
    """Return ``Authorization: Basic …`` (RFC 7617)."""
    return Bearer(b64encode(f"{user}:{password}".encode()).decode(), before="Basic ")


def cookie(name: str, credential: Text) -> Bearer:
    """Return ``Cookie: NAME=…`` (RFC 6265), the request's only cookie.

    Raises:
        TapError: a cookie cannot have this name.
    """
    if not name or not all("!" <= char <= "~" and char not in '()<>@,;:\\"/[]?={}' for char in name):
        raise TapError(f"cookie({name!r:.100}): expected a name of letters, digits, - and _")
    return Bearer(credential, "Cookie", f"{name}=")
