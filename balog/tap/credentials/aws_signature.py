"""AWS Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html)."""

from __future__ import annotations

import hashlib
import hmac
import posixpath
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

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
    """Signs requests as AWS's services want it, for ``Client(auth=…)``.

    Args:
        service: the service's name in signatures: ``execute-api``, ``es``, ``s3``.
        region: the region, ``eu-central-1``.
        keys: the keys, or a function that returns them, called for each request, such as a ``Credential``; None for
            those that boto3 finds: environment, profile, role. These are refreshed, and need the extra ``aws``.
        clock: returns seconds since the epoch.

    Raises:
        MissingExtraError: without ``keys`` and the extra.
    """

    def __init__(
        self,
        service: str,
        region: str,
        keys: AwsKeys | Callable[[], AwsKeys] | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not service or not region:
            raise TapError("AwsSignature(service, region): want the names of both")
        self._service, self._region = service, region
        self._keys = _found_by_boto3() if keys is None else keys
        self._clock = clock

    def sign(self, request: Request) -> Request:
        """Return the request with its signature."""
        from urllib3.util import parse_url

        keys = self._keys() if callable(self._keys) else self._keys
        parts = urlsplit(parse_url(request.url).url)  # as urllib3 sends it
        parts = parts._replace(path=quote(parts.path, safe=f"/%{_UNRESERVED}") or "/")
        query = _query(parts.query)
        payload = hashlib.sha256(request.body or b"").hexdigest()
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        added = {"X-Amz-Date": at}
        if self._service == "s3":
            added["X-Amz-Content-SHA256"] = payload
        if keys.session_token:
            added["X-Amz-Security-Token"] = keys.session_token
        signed = {name.lower(): value for name, value in request.headers.items() if name.lower() == "content-type"}
        signed |= {name.lower(): value for name, value in added.items()} | {"host": _host(parts)}
        names = ";".join(sorted(signed))
        lines = [f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed)]
        canonical = "\n".join([request.method, self._path(parts.path), query, "".join(lines), names, payload])
        scope = f"{at[:8]}/{self._region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{keys.secret_key}".encode()
        for part in scope.split("/"):
            key = _hmac(key, part)
        added["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, "
            f"Signature={_hmac(key, text).hex()}"
        )
        # The URL is sent as it is signed: a + for a space would be ambiguous.
        return request._replace(url=parts._replace(query=query).geturl(), headers={**request.headers, **added})

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Return False: another signature would be rejected, too."""
        return False

    def __repr__(self) -> str:
        return f"<AWS4-HMAC-SHA256 {self._region}/{self._service}>"

    def _path(self, path: str) -> str:
        if self._service == "s3":  # the only service whose paths are neither normalized nor encoded twice
            return path
        normal = posixpath.normpath(path)
        normal = f"/{normal.lstrip('/')}" + ("/" if path.endswith("/") and normal.strip("/") else "")
        return quote(normal, safe=f"/{_UNRESERVED}")


def _query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    encoded = sorted((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def _host(parts: Any) -> str:
    default = {"http": 80, "https": 443}.get(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return host if parts.port in (None, default) else f"{host}:{parts.port}"


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _found_by_boto3() -> Callable[[], AwsKeys]:
    try:
        import botocore.session
    except ImportError:
        raise MissingExtraError("finding AWS's keys as boto3 does", "aws") from None
    session = botocore.session.get_session()

    def find() -> AwsKeys:
        found = session.get_credentials()
        if found is None:
            raise SourceError("there are no keys for AWS; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        frozen = found.get_frozen_credentials()  # refreshes those of a role
        return AwsKeys(frozen.access_key, frozen.secret_key, frozen.token or "")

    return find
