"""OAuth grants that a person's sign-in begins, once; then refresh tokens are used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import GrantError, TokenAnswer, TokenGrant
from balog.tap.credentials.refresh_token import refreshed, token_store


class SignInGrant(TokenGrant):
    """The base of grants that a person's sign-in begins.

    Args:
        url: the token endpoint.
        start_url: the endpoint at which the sign-in begins.
        token_file: the JSON file for refresh tokens; None asks in each run.
        show: receives the text for the person; None prints it to stderr.
        options: those of ``TokenGrant``.
    """

    is_repeatable = False

    def __init__(
        self,
        url: str,
        start_url: str,
        client_id: str,
        client_secret: str = "",
        *,
        token_file: str | os.PathLike[str] | None = None,
        show: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, **options)
        self._identity = f"{url}\n{client_id}\n{start_url}"
        self._store = token_store(token_file)
        self._show = show

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``.

        Raises:
            SourceError: nobody has signed in in time, or there is no terminal to ask on.
        """
        return self._store.exchange(self._identity, "", self._use)

    def show(self, text: str) -> None:
        """Show a line to the person; stderr gets a line that is not an event."""
        if self._show is not None:
            self._show(text)
        else:
            print("".join(char if char.isprintable() else "?" for char in text), file=sys.stderr, flush=True)

    def sign_in(self) -> TokenAnswer:
        """Have a person sign in, and return the tokens."""
        raise NotImplementedError

    def _use(self, token: str) -> tuple[Granted | str, str]:
        if token:
            try:
                return refreshed(self._token, token)
            except GrantError as error:
                if error.code != "invalid_grant":
                    raise
        found = self.sign_in()
        return found.access, found.refresh_token
