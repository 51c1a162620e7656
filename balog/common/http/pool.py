"""Pools of connections: certificates verified, the proxy of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY used."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from balog.common.errors import ConfigError

if TYPE_CHECKING:
    import ssl


class ClientCertificate(NamedTuple):
    """A client's certificate, for servers that require one (mutual TLS).

    Attributes:
        cert_file: a PEM file with the certificate, those of intermediate authorities after it, and the private key.
        key_file: a PEM file with the private key, if ``cert_file`` does not contain it.
        password: the password of the private key.
    """

    cert_file: str
    key_file: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"ClientCertificate({self.cert_file!r})"


def open_pool(
    url: str,
    timeout: float,
    ca_file: str | None,
    *,
    certificate: ClientCertificate | None = None,
    size: int = 4,
    path: str = "url",
) -> Any:
    """Return urllib3's pool for a URL.

    Args:
        timeout: seconds for connecting, and for each wait for an answer.
        ca_file: a PEM file of the authorities to trust instead of the system's.
        certificate: the client's own certificate.
        size: idle connections that are kept.
        path: the field of a config that an error about the environment's proxy names.

    Raises:
        ConfigError: ``ca_file``, ``certificate`` or the environment's proxy cannot be used.
    """
    import urllib3

    limits = urllib3.Timeout(connect=timeout, read=timeout)
    options: dict[str, Any] = {"timeout": limits, "maxsize": size, "cert_reqs": "CERT_REQUIRED"}
    if urlsplit(url).scheme == "https":
        options["ssl_context"] = tls_context(ca_file, certificate)
    if proxy := find_proxy(url, path):
        return urllib3.ProxyManager(proxy[0], proxy_headers=proxy[1], **options)
    return urllib3.PoolManager(**options)


def tls_context(ca_file: str | None, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
    """Return a context that verifies certificates by the system's authorities, or by those of a PEM file.

    Args:
        certificate: the client's own certificate.

    Raises:
        ConfigError: at ``ca_file`` or ``certificate``, a file cannot be read or is not a PEM file.
    """
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{ca_file}: {error.strerror or 'is not a PEM file'}", path="ca_file") from None
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    file, key = certificate.cert_file, certificate.key_file or None
    try:
        # Without a function, OpenSSL would prompt for the password on the terminal.
        context.load_cert_chain(file, key, password=lambda: certificate.password)
    except (FileNotFoundError, PermissionError) as error:
        files = f"{file} or {key}" if key else file
        raise ConfigError(f"{files}: cannot be read: {error.strerror}", path="certificate") from None
    except (OSError, ValueError):  # its text could contain parts of the key
        advice = "is its password right?" if certificate.password else "has the key a password, or is it another's?"
        raise ConfigError(
            f"{file}: no certificate with its private key in PEM can be read from {key or 'it'}; {advice}",
            path="certificate",
        ) from None


def find_proxy(url: str, path: str) -> tuple[str, dict[str, str]] | None:
    """Return the URL of the proxy that the environment names for a URL, and the headers with its credentials, or None.

    A proxy is ``http://HOST:PORT`` or ``https://HOST:PORT``, with ``USER:PASSWORD@`` if it wants credentials.

    Raises:
        ConfigError: the variable is not such a URL; at ``path``. No error shows any of it.
    """
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # imports http.client and ssl

    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    parts = urlsplit(url)
    proxies = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    try:
        proxy = parse_url(named if "://" in named else f"http://{named}")
    except LocationParseError:
        proxy = parse_url("")
    if proxy.scheme not in ("http", "https") or not proxy.host or proxy.port == 0:
        raise ConfigError(
            f"the environment's proxy for {parts.scheme} is not http://HOST:PORT; correct {parts.scheme}_proxy or "
            "all_proxy, or name the host in no_proxy",
            path=path,
        )
    credentials = unquote(proxy.auth if ":" in proxy.auth else f"{proxy.auth}:") if proxy.auth else ""
    headers = {"Proxy-Authorization": f"Basic {b64encode(credentials.encode()).decode()}"} if credentials else {}
    return f"{proxy.scheme}://{proxy.netloc}", headers
