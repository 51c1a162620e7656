"""The stream of a table or view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import balog
from balog.tap.bookmarks.order import order_of
from balog.tap.errors import SourceError
from balog.tap.schema.types import date_time
from balog.tap.sql.database import Database, FoundTable
from balog.tap.sql.pages import TableReader
from balog.tap.streams import DiscoveryContext, Records, Stream
from balog.tap.streams.context import Context

DELETED = "_sdc_deleted_at"


class TableStream(Stream):
    """A table or view of a ``Database``, which is the client. The catalog chooses the method.

    - FULL_TABLE reads in the order of the keys, and an interrupted run resumes after the last page. Without keys, one
      statement reads all rows, and an interrupted run starts again.
    - INCREMENTAL reads in the order of the replication key, from the bookmark on. A run without a bookmark first reads
      the rows whose replication key is null.
    - LOG_BASED reads the table once, then the rows that PostgreSQL's log names; see ``balog.tap.sql.log``.

    The catalog's metadata ``schema-name`` and ``table-name`` name the table.
    """

    @classmethod
    def find(cls, client: Database, context: DiscoveryContext | None = None) -> Iterator[TableStream]:
        """Yield a stream of this class for each table and view of a database, or for those that the context wants."""
        log = balog.get_logger("balog.tap.sql") if context is None else context.log
        for table in client.tables():
            stream = f"{table.schema}-{table.name}" if table.schema else table.name
            if context is not None and not context.wants(stream):
                continue
            try:
                if not table.name.isprintable():
                    raise SourceError("its name is not printable")
                described = _described(client, table)
            except SourceError as error:
                with client.connection():  # raises if the database does not answer
                    log.warning(f"The table {stream!r} is skipped: {error}")
            else:
                yield cls(stream, **described)

    def records(self, client: Database, context: Context) -> Records:
        """Yield pages of rows."""
        entry, names = context.entry, context.metadata
        table, schema = names.get("table-name", self.name), names.get("schema-name")
        reader = TableReader(client, schema, table, context.selected - {DELETED}, entry.key_properties)
        if reader.missing:
            context.log.warning(f"The table {table!r} lacks columns of the catalog: {', '.join(reader.missing)}")
        method = entry.replication_method or self.method
        if method == "LOG_BASED":
            yield from _logged(client, reader, context, schema, table)
        elif method == "INCREMENTAL":
            yield from _changed(reader, entry.replication_key or self.replication_key or "", context)
        else:
            with context.full_table():
                yield from _whole(reader, context)


def _described(client: Database, table: FoundTable) -> dict[str, Any]:
    """Return the settings of the stream of a table."""
    properties: dict[str, Any] = {}
    top = {"schema-name": table.schema, "table-name": table.name, "is-view": table.is_view}
    metadata: dict[tuple[str, ...], dict[str, Any]] = {(): top}
    with client.connection() as connection:
        columns = client.columns(connection, table.schema, table.name)
        keys = [] if table.is_view else client.keys(connection, table.schema, table.name)
    for name, column in columns.items():
        read = client.type_of(column.kind, null=column.null and name not in keys)
        properties[name] = read.schema
        metadata["properties", name] = {"sql-datatype": str(column.kind)}
        if read.is_naive:
            metadata["properties", name]["naive-zone"] = str(client.zone)
    has_log = bool(client.slot and keys and client.dialect == "postgresql")
    if has_log:
        properties[DELETED] = date_time()
    return {
        "schema": {"type": "object", "properties": properties},
        "key_properties": keys,
        "replication_keys": [name for name, column in columns.items() if column.read.is_ordered],
        "has_log": has_log,
        "metadata": metadata,
    }


def _whole(reader: TableReader, context: Context) -> Iterator[Any]:
    if not reader.keys:
        yield from reader.all(())
        return
    position = _position(context)
    after = position.pop("after", None)
    for page in reader.pages(
        reader.keys, after if isinstance(after, list) and len(after) == len(reader.keys) else None
    ):
        yield page
        if (after := reader.position(page[-1])) is not None:
            context.set_bookmark({**position, "after": after})
            context.checkpoint()


def _position(context: Context) -> dict[str, Any]:
    return dict(context.log_position) if isinstance(context.log_position, dict) else {}


def _logged(client: Database, reader: TableReader, context: Context, schema: str | None, table: str) -> Iterator[Any]:
    from balog.tap.sql.log import TableLog, TableTruncated, rank

    log = TableLog(client, reader, schema, table, context.log)
    positions = [kept["lsn"] for kept in context.positions.values() if isinstance(kept, dict) and "lsn" in kept]
    confirmed = log.advance(positions)
    position = _position(context)
    if position and rank(position.get("lsn", "0/0")) < rank(confirmed):
        context.log.warning("The log since the state has gone: the slot is new, or has advanced; all rows are read")
        position = {}
    while True:
        if not position or "after" in position:
            if "after" not in position:  # rows of an earlier attempt may be gone: it needs a new version
                context.set_bookmark(None)
            position.setdefault("lsn", confirmed)
            with context.full_table():
                context.set_bookmark(position)
                yield from _whole(reader, context)
            context.set_bookmark({"lsn": position["lsn"]})
            context.checkpoint()
        try:
            yield from log.changes(position["lsn"], lambda lsn: _save(context, lsn))
            return
        except TableTruncated as truncated:
            context.log.info("The table was truncated: all rows are read")
            position, confirmed = {}, truncated.position


def _save(context: Context, lsn: str) -> None:
    context.set_bookmark({"lsn": lsn})
    context.checkpoint()


def _changed(reader: TableReader, key: str, context: Context) -> Iterator[Any]:
    since = context.bookmark
    if context.is_first_run and order_of(context.entry.schema, key).kind != "time":
        since = None  # it is the start_date
    order = [key, *(name for name in reader.keys if name != key)]
    phases = (
        [reader.since(key, since)] if since is not None else [reader.table.c[key].is_(None), reader.since(key, None)]
    )
    for condition in phases:
        has_pages = reader.keys and reader.columns[key].read.order is None
        pages = reader.pages(order, None, condition) if has_pages else reader.all(order, condition)
        for page in pages:
            yield page
            if reader.keys:
                context.checkpoint()
