"""Events to an event service (``balog serve``), which reports a status per event.

Also the client side of the service's wire format: requests and answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from balog.common.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.common.secrets import Secret
from balog.sinks.base import Delivery, RequestErrors, Retrying, SinkError, SinkGuarantee, SinkOptions
from balog.sinks.http_sink import HttpSink

_PATH = "/v1/events"
_LINES = "application/x-ndjson"
_MAX_REASON = 200
_EACH_REFUSED = frozenset({403, 422, 429})
"""Statuses of an answer as a whole that may only summarize the statuses of its items."""


class Problem(Struct, frozen=True):
    """An error in an event, and its place as a JSONPath."""

    path: str
    reason: str


class Item(Struct, frozen=True, omit_defaults=True):
    """The status of one event.

    Attributes:
        status: 202 accepted, 422 refused for its ``problems``, 403 not allowed for this token, 413 too large, 429 no
            room now.
        id: the event's id; the service assigns one to an event without.
        index: its index in the request, if only some items are reported.
        store: the store that took it: ``topics``, or ``fallback`` while the topics fail.
        duplicate: whether an event of this id was accepted before; this one is not stored again.
        problems: why it was refused.
        retry_after: seconds after which its stream may have room.
        stream: the stream without room.
    """

    status: int
    id: str = ""
    index: int | None = None
    store: str = ""
    duplicate: bool = False
    problems: tuple[Problem, ...] = ()
    retry_after: float | None = None
    stream: str = ""

    @property
    def reason(self) -> str:
        """Return why it was not accepted, in one line."""
        problems = "; ".join(f"{problem.path}: {problem.reason}" for problem in self.problems)
        return " ".join(f"{self.status} {problems}".split())[:_MAX_REASON]


class Answer(Struct, frozen=True):
    """The answer to a request: how many events were accepted, by which stores, and the status of each event."""

    accepted: int
    refused: int
    stores: dict[str, int] = {}
    items: tuple[Item, ...] = ()


_answers = msgspec.json.Decoder(Answer)


class ServiceApi:
    """Posts events to a service.

    Args:
        url: the service's base URL.
        token: the bearer token, if the service requires one.

    Raises:
        ConfigError: see :class:`~balog.common.http.HttpClient`.
    """

    def __init__(self, url: str, token: str | None, timeout: float, ca_file: str | None, *, is_gzipped: bool) -> None:
        self.client = HttpClient(url, headers=bearer(token), timeout=timeout, ca_file=ca_file, is_gzipped=is_gzipped)

    def post(
        self, bodies: Iterable[bytes], *, only_failed: bool, keep_failed: bool = True, timeout: float | None = None
    ) -> Answer:
        """Post events, one per line. The answer has the status of each event, even if none was accepted.

        Args:
            only_failed: request only the items that failed; they have their ``index``.
            keep_failed: whether the service keeps invalid events, so that they can be corrected.
            timeout: seconds, instead of the default of this object.

        Raises:
            SinkError: there is no answer, it is not that of an event service, or the whole request was refused.
        """
        asked = ["items=failed"] * only_failed + ["failed=drop"] * (not keep_failed)
        path = f"{_PATH}?{'&'.join(asked)}" if asked else _PATH
        try:
            answer = self.client.post(path, b"".join(body + b"\n" for body in bodies), _LINES, timeout=timeout).body
        except HttpStatusError as error:
            if error.answer.status not in _EACH_REFUSED:
                raise
            parsed_answer = _read(error.answer.body)
            if parsed_answer is None or not parsed_answer.items:
                raise
            return parsed_answer
        parsed_answer = _read(answer)
        if parsed_answer is None:
            raise SinkError(f"{self.client.place} does not answer as an event service does; is the URL right?")
        return parsed_answer

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class ServiceSinkConfig(SinkOptions, tag_field="type", tag="service", forbid_unknown_fields=True, kw_only=True):
    """Send events to ``balog serve``; each is durable there once its batch returns."""

    examples: ClassVar = (
        {"type": "service", "url": "https://events.example.com", "token": {"env": "BALOG_TOKEN"}, "gzip": True},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the service has stored it durably (202)",
            "a batch",
            repeats="is stored once by its id",
        ),
    )

    url: Annotated[Url, Meta(description="Where the service is, without its path /v1/events.")]
    token: Annotated[Secret | None, Meta(description="The bearer token, where the service wants one.")] = None
    gzip: Annotated[bool, Meta(description="Compress what is sent.")] = False
    timeout: Timeout = 30.0
    ca_file: CaFile | None = None
    retry: Retrying = Retrying(first=0.2, longest=30.0)

    @property
    def name(self) -> str:
        """``service URL``."""
        return f"service {self.url}"

    def build(self) -> ServiceSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the URL is invalid, or the token is missing.
        """
        return ServiceSink(self.api())

    def api(self) -> ServiceApi:
        """Return a client of the service; see ``build``."""
        token = None if self.token is None else self.token.reveal("token")
        return ServiceApi(self.url, token, self.timeout, self.ca_file, is_gzipped=self.gzip)


class ServiceSink(HttpSink):
    """See ``ServiceSinkConfig``."""

    def __init__(self, api: ServiceApi) -> None:
        super().__init__(api.client)
        self._api = api

    def probe(self) -> None:
        """Check that the service is ready; see ``Sink``."""
        self._client.probe("/ready", "GET")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post a batch. Events that the service refuses are rejected; events whose stream has no room come again."""
        errors = RequestErrors()
        for item in self._api.post([body for _, body in batch], only_failed=True).items:
            if item.index is None or not 0 <= item.index < len(batch):
                raise SinkError(f"{self._client.place} does not answer as an event service does")
            if item.status == 429 or item.status >= 500:
                reason = f"{self._client.place} has no room for an event: {item.reason}"
                errors.keep([item.index], SinkError(reason, retry_after=item.retry_after))
            elif item.status >= 300:
                errors.reject({item.index: item.reason})
        errors.finish()


def bearer(token: str | None) -> dict[str, str]:
    """Return the header with a service's bearer token; none without a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def _read(body: bytes) -> Answer | None:
    try:
        return _answers.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
