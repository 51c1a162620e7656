"""OAuth device code: a person signs in on another device, once; then refresh tokens are used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import GrantError, TokenGrant, default_client, seconds_of, token_of
from balog.tap.credentials.refresh_token import refreshed, token_store
from balog.tap.errors import SourceError
from balog.tap.patterns.concurrency import pause

_MAX_SECONDS = 1800.0
_MAX_INTERVAL = 60.0
_DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


def show_on_stderr(text: str) -> None:
    """Print a line to stderr, which is not an event."""
    print("".join(char if char.isprintable() else "?" for char in text), file=sys.stderr, flush=True)


class DeviceCode(TokenGrant):
    """Fetches access tokens after a person has signed in on another device (RFC 8628).

    The first run prints an address and a code, and waits until the person has entered it. The refresh token is stored,
    so later runs need nobody, until the server rejects it.

    Args:
        url: the token endpoint.
        device_url: the device authorization endpoint.
        token_file: the JSON file for refresh tokens; None asks in each run.
        show: receives the text for the person; None prints it to stderr.
        options: those of ``TokenGrant``.
    """

    name = "device_code"
    advice = "it rejected the sign-in; run the tap again, and enter the new code"
    is_repeatable = False

    def __init__(
        self,
        url: str,
        device_url: str,
        client_id: str,
        client_secret: str = "",
        *,
        token_file: str | os.PathLike[str] | None = None,
        show: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, **options)
        self._device = default_client(device_url)
        self._identity = f"{url}\n{client_id}\n{device_url}"
        self._store = token_store(token_file)
        self._show = show or show_on_stderr

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``.

        Raises:
            SourceError: nobody has entered the code in time.
        """
        return self._store.exchange(self._identity, "", self._use)

    def _use(self, token: str) -> tuple[Granted | str, str]:
        if token:
            try:
                return refreshed(self._token, token)
            except GrantError as error:
                if error.code != "invalid_grant":
                    raise
        return self._sign_in()

    def _sign_in(self) -> tuple[Granted | str, str]:
        asked = self._request({}, self._device)
        code, user_code, place = (asked.get(name) for name in ("device_code", "user_code", "verification_uri"))
        place = place or asked.get("verification_url")  # as drafts of the RFC had it
        if not (isinstance(code, str) and isinstance(user_code, str) and isinstance(place, str)):
            raise SourceError("the device endpoint answered without device_code, user_code and verification_uri")
        interval = min(seconds_of(asked.get("interval")) or 5.0, _MAX_INTERVAL)
        until = time.monotonic() + min(seconds_of(asked.get("expires_in")) or _MAX_SECONDS, _MAX_SECONDS)
        self._show(f"To sign in, open {place[:500]} and enter the code {user_code[:100]}")
        while time.monotonic() < until:
            pause(interval)
            try:
                found = token_of(self._request({"grant_type": _DEVICE_CODE, "device_code": code}))
                return found.access, found.refresh_token
            except GrantError as error:
                if error.code == "slow_down":
                    interval = min(interval + 5, _MAX_INTERVAL)
                elif error.code != "authorization_pending":
                    raise
        raise SourceError("nobody has entered the code in time; run the tap again")
