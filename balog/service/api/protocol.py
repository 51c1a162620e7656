"""uvicorn's HTTP protocol with limits of connections, header size and time.

uvicorn itself has no timeout for incomplete requests and for answers that the client does not read, no limit of the
header size, and answers invalid HTTP in plain text.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from balog.service.api.errors import ApiError
from balog.service.settings import RequestLimits

_MAX_HEAD = 64 << 10
_RESERVE = 32  # connections above the limit, for probes
_RESERVE_SECONDS = 1.0  # for a reserve connection to send the request of a probe
_IDLE_SECONDS = 2.0  # until a connection without a request may be closed in favour of a new one
_PROBES = frozenset({b"/health", b"/ready"})
_FULL = ApiError(503, "the service has reached its limit of connections", retry_after=1)


class _Protocol(HttpToolsProtocol):
    """A connection.

    At the limit, the connection that has waited longest without a first request is closed. If there is none, a few more
    connections are accepted for probes only. So a client that holds all connections cannot make probes fail.
    """

    limits: ClassVar[RequestLimits]
    silent: ClassVar[dict[_Protocol, float]]
    """Connections without a request, the oldest first, with the time of their start."""
    reserve: ClassVar[dict[_Protocol, None]]
    """Connections above the limit, the oldest first."""
    _timer: asyncio.TimerHandle | None = None
    _full: asyncio.TimerHandle | None = None
    _head = 0
    _read = 0
    _is_rejected = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.silent[self] = self.loop.time()
        if len(self.connections) - len(self.reserve) > self.limits.connections and not self._close_idle_connection():
            self.reserve[self] = None
            if len(self.reserve) > _RESERVE:
                oldest = next(iter(self.reserve))
                del self.reserve[oldest]
                oldest._reject(_FULL)
        self._begin_timer()

    def _close_idle_connection(self) -> bool:
        """Close the oldest connection without a request, if it is old enough. Return whether one was closed."""
        oldest, since = next(iter(self.silent.items()))
        if oldest is self or oldest in self.reserve or self.loop.time() - since < _IDLE_SECONDS:
            return False
        del self.silent[oldest]
        oldest._reject(_FULL)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        self.silent.pop(self, None)
        self.reserve.pop(self, None)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._full is not None:
            self._full.cancel()
            self._full = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._is_rejected:
            return
        self._head += len(data)
        self._read += len(data)
        super().data_received(data)
        if self._head > _MAX_HEAD:
            self._reject(ApiError(431, f"the request's head has more than {_MAX_HEAD} bytes"))
        elif self._read > 2 * self.limits.body_bytes + _MAX_HEAD:  # the client goes on sending a rejected body
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._read = 0
        if self._timer is None:
            self._begin_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head >= 0:  # trailers of a chunked body must not count as headers
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head = -(1 << 62)  # the rest is the body, which the application limits
        self.silent.pop(self, None)
        if self not in self.reserve:
            super().on_headers_complete()
        elif self.url.partition(b"?")[0] in _PROBES:
            super().on_headers_complete()
            self.cycle.keep_alive = False
        else:
            self._is_rejected = True
            self._reject(_FULL)

    def on_body(self, body: bytes) -> None:
        if not self._is_rejected:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        self._end_timer()
        if self._is_rejected:
            return
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP in the service's form. An earlier request on the connection still gets its answer."""
        if self._is_answering:
            self.cycle.keep_alive = False
            self._is_rejected = True
            return
        self._reject(ApiError(400, "not a valid HTTP request"))

    @property
    def _is_answering(self) -> bool:
        """Whether a request has arrived as a whole, and its answer is not complete."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _begin_timer(self) -> None:
        self._end_timer()
        seconds = _RESERVE_SECONDS if self in self.reserve else self.limits.seconds
        self._timer = self.loop.call_later(seconds, self._expire)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self._is_answering:  # else a later request of the connection is late
            late = ApiError(408, f"the request did not arrive within {self.limits.seconds:g} seconds")
            self._reject(_FULL if self in self.reserve else late)
        else:
            self.transport.close()

    def _reject(self, error: ApiError) -> None:
        if self.transport.is_closing():
            return
        body = error.body()
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        lines = [f"{name}: {value}\r\n" for name, value in (headers | error.headers).items()]
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(STATUS_LINE[error.status] + "".join(lines).encode("latin-1") + b"\r\n" + body)
        self.transport.close()


def make_protocol(bounds: RequestLimits) -> Any:
    """Return the protocol class for a service with these limits."""
    return type("Protocol", (_Protocol,), {"limits": bounds, "silent": {}, "reserve": {}})
