"""OAuth password grant: an application signs in as a user."""

from __future__ import annotations

from typing import Any

from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import TokenGrant


class Password(TokenGrant):
    """Fetches access tokens with a user's name and password (RFC 6749, 4.3), each time anew.

    Refresh tokens of the server are not used, because the password can always be.

    Args:
        user: the user's name.
        password: the user's password.
        options: those of ``TokenGrant``.
    """

    name = "password"
    advice = "it rejected the user or the application; check the name, the password and client_id"

    def __init__(
        self, url: str, user: str, password: str, client_id: str = "", client_secret: str = "", **options: Any
    ) -> None:
        super().__init__(url, client_id, client_secret, **options)
        self._user = {"username": user, "password": password}

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``."""
        return self._token({"grant_type": "password", **self._user}).access
