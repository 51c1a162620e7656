"""OAuth grants (RFC 6749): what all of them share, and those that store nothing."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote_plus

from balog.tap.credentials.credential import Granted
from balog.tap.errors import SourceError
from balog.tap.http.client import Client
from balog.tap.http.retries import Policy

_REFUSALS = (400, 401, 403, 428)  # 400 and 401 are RFC 6749's; some servers answer the others
_MAX_CODE = 60


class TokenAnswer(NamedTuple):
    """The answer of a token endpoint: an access token, with its lifetime if there is one, and a refresh token or ""."""

    access: Granted | str
    refresh_token: str

    def __repr__(self) -> str:
        return "TokenAnswer(…)"


class GrantError(SourceError):
    """A token endpoint rejected a request.

    Attributes:
        code: its error code, such as ``invalid_grant``; "" if there is none.
    """

    def __init__(self, code: str, advice: str) -> None:
        super().__init__(f"the token endpoint answered {code or 'no reason'}: {advice}")
        self.code = code


class TokenGrant:
    """A function that fetches an access token; the base of the grants.

    ``bearer(grant)`` makes it a credential that is refreshed before it expires, and that all threads share.

    Args:
        url: the token endpoint.
        client_id: the application's id.
        client_secret: the application's secret; "" if it has none.
        scope: what the token is for, if the server wants to know; several are separated by spaces.
        in_header: send the application's id and secret as HTTP Basic, not as fields of the form.
        more: further fields of the request, such as ``audience``.
        client: makes the requests; None makes one without authorization. With a certificate
            (``Client(url, certificate=…)``) it signs in by mutual TLS (RFC 8705).

    Raises:
        ConfigError: an invalid URL.
    """

    name: ClassVar[str]
    advice: ClassVar[str]
    """What to do when the server rejects the request, as a clause."""
    is_repeatable: ClassVar[bool] = True
    """Whether a request whose response was lost can be sent again."""

    def __init__(
        self,
        url: str,
        client_id: str = "",
        client_secret: str = "",
        *,
        scope: str = "",
        in_header: bool = False,
        more: Mapping[str, str] | None = None,
        client: Client | None = None,
    ) -> None:
        policy = Policy(tries=4, longest=10, total=60)
        self._client = client or Client(url, timeout=30, max_seconds=60, max_bytes=1 << 20, policy=policy)
        self._id, self._secret = client_id, client_secret
        self._in_header = in_header
        self._more = {**(more or {}), **({"scope": scope} if scope else {})}
        self.__name__ = self.name

    def __call__(self) -> Granted | str:
        """Fetch and return an access token, with its lifetime if the server has one.

        Raises:
            SourceError: the server rejects the request, or its answer is invalid. The message has the server's error
                code (``invalid_grant``) and no credential.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._client!r}>"

    def _token(self, fields: Mapping[str, str]) -> TokenAnswer:
        """Send fields and the application's credentials; return the tokens of the answer."""
        own, headers = self._application()
        answer = self._client.post(
            form={**self._more, **own, **fields},
            headers=headers,
            endpoint="token",
            allow=_REFUSALS,
            is_repeatable=self.is_repeatable,
        )
        body = answer.json()
        if not isinstance(body, dict):
            raise SourceError("the token endpoint did not answer with a JSON object")
        if answer.status in _REFUSALS or ("error" in body and "access_token" not in body):
            raise GrantError(_code(body.get("error")), self.advice)
        return _token_of(body)

    def _application(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the application's id and secret as fields, and as headers."""
        if self._in_header:
            pair = f"{quote_plus(self._id)}:{quote_plus(self._secret)}"  # RFC 6749, 2.3.1
            return {}, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        fields = {"client_id": self._id, "client_secret": self._secret}
        return {name: value for name, value in fields.items() if value}, {}


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


def _token_of(body: Mapping[str, Any]) -> TokenAnswer:
    """Return the tokens of an answer.

    Raises:
        SourceError: there is no access token, or one that no header can contain.
    """
    access, renewed = body.get("access_token"), body.get("refresh_token")
    if not isinstance(access, str) or not access:
        raise SourceError("the token endpoint answered without an access_token")
    if not all("!" <= char <= "~" for char in access):
        raise SourceError("the token endpoint answered with an access_token that no header can contain")
    seconds = _seconds_of(body.get("expires_in"))
    return TokenAnswer(Granted(access, seconds) if seconds else access, renewed if isinstance(renewed, str) else "")


def _seconds_of(value: Any) -> float:
    """Return a time in seconds, which some servers write as a text; 0 if there is none."""
    try:
        seconds = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return seconds if 0 < seconds < math.inf else 0


def _code(value: Any) -> str:
    is_code = isinstance(value, str) and value.replace("_", "").isalnum() and value.isascii() and len(value) < _MAX_CODE
    return value if is_code else ""
