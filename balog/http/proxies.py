"""The environment's proxies: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from balog.errors import ConfigError


class Proxy(NamedTuple):
    """A proxy: its URL without credentials, and the headers that have them."""

    url: str
    headers: dict[str, str]


def find_proxy(url: str, path: str = "url") -> Proxy | None:
    """Return the proxy that the environment names for a URL, or None.

    A proxy is ``http://HOST:PORT`` or ``https://HOST:PORT``, with ``USER:PASSWORD@`` if it wants credentials.

    Raises:
        ConfigError: the variable is not such a URL; at ``path``. No error shows any of it.
    """
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # imports http.client and ssl

    parts = urlsplit(url)
    proxies = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    try:
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        host, port = proxy.hostname or "", proxy.port
    except ValueError:
        proxy, host, port = urlsplit(""), "", 0
    if proxy.scheme not in ("http", "https") or not host or port == 0:
        raise ConfigError(
            f"the environment's proxy for {parts.scheme} is not http://HOST:PORT; correct {parts.scheme}_proxy or "
            "all_proxy, or name the host in no_proxy",
            path=path,
        )
    headers = {}
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    host = f"[{host}]" if ":" in host else host
    return Proxy(f"{proxy.scheme}://{host}:{port or (443 if proxy.scheme == 'https' else 80)}", headers)
