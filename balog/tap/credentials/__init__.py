"""Credentials that are fetched once, or refreshed before they expire, and requests with them.

::

    @credentials.periodic(minutes=25)
    def token():
        return login(config["user"], config["password"])

    client = Client(url, auth=credentials.bearer(token))

Each OAuth grant has a module of its own. Events, errors and reprs never contain a credential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.common.http.pool import ClientCertificate
    from balog.tap.credentials.authorization_code import AuthorizationCode
    from balog.tap.credentials.credential import Credential, Granted, once, periodic
    from balog.tap.credentials.grant import ClientCredentials, GrantError, Password, TokenGrant
    from balog.tap.credentials.keys import Bearer, QueryKey, basic, bearer, cookie, header, query
    from balog.tap.credentials.refresh_token import RefreshToken

__all__ = [
    "AuthorizationCode",
    "Bearer",
    "ClientCertificate",
    "ClientCredentials",
    "Credential",
    "GrantError",
    "Granted",
    "Password",
    "QueryKey",
    "RefreshToken",
    "TokenGrant",
    "basic",
    "bearer",
    "cookie",
    "header",
    "once",
    "periodic",
    "query",
]

_NAMES = {
    "authorization_code": ("AuthorizationCode",),
    "credential": ("Credential", "Granted", "once", "periodic"),
    "grant": ("ClientCredentials", "GrantError", "Password", "TokenGrant"),
    "keys": ("Bearer", "QueryKey", "basic", "bearer", "cookie", "header", "query"),
    "refresh_token": ("RefreshToken",),
}
_MODULES = {name: f"balog.tap.credentials.{module}" for module, names in _NAMES.items() for name in names}

__getattr__ = deferred(globals(), {**_MODULES, "ClientCertificate": "balog.common.http.pool"})
