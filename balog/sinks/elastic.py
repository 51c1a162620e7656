"""Events into a data stream or an index of Elasticsearch or OpenSearch, through the bulk API.

A document's ``_id`` is the event's id, so an event that comes twice is stored once. The API is described on the page
"Bulk index or delete documents": a line with the action, a line with the document, and an answer of 200 with the status
of each document in the same order.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from balog.common.errors import ConfigError
from balog.common.http import CaFile, HttpClient, Timeout, Url
from balog.common.secrets import Secret
from balog.common.text import one_line
from balog.sinks.base import Delivery, RequestErrors, SinkError, SinkGuarantee, SinkOptions
from balog.sinks.http_sink import HttpSink

DEFAULT_STREAM = "logs-balog-default"

# The three parts that Elastic's data stream naming scheme has; "-" only between them.
_STREAM = re.compile(r"[a-z][a-z0-9_]{0,99}-[a-z0-9][a-z0-9_.]{0,99}-[a-z0-9][a-z0-9_.]{0,99}")
_INDEX = re.compile(r"[a-z0-9.][a-z0-9._+@-]{0,254}")
_MAX_ID = 512  # bytes, Elasticsearch's limit
_MAX_REASON = 300
_PATH = (
    "/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"
)


class ElasticSinkConfig(SinkOptions, tag_field="type", tag="elastic", forbid_unknown_fields=True, kw_only=True):
    """Put events into a data stream, ``logs-balog-default`` if none is named, or into an index; each is there once."""

    examples: ClassVar = (
        {
            "type": "elastic",
            "url": "https://es.example.com:9200",
            "data_stream": "logs-shop-prod",
            "api_key": {"env": "ES_API_KEY"},
        },
        {"type": "elastic", "index": "events", "user": "balog", "password": {"env": "ES_PASSWORD"}},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the bulk API has stored it",
            "a batch",
            repeats="is one document by `_id`, in a data stream until its next rollover",
        ),
    )

    url: Url = "http://localhost:9200"
    data_stream: (
        Annotated[str, Meta(min_length=1, description="TYPE-DATASET-NAMESPACE, logs-balog-default.")] | None
    ) = None
    index: Annotated[str, Meta(min_length=1, description="An index or alias, in place of a data stream.")] | None = None
    api_key: Annotated[Secret, Meta(description="An API key, as ID:KEY or in its encoded form.")] | None = None
    user: Annotated[str, Meta(min_length=1, description="A user, for basic authentication.")] | None = None
    password: Annotated[Secret, Meta(description="The user's password.")] | None = None
    compress: Annotated[bool, Meta(description="Send bodies gzipped.")] = True
    timeout: Timeout = 30.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``elastic URL/TARGET``, with the data stream or index."""
        return f"elastic {self.url.rstrip('/')}/{self.index or self.data_stream or DEFAULT_STREAM}"

    def build(self) -> ElasticSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the name of the data stream or index, the URL or the credentials are invalid.
        """
        if self.index is not None and self.data_stream is not None:
            raise ConfigError("give a data_stream or an index, not both", path="index")
        if self.index is not None and (not _INDEX.fullmatch(self.index) or self.index in (".", "..")):
            raise ConfigError(f"{self.index!r} is not an index's name: small letters, digits and . _ - +", path="index")
        if self.data_stream is not None and not _STREAM.fullmatch(self.data_stream):
            raise ConfigError(
                f"{self.data_stream!r} is not TYPE-DATASET-NAMESPACE in small letters, digits, _ and ., such as "
                f"{DEFAULT_STREAM}; for any other name take index",
                path="data_stream",
            )
        client = HttpClient(
            self.url,
            headers=self._credentials(),
            timeout=self.timeout,
            ca_file=self.ca_file,
            is_gzipped=self.compress,
        )
        target = self.index or self.data_stream or DEFAULT_STREAM
        return ElasticSink(client, target, is_stream=self.index is None)

    def _credentials(self) -> dict[str, str]:
        if self.api_key is not None:
            if self.user is not None or self.password is not None:
                raise ConfigError("give an api_key, or a user and a password, not both", path="api_key")
            key = self.api_key.reveal("api_key")
            return {"Authorization": f"ApiKey {_base64(key) if ':' in key else key}"}
        if (self.user is None) != (self.password is None):
            raise ConfigError("a user has a password, and a password a user", path="user" if self.user else "password")
        if self.user is None or self.password is None:
            return {}
        return {"Authorization": "Basic " + _base64(f"{self.user}:{self.password.reveal('password')}")}


class _ItemError(Struct):
    type: str | None = None
    reason: str | None = None
    caused_by: _ItemError | None = None


class _Item(Struct):
    status: int
    error: _ItemError | None = None


class _Answer(Struct):
    errors: bool
    items: list[dict[str, _Item]]


_answers = msgspec.json.Decoder(_Answer)
_encoder = msgspec.json.Encoder()


class ElasticSink(HttpSink):
    """See ``ElasticSinkConfig``. A data stream stores an event once as long as its backing index does not change."""

    def __init__(self, client: HttpClient, target: str, *, is_stream: bool) -> None:
        super().__init__(client)
        self._path = f"/{target}{_PATH}"
        self._verb = "create" if is_stream else "index"

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send a batch in one request. The server rejects a document or takes it; each other error is temporary.

        Temporary errors of a document: the server is busy, or the index is blocked or missing.
        """
        errors = RequestErrors()
        for number, item in enumerate(self._send([self._document(delivery) for delivery in batch])):
            if item.status == 400:
                errors.reject({number: _reason(item)})
            elif not 200 <= item.status < 300 and not (item.status == 409 and self._verb == "create"):
                errors.keep([number], SinkError(f"{self._client.place} did not take an event: {_reason(item)}"))
        errors.finish()

    def _document(self, delivery: Delivery) -> bytes:
        event, body = delivery
        name = event.header.id
        if len(name) > _MAX_ID:
            name = "LG" + hashlib.sha256(name.encode()).hexdigest()
        timestamp = event.header.timestamp.isoformat(timespec="microseconds").replace("+00:00", "Z")
        document = b'{"@timestamp":"%b",%b' % (timestamp.encode(), body[1:])
        return b'{"%b":{"_id":%b}}\n%b\n' % (self._verb.encode(), _encoder.encode(name), document)

    def _send(self, documents: Sequence[bytes]) -> list[_Item]:
        body = self._client.post(self._path, b"".join(documents), "application/x-ndjson").body
        try:
            answer = _answers.decode(body)
            items = [item for entry in answer.items for item in entry.values()]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            items = []
        if len(items) != len(documents):
            raise SinkError(f"{self._client.place} does not answer as a bulk API does; is it an Elasticsearch?")
        return items


def _reason(item: _Item) -> str:
    error = item.error or _ItemError()
    cause = error.caused_by.reason if error.caused_by else None
    text = ": ".join(part for part in (error.type, error.reason, cause) if part)
    return f"{item.status} {one_line(text)[:_MAX_REASON]}".rstrip()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
