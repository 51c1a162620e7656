"""AWS Signature Version 4, by botocore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from balog.errors import MissingExtraError
from balog.tap.errors import SourceError, TapError
from balog.tap.http.connections import Request

_UNRESERVED = "-_.~"


class AwsKeys(NamedTuple):
    """The keys of an AWS account or role; ``session_token`` for temporary ones."""

    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return "AwsKeys(…)"


class AwsSignature:
    """Signs requests as AWS's services want it, for ``Client(auth=…)``. It needs the extra ``aws``.

    Args:
        service: the service's name in signatures: ``execute-api``, ``es``, ``s3``.
        region: the region, ``eu-central-1``.
        keys: the keys, or a function that returns them, called for each request, such as a ``Credential``; None for
            those that boto3 finds: environment, profile, role. These are refreshed.

    Raises:
        MissingExtraError: without the extra.
    """

    def __init__(self, service: str, region: str, keys: AwsKeys | Callable[[], AwsKeys] | None = None) -> None:
        if not service or not region:
            raise TapError("AwsSignature(service, region): want the names of both")
        try:
            from botocore.auth import S3SigV4Auth, SigV4Auth
            from botocore.session import get_session
        except ImportError:
            raise MissingExtraError("signing requests for AWS", "aws") from None
        self._service, self._region, self._keys = service, region, keys
        self._signer = S3SigV4Auth if service == "s3" else SigV4Auth
        self._session: Any = get_session() if keys is None else None

    def sign(self, request: Request) -> Request:
        """Return the request with its signature."""
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        from urllib3.util import parse_url

        given = self._keys() if callable(self._keys) else self._keys
        if given is not None:
            keys = Credentials(given.access_key, given.secret_key, given.session_token or None)
        else:
            keys = self._session.get_credentials()
            if keys is None:
                raise SourceError("there are no keys for AWS; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        parts = urlsplit(parse_url(request.url).url)  # as urllib3 sends it
        # The URL is sent as it is signed: a + for a space would be ambiguous.
        query = urlencode(parse_qsl(parts.query, keep_blank_values=True), safe=_UNRESERVED, quote_via=quote)
        url = parts._replace(path=quote(parts.path, safe=f"/%{_UNRESERVED}") or "/", query=query).geturl()
        kinds = {name: value for name, value in request.headers.items() if name.lower() == "content-type"}
        signed = AWSRequest(request.method, url, data=request.body or b"", headers=kinds)
        self._signer(keys, self._service, self._region).add_auth(signed)
        return request._replace(url=url, headers={**request.headers, **dict(signed.headers.items())})

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Return False: another signature would be rejected, too."""
        return False

    def __repr__(self) -> str:
        return f"<AWS4-HMAC-SHA256 {self._region}/{self._service}>"
