"""Downloads of single documents, such as a schema that another one refers to."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

from balog.errors import BalogError
from balog.http.client import describe_failure
from balog.http.pool import open_pool

_MAX_REDIRECTS = 10


class DownloadError(BalogError):
    """A document could not be downloaded."""


def download(url: str, limit: int, timeout: float = 30.0) -> bytes:
    """Return the body at an http(s) URL; redirects are followed.

    Args:
        limit: bytes of the body at most; further ones are not read.
        timeout: seconds for connecting, and for each wait for a piece of the answer.

    Raises:
        ConfigError: the environment's proxy cannot be used.
        DownloadError: there is no answer, or one that is not 2xx.
    """
    import urllib3

    for _ in range(_MAX_REDIRECTS + 1):
        if urlsplit(url).scheme not in ("http", "https"):
            raise DownloadError("a redirect leads to a URL that is not http(s)")
        pool = open_pool(url, timeout, None)
        try:
            answer: Any = pool.request(
                "GET", url, headers={"User-Agent": "balog"}, redirect=False, retries=False, preload_content=False
            )
            if location := answer.get_redirect_location():
                url = urljoin(url, location)
                continue
            if not 200 <= answer.status < 300:
                raise DownloadError(f"HTTP Error {answer.status}: {answer.reason}")
            data: bytes = answer.read(limit, decode_content=False)
            return data
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise DownloadError(describe_failure(error)) from None
        finally:
            pool.clear()
    raise DownloadError(f"more than {_MAX_REDIRECTS} redirects")
