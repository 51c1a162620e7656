"""Downloads of single documents, such as a schema that another one refers to."""

from __future__ import annotations

from typing import Any

from balog.common.errors import BalogError
from balog.common.http.client import describe_failure
from balog.common.http.pool import open_pool

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

    pool = open_pool(url, timeout, None)
    try:
        policy = urllib3.Retry(None, connect=0, read=0, status=0, other=0, redirect=_MAX_REDIRECTS)
        answer: Any = pool.request("GET", url, headers={"User-Agent": "balog"}, retries=policy, preload_content=False)
        if not 200 <= answer.status < 300:
            raise DownloadError(f"HTTP Error {answer.status}: {answer.reason}")
        data: bytes = answer.read(limit, decode_content=False)
        return data
    except urllib3.exceptions.LocationValueError:
        raise DownloadError("a redirect leads to a URL that is not http(s)") from None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        cause = getattr(error, "reason", None)  # of a MaxRetryError
        if isinstance(cause, urllib3.exceptions.ResponseError):
            raise DownloadError(f"more than {_MAX_REDIRECTS} redirects") from None
        raise DownloadError(describe_failure(cause if isinstance(cause, Exception) else error)) from None
    finally:
        pool.clear()
