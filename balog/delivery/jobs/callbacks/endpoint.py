"""The other side of a callback: one URL, its keys and headers, and what its answers mean."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from balog.delivery.document import Callback
from balog.errors import ConfigError
from balog.expressions import Expression
from balog.http import HttpClient, HttpError, check_headers, check_url
from balog.http.addresses import ANYWHERE, Networks
from balog.http.guarded_pool import ASK_OPERATOR, Cutter, open_guarded_pool
from balog.secrets import Secret
from balog.sinks.base import SinkError
from balog.sinks.headers import reveal_headers
from balog.sinks.signing import read_keys, sign

__all__ = ["Endpoint", "Refusal", "check_callback"]

REREAD_SECONDS = 10.0
"""How long a changed file with a key, a header or the URL may go unnoticed."""

_MAX_ANSWER = 64 * 1024
_EVENTS_FAULT = frozenset({400, 413, 415, 422})
_GONE = 410


class Refusal(Struct, frozen=True):
    """Why a request did not succeed.

    ``reason`` is one line without anything that the endpoint said. ``retry_after`` are the seconds that it asked to be
    left alone, at most an hour. ``is_events`` when the endpoint is well and finds fault with what it was sent.
    """

    reason: str
    retry_after: float | None = None
    status: int = 0

    @property
    def is_gone(self) -> bool:
        """Whether the endpoint wants nothing more, ever."""
        return self.status == _GONE

    @property
    def is_events(self) -> bool:
        """Whether it is about these events, and others may succeed."""
        return self.status in _EVENTS_FAULT


def check_callback(config: Callback) -> None:
    """See what can be seen of a callback without its secrets, a network or a start.

    Raises:
        ConfigError: a URL or header that can't be, an address in the URL that is not allowed, a ``where`` that is no
            condition; ``path`` is the field.
    """
    if isinstance(config.url, str):
        _check_url(config.url, ANYWHERE if config.private else Networks(), config.private)
    for name, value in config.headers.items():
        if isinstance(value, str):
            check_headers(reveal_headers({name: value}, ours="webhook-"))
    if config.where is not None:
        try:
            Expression(config.where)
        except ConfigError as error:
            raise ConfigError(error.reason, path="where") from None


class Endpoint:
    """Posts to the URL of a callback; for several threads at once.

    Secrets in files are read again from time to time, so that a key is changed without a stop.

    Args:
        config: the callback's.
        networks: private ones that a callback with ``private`` may call.

    Attributes:
        place: where it is, for people: host and port, or the name of the secret that has the URL.
        trouble: why secrets could not be read again, as one line; those from before are then used on.

    Raises:
        ConfigError: a URL, header or key that is none, a secret that is not there; ``path`` is the field.
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
        self.trouble = ""

    @property
    def place(self) -> str:
        """Where it is."""
        url = self._config.url
        if isinstance(url, Secret):
            return f"${url.env}" if url.env else str(url.file)
        return urlsplit(url).netloc

    def post(self, id: str, body: bytes) -> Refusal | None:
        """Post a JSON document, signed anew; None when any answer of 2xx came, whatever its body is.

        It takes three times the callback's ``timeout`` at most, looking the name up aside.
        """
        try:
            with self._cutter.within(2 * self._config.timeout):
                self._client.post("", body, headers=sign(id, body, self._revealed.keys))
        except HttpError as error:
            return Refusal(f"{self.place} answered {error.answer.status}", error.retry_after, error.answer.status)
        except SinkError as error:
            return Refusal(str(error).replace(self._client.place, self.place))
        except Exception as error:  # one event that can't be posted must not end the thread of all others
            return Refusal(f"{self.place}: could not be asked, {type(error).__name__}")
        return None

    def cut(self, *, everything: bool = False) -> None:
        """End requests that have taken too long, or all; they fail then."""
        self._cutter.cut(None if everything else time.monotonic())

    def refresh(self) -> None:
        """Read the secrets again if it is time to."""
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
            self.trouble = ""
        except ConfigError as error:
            self.trouble = f"{error}; going on with what it was before"
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
        return  # a name, or another form of an address: seen when it is connected to
    if kind:
        advice = ASK_OPERATOR if is_private else "if that is meant, set private: true"
        raise ConfigError(f"is an address of {kind}; {advice}", path="url")
