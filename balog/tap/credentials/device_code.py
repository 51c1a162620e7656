"""OAuth device code: a person signs in on another device, once; then refresh tokens are used."""

from __future__ import annotations

import time
from typing import Any

from balog.tap.credentials.grant import GrantError, TokenAnswer, default_client, seconds_of
from balog.tap.credentials.sign_in import SignInGrant
from balog.tap.errors import SourceError
from balog.tap.patterns.concurrency import pause

_MAX_SECONDS = 1800.0
_MAX_INTERVAL = 60.0
_DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


class DeviceCode(SignInGrant):
    """Fetches access tokens after a person has signed in on another device (RFC 8628).

    The first run prints an address and a code, and waits until the person has entered it. The refresh token is stored,
    so later runs need nobody, until the server rejects it.

    Args:
        url: the token endpoint.
        device_url: the device authorization endpoint.
        options: those of ``SignInGrant``: ``token_file``, ``show``, and those of ``TokenGrant``.
    """

    name = "device_code"
    advice = "it rejected the sign-in; run the tap again, and enter the new code"

    def __init__(
        self,
        url: str,
        device_url: str,
        client_id: str,
        client_secret: str = "",
        **options: Any,
    ) -> None:
        super().__init__(url, device_url, client_id, client_secret, **options)
        self._device = default_client(device_url)

    def sign_in(self) -> TokenAnswer:
        """See ``SignInGrant``."""
        asked = self._request({}, self._device)
        code, user_code, place = (asked.get(name) for name in ("device_code", "user_code", "verification_uri"))
        place = place or asked.get("verification_url")  # as drafts of the RFC had it
        if not (isinstance(code, str) and isinstance(user_code, str) and isinstance(place, str)):
            raise SourceError("the device endpoint answered without device_code, user_code and verification_uri")
        interval = min(seconds_of(asked.get("interval")) or 5.0, _MAX_INTERVAL)
        until = time.monotonic() + min(seconds_of(asked.get("expires_in")) or _MAX_SECONDS, _MAX_SECONDS)
        self.show(f"To sign in, open {place[:500]} and enter the code {user_code[:100]}")
        while time.monotonic() < until:
            pause(interval)
            try:
                return self._token({"grant_type": _DEVICE_CODE, "device_code": code})
            except GrantError as error:
                if error.code == "slow_down":
                    interval = min(interval + 5, _MAX_INTERVAL)
                elif error.code != "authorization_pending":
                    raise
        raise SourceError("nobody has entered the code in time; run the tap again")
