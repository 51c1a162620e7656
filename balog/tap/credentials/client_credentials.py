"""OAuth client credentials: an application signs in as itself."""

from __future__ import annotations

from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import TokenGrant


class ClientCredentials(TokenGrant):
    """Fetches access tokens with the id and secret of an application (RFC 6749, 4.4).

    ::

        Client(url, auth=bearer(ClientCredentials(token_url, config["client_id"], config["client_secret"])))

    Its arguments are those of ``TokenGrant``.
    """

    name = "client_credentials"
    advice = "it rejected the application; check client_id, client_secret and scope"

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``."""
        return self._token({"grant_type": "client_credentials"}).access
