"""Events into YTsaurus: a sorted dynamic table per payload type, through the cluster's HTTP proxies.

A row's key is the event's id, so an event that comes twice is one row. All tables have the same columns, because a
mounted table can't be altered: the payload is JSON text. Limits are those of the pages "Dynamic tables"
and "Data types" of YTsaurus' reference: 16 MiB a value, 100,000 rows a transaction (a batch has 10,000 at most).

The client's own retries are off, because the sink's worker retries; see ``Retrying``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.common.http import Timeout
from balog.common.secrets import Secret
from balog.event import Event
from balog.sinks import Delivery, SinkError, SinkOptions
from balog.sinks.guarantee import SinkGuarantee

UNTYPED = "untyped"
"""The table of events without a type, or with one that is not a table name."""

MAX_VALUE = 16 << 20
"""Bytes of one value at most; larger payloads are refused."""

COLUMNS: list[dict[str, str]] = [
    # Ids grow with time: without a hash before them, all new events would go to the last tablet.
    {"name": "hash", "type": "uint64", "expression": "farm_hash(id)", "sort_order": "ascending"},
    {"name": "id", "type": "string", "sort_order": "ascending"},
    {"name": "timestamp", "type": "int64"},  # microseconds since the epoch
    {"name": "channel", "type": "string"},
    {"name": "level", "type": "string"},
    {"name": "run_id", "type": "string"},
    {"name": "application", "type": "string"},
    {"name": "payload", "type": "string"},
]

_TYPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ODD = re.compile(rb'["\\\x00-\x1f\x7f]')
_MAX_MESSAGE = 300


class YTsaurusSinkConfig(SinkOptions, tag_field="type", tag="ytsaurus", forbid_unknown_fields=True, kw_only=True):
    """Put events into dynamic tables of YTsaurus, one for each payload type."""

    examples: ClassVar = (
        {"type": "ytsaurus", "proxy": "hahn.example.com", "path": "//home/shop/events", "token": {"env": "YT_TOKEN"}},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the transaction is committed",
            "a transaction per table and batch",
            repeats="is one row by `id`",
            not_retried=f"a payload over {MAX_VALUE >> 20} MiB",
        ),
    )

    proxy: Annotated[str, Meta(min_length=1, description="The cluster's proxy: HOST, HOST:PORT or a URL.")]
    path: Annotated[str, Meta(pattern=r"^//[^/\\@&*{}\[\]]+(/[^/\\@&*{}\[\]]+)*$", description="The tables' folder.")]
    token: Annotated[Secret, Meta(description="An OAuth token.")]
    timeout: Timeout = 30.0

    @property
    def name(self) -> str:
        """``ytsaurus PROXY//PATH``."""
        return f"ytsaurus {self.proxy}{self.path}"

    def build(self) -> YTsaurusSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the proxy's URL has credentials, or the token is missing.
        """
        if "@" in self.proxy:
            raise ConfigError("has credentials in it; give a token", path="proxy")
        token = self.token.reveal("token")
        import yt.wrapper as yt  # `balog check` reads a config without it

        milliseconds = round(self.timeout * 1000)
        off = {"enable": False}
        client = yt.YtClient(
            proxy=self.proxy,
            token=token,
            config={
                "proxy": {
                    "retries": off,
                    "content_encoding": "identity",
                    "connect_timeout": min(milliseconds, 5000),
                    "request_timeout": milliseconds,
                    "heavy_request_timeout": milliseconds,
                },
                "dynamic_table_retries": off,
                "apply_remote_patch_at_start": None,  # the cluster's config for clients would turn retries on
            },
        )
        return YTsaurusSink(client, self.proxy, self.path.rstrip("/"), token)


class YTsaurusSink:
    """See ``YTsaurusSinkConfig``."""

    def __init__(self, client: Any, proxy: str, path: str, token: str) -> None:
        self._client = client
        self._proxy = proxy
        self._path = path
        self._token = token
        self._ready: set[str] = set()

    def open(self) -> None:
        """Do nothing: the first request connects."""

    def probe(self) -> None:
        """Check that the proxy answers and accepts the token; see ``Sink``."""
        self._ask(self._client.exists, self._path)

    def write(self, batch: Sequence[Delivery]) -> None:
        """Insert a batch into its tables, with one transaction per table."""
        rejected: dict[int, str] = {}
        again: list[int] = []
        failure: SinkError | None = None
        for name, rows in self._by_table(batch, rejected).items():
            try:
                self._insert(name, list(rows.values()))
                for number in rows:
                    batch[number].accept()
            except SinkError as error:
                again += rows
                failure = error
        if failure is not None:
            raise SinkError(str(failure), rejected=rejected, remaining=again)
        if rejected:
            reason = f"{self._proxy}: {len(rejected)} of {len(batch)} events are too large for a row"
            raise SinkError(reason, retryable=False, rejected=rejected, remaining=())

    def close(self) -> None:
        """Close the connections."""
        session = getattr(self._client, "_requests_session", None)
        if session is not None:
            session.close()

    def _by_table(self, batch: Sequence[Delivery], rejected: dict[int, str]) -> dict[str, dict[int, bytes]]:
        rows_by_table: dict[str, dict[int, bytes]] = {}
        for number, (event, _) in enumerate(batch):
            if len(event.raw_payload) > MAX_VALUE:
                rejected[number] = f"$.payload: {len(event.raw_payload)} bytes; a value has {MAX_VALUE} at most"
                continue
            name = event.cls_type
            if name is None or not _TYPE.fullmatch(name):
                name = UNTYPED
            rows_by_table.setdefault(name, {})[number] = yson_row(event)
        return rows_by_table

    def _insert(self, name: str, rows: Sequence[bytes]) -> None:
        import yt.wrapper as yt

        path = f"{self._path}/{name}"
        if name not in self._ready:
            attributes = {"dynamic": True, "schema": COLUMNS}
            self._ask(self._client.create, "table", path, recursive=True, ignore_existing=True, attributes=attributes)
            self._ask(self._client.mount_table, path)  # no effect on a mounted table
        try:
            self._ask(self._client.insert_rows, path, b"".join(rows), format=yt.YsonFormat(format="text"), raw=True)
        except SinkError:
            self._ready.discard(name)  # it may have been removed or unmounted
            raise
        self._ready.add(name)

    def _ask(self, command: Any, *arguments: Any, **options: Any) -> None:
        """Run a command of the client.

        Raises:
            SinkError: any failure, in one line without the token. All failures are retryable: the cluster is not
                reachable, the table is not mounted yet, the account's quota is used up, a permission is missing.
        """
        import yt.wrapper as yt

        try:
            command(*arguments, **options)
        except (yt.YtError, OSError) as error:
            message = " ".join(_message(error).split()).replace(self._token, "…")
            raise SinkError(f"{self._proxy}: {message[:_MAX_MESSAGE]}") from None


def yson_row(event: Event) -> bytes:
    """Return an event as a row of YSON in text form, terminated by ``;``."""
    header = event.header
    context = header.context
    row: dict[str, str | int | bytes | None] = {
        "id": header.id,
        "timestamp": (header.timestamp - _EPOCH) // timedelta(microseconds=1),
        "channel": header.channel,
        "level": event.level,
        "run_id": _text(context.get("run_id")),
        "application": _text(context.get("application")),
        "payload": bytes(event.raw_payload),
    }
    return b"{%b};\n" % b";".join(b"%b=%b" % (key.encode(), _yson(value)) for key, value in row.items())


def _yson(value: str | int | bytes | None) -> bytes:
    if value is None:
        return b"#"
    if isinstance(value, int):
        return b"%d" % value
    data = value.encode() if isinstance(value, str) else value
    return b'"%b"' % _ODD.sub(lambda match: b"\\%03o" % match[0][0], data)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _message(error: BaseException) -> str:
    """Return the message of a cluster, including the innermost one."""
    message = str(getattr(error, "message", "")) or str(error)
    inner = getattr(error, "inner_errors", None) or []
    while inner and isinstance(inner[0], dict):
        message = f"{message}: {inner[0].get('message', '')}"
        inner = inner[0].get("inner_errors") or []
    return message
