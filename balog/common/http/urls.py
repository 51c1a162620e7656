"""URLs and headers of a config: their types, and checks before the first request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from balog.common.errors import ConfigError

Url = Annotated[str, Meta(min_length=8, max_length=2000, description="http:// or https://, without a password in it.")]
Timeout = Annotated[float, Meta(gt=0, le=600, description="Seconds for connecting, and for each wait for an answer.")]
CaFile = Annotated[
    str,
    Meta(
        min_length=1, description="PEM file of the authorities to trust; the system's if none.", examples=["own-ca.pem"]
    ),
]

_NO_TOKEN = frozenset('"(),/:;<=>?@[\\]{}')  # RFC 9110, 5.6.2


def check_url(url: str, path: str = "url") -> None:
    """Check that a text is an http(s) URL without credentials. No error shows any of it.

    Raises:
        ConfigError: at ``path``.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("is not a URL; expected http://HOST… or https://HOST…", path=path) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError("is not a URL; expected http://HOST… or https://HOST…", path=path)
    if "@" in parts.netloc:
        raise ConfigError("has credentials in the URL; give them by the environment or a file", path=path)
    if parts.fragment or not all("!" <= char <= "~" for char in url):
        raise ConfigError("has a #, a space or a non-ASCII character, which must be written as %XX or xn--…", path=path)


def check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Check the names and values of headers, and return the headers.

    Raises:
        ConfigError: at ``headers``, a name or a value has characters that HTTP does not allow.
    """
    for name, value in headers.items():
        if not name or not all("!" <= char <= "~" and char not in _NO_TOKEN for char in name):
            raise ConfigError(f"{name!r} is not a header's name", path="headers")
        if not all(" " <= char <= "~" for char in value):
            raise ConfigError(f"the value of {name} has characters that no header may have", path="headers")
    return headers
