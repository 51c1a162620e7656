"""Pools of connections: certificates verified, the environment's proxy used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from balog.errors import ConfigError
from balog.http.proxies import find_proxy

if TYPE_CHECKING:
    import ssl


def open_pool(url: str, timeout: float, ca_file: str | None, *, size: int = 4, path: str = "url") -> Any:
    """Return urllib3's pool for a URL.

    Args:
        timeout: seconds for connecting, and for each wait for an answer.
        ca_file: a PEM file of the authorities to trust instead of the system's.
        size: idle connections that are kept.
        path: the field of a config that an error about the environment's proxy names.

    Raises:
        ConfigError: ``ca_file`` or the environment's proxy cannot be used.
    """
    import urllib3

    options: dict[str, Any] = {"timeout": urllib3.Timeout(connect=timeout, read=timeout), "maxsize": size}
    options["cert_reqs"] = "CERT_REQUIRED"
    if urlsplit(url).scheme == "https":
        options["ssl_context"] = tls_context(ca_file)
    if proxy := find_proxy(url, path):
        return urllib3.ProxyManager(proxy.url, proxy_headers=proxy.headers, **options)
    return urllib3.PoolManager(**options)


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that verifies certificates by the system's authorities, or by those of a PEM file.

    Raises:
        ConfigError: at ``ca_file``, the file cannot be read or is not a PEM file.
    """
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{ca_file}: {error.strerror or 'is not a PEM file'}", path="ca_file") from None
