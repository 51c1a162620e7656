"""Events to an event service (``balog serve``), which answers for each of them.

Also the wire form of that service from the side of its clients: what is posted, and what the answer says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from balog.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.secrets import Secret
from balog.sinks.base import Delivery, Retrying, SinkError, SinkOptions

__all__ = ["Answer", "Item", "Problem", "ServiceApi", "ServiceSink", "ServiceSinkConfig"]

_PATH = "/v1/events"
_LINES = "application/x-ndjson"
_MAX_REASON = 200
_EACH_REFUSED = frozenset({403, 422, 429})
"""Statuses of a whole answer that may only say what all of its items have in common."""


class Problem(Struct, frozen=True):
    """What is wrong with an event, and where in it, as a JSONPath."""

    path: str
    reason: str


class Item(Struct, frozen=True, omit_defaults=True):
    """What became of one event.

    Attributes:
        status: 202 taken, 422 refused for its ``problems``, 403 not for this token, 413 too large, 429 not now.
        id: the event's, which the service gives to one that came without.
        index: its place in the request, where only some items are told.
        store: which store took it: ``topics``, or ``fallback`` while those fail.
        duplicate: an event of this id was taken before, and this one is not stored again.
        problems: why it was refused.
        retry_after: seconds after which its stream may have room.
        stream: which stream has none.
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
        """Say why it was not taken, in one line."""
        said = "; ".join(f"{problem.path}: {problem.reason}" for problem in self.problems)
        return " ".join(f"{self.status} {said}".split())[:_MAX_REASON]


class Answer(Struct, frozen=True):
    """What the service says of a request: how many of its events it took, into which stores, and what of each."""

    accepted: int
    refused: int
    stores: dict[str, int] = {}
    items: tuple[Item, ...] = ()


_answers = msgspec.json.Decoder(Answer)


class ServiceApi:
    """Posts events to a service.

    Args:
        url: where the service is; its paths come behind.
        token: the bearer token, if it wants one.

    Raises:
        ConfigError: see :class:`~balog.http.HttpClient`.
    """

    def __init__(self, url: str, token: str | None, timeout: float, ca_file: str | None, *, is_gzipped: bool) -> None:
        headers: Mapping[str, str] = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = HttpClient(url, headers=headers, timeout=timeout, ca_file=ca_file, is_gzipped=is_gzipped)

    def post(
        self, bodies: Iterable[bytes], *, only_failed: bool, keep_failed: bool = True, timeout: float | None = None
    ) -> Answer:
        """Post events, each a line; what is told of each of them is in the answer, also when none was taken.

        Args:
            only_failed: ask only for the items that failed, which then have their ``index``.
            keep_failed: what is refused for its faults is kept by the service, to be mended.
            timeout: seconds, instead of those that it was made with.

        Raises:
            SinkError: no answer, one that is no service's, or the request as a whole was refused.
        """
        asked = ["items=failed"] * only_failed + ["failed=drop"] * (not keep_failed)
        path = f"{_PATH}?{'&'.join(asked)}" if asked else _PATH
        try:
            answer = self.client.post(path, b"".join(body + b"\n" for body in bodies), _LINES, timeout=timeout).body
        except HttpStatusError as error:
            if error.answer.status not in _EACH_REFUSED:
                raise
            found = _read(error.answer.body)
            if found is None or not found.items:
                raise
            return found
        found = _read(answer)
        if found is None:
            raise SinkError(f"{self.client.place} does not answer as an event service does; is the URL right?")
        return found

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class ServiceSinkConfig(SinkOptions, tag_field="type", tag="service", forbid_unknown_fields=True, kw_only=True):
    """Send events to ``balog serve``; each is durable there once its batch returns."""

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
        """Make the sink.

        Raises:
            ConfigError: a URL that is none, or a token that is not there.
        """
        return ServiceSink(self.api())

    def api(self) -> ServiceApi:
        """Give what posts there; see ``build``."""
        token = None if self.token is None else self.token.reveal("token")
        return ServiceApi(self.url, token, self.timeout, self.ca_file, is_gzipped=self.gzip)


class ServiceSink:
    """See ``ServiceSinkConfig``."""

    def __init__(self, api: ServiceApi) -> None:
        self._api = api
        self._step = 1 << 30

    def open(self) -> None:
        """Nothing to do: the first request connects."""

    def probe(self) -> None:
        """See whether the service is there, see ``Sink``."""
        self._api.client.probe("/ready", "GET")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post a batch; a request that is too large for the service goes in halves, and so do later ones.

        What the service refuses is rejected, what its stream has no room for comes again.
        """
        rejected: dict[int, str] = {}
        later: dict[int, Item] = {}
        at = 0
        while at < len(batch):
            part = batch[at : at + self._step]
            try:
                answer = self._api.post([body for _, body in part], only_failed=True)
            except SinkError as error:
                status = error.answer.status if isinstance(error, HttpStatusError) else 0
                if status == 413 and len(part) > 1:
                    self._step = len(part) // 2
                    continue
                if not error.retryable and len(part) == 1:
                    rejected[at] = str(error)
                    at += 1
                    continue
                raise SinkError(
                    str(error),
                    retryable=error.retryable,
                    retry_after=error.retry_after,
                    rejected=rejected,
                    remaining=[*later, *range(at, len(batch))],
                ) from None
            for item in answer.items:
                if item.index is None or not 0 <= item.index < len(part):
                    raise SinkError(
                        f"{self._api.client.place} does not answer as an event service does",
                        rejected=rejected,
                        remaining=[*later, *range(at, len(batch))],
                    )
                if item.status == 429 or item.status >= 500:
                    later[at + item.index] = item
                elif item.status >= 300:
                    rejected[at + item.index] = item.reason
            at += len(part)
        if later or rejected:
            count, first = len(later or rejected), next(iter(later.values())).reason if later else None
            verb = "has no room for" if later else "refused"
            raise SinkError(
                f"{self._api.client.place} {verb} {count} of {len(batch)} events: "
                f"{first or next(iter(rejected.values()))}",
                retryable=bool(later),
                retry_after=max((item.retry_after or 0.0 for item in later.values()), default=None),
                rejected=rejected,
                remaining=list(later),
            )

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


def _read(body: bytes) -> Answer | None:
    try:
        return _answers.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
