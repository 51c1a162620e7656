"""OAuth refresh tokens, also those that the server replaces each time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import balog
from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import TokenAnswer, TokenGrant
from balog.tap.credentials.token_store import TokenStore
from balog.tap.errors import TapError


class RefreshToken(TokenGrant):
    """Fetches access tokens with a refresh token (RFC 6749, 6).

    Many servers return a new refresh token each time, and reject the old one. If the new one is lost, a person has to
    log in again. So it is on disk before the access token is used, also if a signal ends the run during the request.

    ::

        auth = bearer(RefreshToken(url, id, secret, config["refresh_token"], token_file=config["token_file"]))

    Args:
        refresh_token: the first refresh token.
        config_path: the tap's config file, in which new refresh tokens replace the first. A token in the file takes
            precedence over ``refresh_token``.
        key: the name of the token in that file.
        token_file: a JSON file for new refresh tokens alone, for configs that are generated or read-only. It is
            created when missing. A new ``refresh_token`` in the config takes precedence over what it replaced.
        options: those of ``TokenGrant``.

    Raises:
        TapError: both files.
    """

    name = "refresh_token"
    advice = "it rejected the refresh token; sign in again, and set the new one in the config"
    is_repeatable = False  # if a response is lost, the server may have replaced the token

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        *,
        config_path: str | os.PathLike[str] | None = None,
        key: str = "refresh_token",
        token_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, **options)
        if config_path is not None and token_file is not None:
            raise TapError("RefreshToken(…, config_path=…, token_file=…): expected one file for new refresh tokens")
        self._first = refresh_token
        self._identity = f"{url}\n{client_id}\n{refresh_token}"
        self._store = token_store(token_file) if config_path is None else TokenStore(config_path, key)

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``.

        Raises:
            ConfigError: the new refresh token cannot be written; reported before the old one is used.
        """
        return self._store.exchange(self._identity, self._first, lambda token: refreshed(self._token, token))


def refreshed(fetch: Callable[[dict[str, str]], TokenAnswer], token: str) -> tuple[Granted | str, str]:
    """Use a refresh token; return the access token, and the new refresh token or ""."""
    answer = fetch({"grant_type": "refresh_token", "refresh_token": token})
    return answer.access, answer.refresh_token if answer.refresh_token != token else ""


def token_store(path: str | os.PathLike[str] | None) -> TokenStore | MemoryStore:
    """Return the store in a file of tokens; in memory without one."""
    return MemoryStore() if path is None else TokenStore(path)


class MemoryStore:
    """A store that lasts as long as the process, and logs a WARNING when a token would have to be stored."""

    def __init__(self) -> None:
        self._token = ""

    def exchange(self, identity: str, first: str, use: Callable[[str], tuple[Granted | str, str]]) -> Granted | str:
        """See ``TokenStore``."""
        result, renewed = use(self._token or first)
        if renewed:
            self._token = renewed
            balog.get_logger("balog.tap.credentials").warning(
                "the server returned a new refresh token, which is not stored: the next run may have to log in again; "
                "set token_file or config_path"
            )
        return result
