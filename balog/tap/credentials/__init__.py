"""Credentials that are fetched once, or refreshed before they expire, and headers with them.

::

    @credentials.periodic(minutes=25)
    def token():
        return login(config["user"], config["password"])

    client = Client(url, auth=credentials.bearer(token))

Events, errors and reprs never contain a credential.
"""

from balog.tap.credentials.credential import Bearer, Credential, Granted, basic, bearer, header, once, periodic
from balog.tap.credentials.oauth import RefreshToken, write_back

__all__ = [
    "Bearer",
    "Credential",
    "Granted",
    "RefreshToken",
    "basic",
    "bearer",
    "header",
    "once",
    "periodic",
    "write_back",
]
