"""The endpoint of a callback: its URL, keys and headers, and the meaning of its answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from balog.common.errors import ConfigError
from balog.common.http import HttpClient, HttpStatusError, check_headers, check_url
from balog.common.http.addresses import ANYWHERE, Networks
from balog.common.http.client import EVENTS_FAULT
from balog.common.http.guarded_pool import ASK_OPERATOR, Cutter, open_guarded_pool
from balog.common.secrets import Secret
from balog.service.document import Callback
from balog.sinks.base import SinkError
from balog.sinks.http_sink import reveal_headers
from balog.sinks.signing import read_keys, sign

REREAD_SECONDS = 10.0
"""Seconds between readings of files with a key, a header or the URL."""

_MAX_ANSWER = 64 * 1024


class PostFailure(Struct, frozen=True):
    """Why a request failed.

    Attributes:
        reason: one line without any text of the endpoint.
        retry_after: seconds that the endpoint asked to wait, at most an hour.
        status: the HTTP status; 0 without an answer.
    """

    reason: str
    retry_after: float | None = None
    status: int = 0

    @property
    def is_events(self) -> bool:
        """Whether the endpoint rejects these events, and others may succeed."""
        return self.status in EVENTS_FAULT


def check_callback(config: Callback) -> None:
    """Check a callback's config without its ``where``, its secrets and the network.

    Raises:
        ConfigError: an invalid URL or header, or an address in the URL that is not allowed; ``path`` is the
            field.
    """
    if isinstance(config.url, str):
        _check_url(config.url, ANYWHERE if config.private else Networks(), config.private)
    for name, value in config.headers.items():
        if isinstance(value, str):
            check_headers(reveal_headers({name: value}, ours="webhook-"))


class Endpoint:
    """Posts to the URL of a callback. Thread-safe.

    It reads secrets in files again every few seconds, so that a key can change without a restart.

    Args:
        config: the callback.
        networks: private networks that a callback with ``private`` may call.

    Attributes:
        error: why secrets could not be read again, as one line; the earlier ones stay in use.

    Raises:
        ConfigError: an invalid URL, header or key, or a missing secret; ``path`` is the field.
    """

    def __init__(self, config: Callback, networks: Networks = ANYWHERE) -> None:
        check_callback(config)
        self._config = config
        self._networks = networks if config.private else Networks()
        self._cutter = Cutter()
        self._revealed = _reveal(config, self._networks)
        self._client = self._build(self._revealed)
        self._read_at = time.monotonic()
        self._lock = threading.Lock()
        self.error = ""

    @property
    def place(self) -> str:
        """The endpoint in messages: host and port, or the name of the secret that holds the URL."""
        url = self._config.url
        if isinstance(url, Secret):
            return f"${url.env}" if url.env else str(url.file)
        return urlsplit(url).netloc

    def post(self, id: str, body: bytes) -> PostFailure | None:
        """Post a JSON document with a new signature; None on any 2xx answer, whatever its body is.

        It takes at most three times the callback's ``timeout``, plus the time to resolve the name.
        """
        try:
            with self._cutter.within(2 * self._config.timeout):
                self._client.post("", body, headers=sign(id, body, self._revealed.keys))
        except HttpStatusError as error:
            return PostFailure(f"{self.place} answered {error.answer.status}", error.retry_after, error.answer.status)
        except SinkError as error:
            return PostFailure(str(error).replace(self._client.place, self.place))
        except Exception as error:  # an event that can't be posted must not end the thread
            return PostFailure(f"{self.place}: could not be asked, {type(error).__name__}")
        return None

    def abort(self, *, everything: bool = False) -> None:
        """Abort requests that take too long, or all requests."""
        self._cutter.cut(None if everything else time.monotonic())

    def refresh(self) -> None:
        """Read the secrets again if that is due."""
        now = time.monotonic()
        if now - self._read_at < REREAD_SECONDS:
            return
        self._read_at = now
        try:
            revealed = _reveal(self._config, self._networks)
            old = None
            if (revealed.url, revealed.headers) != (self._revealed.url, self._revealed.headers):
                old, self._client = self._client, self._build(revealed)
            self._revealed = revealed
            self.error = ""
        except ConfigError as error:
            self.error = f"{error}; going on with what it was before"
            return
        if old is not None:
            old.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _build(self, revealed: _Revealed) -> HttpClient:
        config = self._config
        pool = open_guarded_pool(
            revealed.url,
            config.timeout,
            config.ca_file,
            networks=self._networks,
            cutter=self._cutter,
            advice=ASK_OPERATOR if config.private else "if that is meant, set private: true in its callback",
        )
        return _Client(revealed.url, headers=revealed.headers, timeout=config.timeout, pool=pool)


class _Client(HttpClient):
    def _read(self, answer: Any) -> bytes:
        """Read the rest of an answer, so that its connection can be kept; only its status counts."""
        with suppress(Exception):
            answer.read(_MAX_ANSWER, decode_content=False)
        return b""


class _Revealed(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    keys: list[bytes]

    def __repr__(self) -> str:
        return "_Revealed(…)"


def _reveal(config: Callback, networks: Networks) -> _Revealed:
    url = config.url
    if isinstance(url, Secret):
        url = url.reveal("url")
        _check_url(url, networks, config.private)
    return _Revealed(url, reveal_headers(config.headers, ours="webhook-"), read_keys(config.secrets))


def _check_url(url: str, networks: Networks, is_private: bool) -> None:
    check_url(url)
    host = urlsplit(url).hostname or ""
    try:
        kind = networks.why_refused(host)
    except ValueError:
        return  # a name, or another form of an address: checked at the connection
    if kind:
        advice = ASK_OPERATOR if is_private else "if that is meant, set private: true"
        raise ConfigError(f"is an address of {kind}; {advice}", path="url")
