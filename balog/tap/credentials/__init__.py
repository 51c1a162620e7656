"""Credentials that are asked for once, or again before they are out of date; and headers made of them.

::

    @credentials.periodic(minutes=25)
    def token():
        return login(config["user"], config["password"])

    client = Client(url, auth=credentials.bearer(token))

No event, no error and no repr has a credential in it.
"""

from balog.tap.credentials.credential import Credential, Granted, once, periodic
from balog.tap.credentials.headers import Bearer, basic, bearer, header
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
