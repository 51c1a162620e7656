"""Read a file at a pre-signed URL by one verified GET without redirects; messages omit its query."""

from __future__ import annotations

import io
import time
from typing import IO, Any

from balog.backoff import Backoff
from balog.broker.batches.config import BatchConfig
from balog.errors import ConfigError
from balog.http.client import describe_failure
from balog.http.pool import open_pool
from balog.singer.batch.compression import Limits
from balog.singer.batch.dialects import BatchError

_TRIES = 3
_BACKOFF = Backoff(1.0, 4.0)


def open_presigned(url: str, config: BatchConfig) -> IO[bytes]:
    """Open a file at an http(s) URL, with up to three attempts if the server is busy or down.

    Raises:
        BatchError: no answer, or no file; without the query, which is a credential.
    """
    import ssl

    try:
        pool = open_pool(url, config.timeout, config.ca_file)
    except ConfigError as error:
        raise BatchError(f"can't be read: {error.reason}") from None
    import urllib3

    for number in range(1, _TRIES + 1):
        try:
            answer = pool.request(
                "GET",
                url,
                headers={"User-Agent": "balog", "Accept-Encoding": "identity"},
                preload_content=False,
                decode_content=False,
                redirect=False,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError, ssl.SSLError) as error:
            reason, is_final = (
                describe_failure(error) if isinstance(error, urllib3.exceptions.HTTPError) else "no URL",
                False,
            )
        else:
            if answer.status == 200:
                return io.BufferedReader(_Body(answer, _declared_size(answer)), 1 << 20)
            reason, is_final = _refusal(answer.status), answer.status < 500 and answer.status != 429
            answer.close()
        if is_final or number == _TRIES:
            break
        time.sleep(_BACKOFF.delay(number))
    raise BatchError(f"can't be read: {reason}")


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return f"the server answers {status}, which leads elsewhere; a pre-signed URL names the file itself"
    known = {401: "not allowed", 403: "not allowed, or the URL has expired", 404: "it is not there"}
    return f"the server answers {status}, {known[status]}" if status in known else f"the server answers {status}"


def _declared_size(answer: Any) -> int | None:
    text = answer.headers.get("Content-Length", "")
    if not text.isdecimal():
        return None
    if int(text) > Limits().decompressed:
        answer.close()
        raise BatchError(f"has {text} bytes, more than {Limits().decompressed}")
    return int(text)


class _Body(io.RawIOBase):
    """A response's body as a file; a truncated body is an error."""

    def __init__(self, answer: Any, size: int | None) -> None:
        self._answer = answer
        self._size = size
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import urllib3

        try:
            data = self._answer.read(len(buffer), decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError):
            raise BatchError("was not read to its end: the connection broke") from None
        self._count += len(data)
        if not data and self._size is not None and self._count < self._size:
            raise BatchError(f"was not read to its end: {self._count} of {self._size} bytes came")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._answer.close()
        super().close()
