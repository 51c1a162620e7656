"""Events into ClickHouse over its HTTP interface: a table per payload type, created and extended as events arrive.

Servers from 18.16 (2018) on are supported, and newer ones get better types; see ``balog_clickhouse.table``. Errors are
distinguished by their codes (``src/Common/ErrorCodes.cpp`` of ClickHouse): statuses differ from version to version.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Meta

from balog.common.errors import ConfigError, EventError
from balog.common.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.common.secrets import Secret
from balog.common.storage import Options
from balog.sinks.base import Delivery, RequestErrors, SinkError, SinkGuarantee, SinkOptions
from balog.sinks.http_sink import HttpSink
from balog_clickhouse.schema_types import SchemaTypes
from balog_clickhouse.table import Dialect, Mismatch, Table, column_of_value, quoted

UNTYPED = "untyped"
"""The table of events without a type, or with one that is not a table name. Their payloads are stored as text."""

MOST_TABLES = 300
"""Tables per sink at most; events of further types go to ``untyped``."""

_TYPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MOST_MONTHS = 90
"""Partitions of one INSERT; newer servers refuse more than 100."""

_CODE = re.compile(rb"Code: (\d+)")
_INVALID_ROW = frozenset({6, 26, 27, 32, 33, 38, 41, 53, 69, 70, 72, 117, 130, 131, 349, 376, 441, 469, 675, 676, 691})
"""Codes for an invalid row: it can't be parsed, or a column can't hold its value."""

_VALUE = re.compile(rb"while read(?:ing)? the value of key ")
"""The message about an invalid value. Its code does not tell: an unknown element of an Enum has 49, a logical error."""

_LAYOUT_CHANGED = frozenset({8, 10, 16, 47, 60})
"""Codes for a table or column that was dropped since its columns were read."""


class ClickHouseSinkConfig(SinkOptions, tag_field="type", tag="clickhouse", forbid_unknown_fields=True, kw_only=True):
    """Put events into tables of ClickHouse, one for each payload type."""

    examples: ClassVar = (
        {
            "type": "clickhouse",
            "url": "http://localhost:8123",
            "database": "shop",
            "user": "balog",
            "password": {"env": "CLICKHOUSE_PASSWORD"},
        },
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the INSERT has succeeded",
            "an INSERT per table and batch",
            repeats="is one row by `id`, with `FINAL`",
            not_retried="a row that its table cannot hold",
        ),
    )

    url: Url = "http://localhost:8123"
    database: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", description="The tables' database, which exists.")
    ] = "default"
    user: Annotated[str, Meta(min_length=1, pattern="^[^:]*$", description="Who may create and alter tables.")] = (
        "default"
    )
    password: Annotated[Secret, Meta(description="The user's password.")] | None = None
    registry: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="Folder or URL of the schemas; balog's own types if none.",
                examples=["s3://schemas/events"],
            ),
        ]
        | None
    ) = None
    registry_options: Options = msgspec.field(default_factory=dict)
    timeout: Timeout = 30.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``clickhouse URL/DATABASE``."""
        return f"clickhouse {self.url.rstrip('/')}/{self.database}"

    def build(self, pool: Any = None) -> ClickHouseSink:
        """Return the sink, unopened.

        Args:
            pool: used instead of a pool of its own; see ``HttpClient``.

        Raises:
            ConfigError: the URL is invalid, the password is missing, or the registry can't be opened.
            MissingExtraError: the packages for the registry are not installed.
        """
        if "?" in self.url:
            raise ConfigError("has a ?; expected where the server's paths begin", path="url")
        password = self.password.reveal("password") if self.password is not None else ""
        basic = base64.b64encode(f"{self.user}:{password}".encode()).decode()
        client = HttpClient(
            self.url,
            headers={"Authorization": f"Basic {basic}"},
            timeout=self.timeout,
            ca_file=self.ca_file,
            is_gzipped=True,
            secrets=[password] if password else [],
            pool=pool,
        )
        return ClickHouseSink(client, self.database, SchemaTypes(self.registry, self.registry_options))


class ClickHouseSink(HttpSink):
    """See ``ClickHouseSinkConfig``.

    Args:
        client: sends requests to the server.
        database: the database of the tables.
        types_of: returns the column types of a payload type's fields by its schema; empty without a schema.
    """

    def __init__(self, client: HttpClient, database: str, types_of: SchemaTypes) -> None:
        super().__init__(client)
        self._database = database
        self._types_of = types_of
        self._dialect: Dialect | None = None
        self._tables: dict[str, Table] = {}

    def probe(self) -> None:
        """Check that the server is reachable and accepts the user and the database; see ``Sink``."""
        known = f"SELECT count() FROM system.databases WHERE name = {_text(self._database)}"  # noqa: S608
        mode = "SELECT value FROM system.settings WHERE name = 'readonly'"
        ((databases, readonly),) = self._select(f"toUInt32(({known})), ({mode})")
        if not databases:
            raise SinkError(f"{self._client.place}: this user sees no database {self._database!r}; create it first")
        if readonly != "0":
            raise SinkError(f"{self._client.place}: this user may only read (readonly = {readonly})")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Insert a batch into its tables, with one INSERT per table.

        An INSERT of one month's events is atomic. Events that come again replace the first ones; see
        ``Dialect.create``. A value that does not fit its column's type is rejected with its path.
        """
        rejected: dict[int, str] = {}
        errors = RequestErrors()
        for name, numbers in self._by_table(batch).items():
            left = list(numbers)
            try:
                self._write_table(name, batch, left, rejected)
            except SinkError as error:
                again = [number for number in left if number not in rejected]
                errors.keep(again, SinkError(str(error), retryable=bool(again), retry_after=error.retry_after))
        errors.reject(rejected)
        errors.finish()

    def _by_table(self, batch: Sequence[Delivery]) -> dict[str, list[int]]:
        numbers_by_table: dict[str, list[int]] = {}
        for number, (event, _) in enumerate(batch):
            name = event.cls_type or ""
            if not _TYPE.fullmatch(name) or (name not in self._tables and len(self._tables) > MOST_TABLES):
                name = UNTYPED
            numbers_by_table.setdefault(name, []).append(number)
        return numbers_by_table

    def _write_table(self, name: str, batch: Sequence[Delivery], left: list[int], rejected: dict[int, str]) -> None:
        """Write the events of a table.

        Args:
            left: their indexes in the batch; those that are written or rejected are removed.
            rejected: receives those that don't fit.
        """
        table = self._fit(name, batch, left)
        while left:
            months, rows, taken, later = set[str](), list[bytes](), list[int](), list[int]()
            for number in left:
                event = batch[number].event
                month = f"{event.header.timestamp:%Y%m}"
                if len(months) == _MOST_MONTHS and month not in months:
                    later.append(number)
                    continue
                months.add(month)
                try:
                    rows.append(table.row(event))
                except (Mismatch, EventError) as error:
                    rejected[number] = str(error)
                else:
                    taken.append(number)
            if rows:
                self._insert(name, rows, taken, rejected)
                for number in taken:
                    batch[number].refuse(rejected[number]) if number in rejected else batch[number].accept()
            left[:] = later

    def _insert(self, name: str, rows: Sequence[bytes], numbers: Sequence[int], rejected: dict[int, str]) -> None:
        """Insert rows, and reject those that the server refuses. They are halved until the invalid ones are found."""
        target = f"{quoted(self._database)}.{quoted(name)}"
        columns = ", ".join(map(quoted, self._tables[name].columns))
        query = f"INSERT INTO {target} ({columns}) FORMAT JSONEachRow"
        try:
            self._send(query, b"\n".join([*rows, b""]), self._server.settings)
        except _Refusal as refusal:
            if refusal.code in _LAYOUT_CHANGED:
                del self._tables[name]
                raise SinkError(f"{refusal}; the table changed, it is looked at again") from None
            if refusal.code not in _INVALID_ROW and not refusal.is_value:
                raise
            if len(rows) == 1:
                rejected[numbers[0]] = str(refusal)
                return
            middle = len(rows) // 2
            for half in (slice(middle), slice(middle, None)):
                self._insert(name, rows[half], numbers[half], rejected)

    def _fit(self, name: str, batch: Sequence[Delivery], numbers: Sequence[int]) -> Table:
        """Return the table, with a column for each field of these events."""
        table = self._tables.get(name) or self._read_table(name)
        if table is None:
            self._change(name, self._server.create(self._database, name), "create")
            table = self._tables[name]
        wanted: dict[str, Any] = {}
        for number in numbers:
            try:
                payload = batch[number].event.payload
            except EventError:
                continue  # reported when its row is made
            for field in table.missing(payload):
                wanted.setdefault(field, payload[field])
        if wanted:
            kinds = self._types_of(name)
            new = {field: kinds.get(field) or column_of_value(value) for field, value in wanted.items()}
            parts = [f"ADD COLUMN {quoted(field)} {kind}" for field, kind in list(new.items())[: table.room]]
            target = f"{quoted(self._database)}.{quoted(name)}"
            self._change(name, f"ALTER TABLE {target} {', '.join(parts)}", "add a column to")
        return self._tables[name]

    def _change(self, name: str, statement: str, what: str) -> None:
        """Create or alter a table, unless another process did so in the meantime."""
        before = len(self._tables[name].columns) if name in self._tables else 0
        failure: SinkError | None = None
        try:
            self._ask(statement)
        except SinkError as error:
            failure = error
        table = self._read_table(name)
        if failure is not None and (table is None or len(table.columns) <= before):
            raise SinkError(f"can't {what} table {name}: {failure}") from None
        if table is None:
            raise SinkError(f"{self._client.place}: table {name} is not there after it was made")

    def _read_table(self, name: str) -> Table | None:
        """Read the columns of a table; None if it does not exist."""
        where = f"database = {_text(self._database)} AND table = {_text(name)}"
        rows = self._select(f"name, type FROM system.columns WHERE {where}")
        columns = {str(column): str(kind) for column, kind in rows}
        if not columns:
            return None
        self._tables[name] = table = Table(columns, self._server, keeps_whole=name == UNTYPED)
        return table

    @property
    def _server(self) -> Dialect:
        if self._dialect is None:
            ((version,),) = self._select("version()")
            numbers = [int(part) for part in re.findall(r"\d+", str(version))[:2]]
            self._dialect = Dialect((numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0))
        return self._dialect

    def _select(self, query: str) -> list[list[Any]]:
        """Return the rows of a query, which stands behind its SELECT."""
        answer = self._ask(f"SELECT {query} FORMAT JSONCompact")
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])["data"]  # type: ignore[no-any-return]
        except (msgspec.DecodeError, KeyError):
            reason = "does not answer as ClickHouse does; is it its HTTP interface?"
            raise SinkError(f"{self._client.place} {reason}") from None

    def _ask(self, query: str) -> bytes:
        return self._send("", query.encode(), {})

    def _send(self, query: str, body: bytes, settings: Mapping[str, str]) -> bytes:
        """Send a query and return the answer. A query without other data is sent as the body.

        Raises:
            _Refusal: the server answered with an exception.
            SinkError: the server did not answer.
        """
        given = {**({"query": query} if query else {}), **settings}
        path = f"/?{urlencode(given, quote_via=quote)}" if given else "/"
        try:
            answer = self._client.post(path, body, "text/plain; charset=utf-8")
        except HttpStatusError as error:
            code = _code(error.answer.body)
            if code is None:
                raise SinkError(str(error), retry_after=error.retry_after) from None
            is_value = _VALUE.search(error.answer.body) is not None
            raise _Refusal(str(error), code, error.retry_after, is_value) from None
        if answer.body.startswith(b"Code: "):  # an exception after the status was sent
            raise _Refusal(f"{self._client.place} answered {answer.body[:200]!r}", _code(answer.body) or 0, None)
        return answer.body

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._types_of.close()


class _Refusal(SinkError):
    """An exception of the server.

    Attributes:
        code: its error code.
        is_value: whether it is about a value in one of the rows.
    """

    def __init__(self, reason: str, code: int, retry_after: float | None, is_value: bool = False) -> None:
        super().__init__(reason, retry_after=retry_after)
        self.code = code
        self.is_value = is_value


def _code(body: bytes) -> int | None:
    match = _CODE.search(body[:4096])
    return int(match[1]) if match else None


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
