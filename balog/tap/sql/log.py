"""Changes of a table from PostgreSQL's log, by a logical replication slot.

The log names the rows that changed, and the rows are read from the table: so their values are those of a full table,
whatever their type is. The plugin is ``test_decoding``, which is in every PostgreSQL and needs no publication.

The slot is only peeked at. It advances at the start of a run, to the earliest position in the state that the run was
given, because that state says that a target wrote what came before. So each change comes at least once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import ARRAY, Text, and_, cast, func, literal, select, text

from balog.tap.errors import SourceError
from balog.tap.sql.database import Database
from balog.tap.sql.pages import Row, TableReader

_PLUGIN = "test_decoding"
_KEYS = 500  # of one statement
_MAX_KEYS = 20_000  # of one transaction, before its rows are read
_POLL_SECONDS = 0.05

_SLOT = text(
    "SELECT plugin, confirmed_flush_lsn::text FROM pg_catalog.pg_replication_slots "
    "WHERE slot_name = :slot AND database = current_database()"
)
_CREATE = text("SELECT pg_catalog.pg_create_logical_replication_slot(:slot, :plugin)")
_ADVANCE = text("SELECT pg_catalog.pg_replication_slot_advance(:slot, CAST(:lsn AS pg_lsn))")
_END = text("SELECT pg_catalog.pg_current_wal_flush_lsn()::text")
_PREFIX = text("SELECT format('table %I.%I: ', coalesce(CAST(:schema AS text), current_schema()), CAST(:name AS text))")
_SNAPSHOT = text("SELECT pg_catalog.txid_current_snapshot()::text")
_CHANGES = text(
    "SELECT lsn::text, xid::text, data FROM pg_catalog.pg_logical_slot_peek_changes("
    ":slot, CAST(:end AS pg_lsn), NULL, 'include-xids', '0', 'skip-empty-xacts', '1') "
    "WHERE starts_with(data, :prefix) OR starts_with(data, 'COMMIT') "
    "OR (starts_with(data, 'table ') AND data LIKE '%: TRUNCATE:%')"
)

_COLUMN = re.compile(
    r"""(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<name>[^"\[\s]+))"""
    r"""\[(?:[^\[\]"]|\[\]|"(?:[^"]|"")*")*\]:"""
    r"""(?:B?'(?P<text>(?:[^']|'')*)'|(?P<bare>[^\s']+))(?:\s|$)""",
    re.DOTALL,
)
_TRUNCATED = re.compile(r'((?:"(?:[^"]|"")*"|[^"\s:,]+|, )+): TRUNCATE:')

Key = tuple[str, ...]


class TableLog:
    """The changes of one table.

    Args:
        database: the database, with a ``slot``.
        reader: reads the table.
        schema: the table's schema; None for the default one.
        table: its name.
        log: the stream's logger.

    Raises:
        SourceError: the table has no key, or the slot cannot be used.
    """

    def __init__(self, database: Database, reader: TableReader, schema: str | None, table: str, log: Any) -> None:
        if not database.slot or not reader.keys:
            raise SourceError("LOG_BASED needs a primary key, and the name of a slot: Database(…, slot=…)")
        self._database, self._reader, self._log = database, reader, log
        with database.connection() as connection:
            self._prefix: str = connection.execute(_PREFIX, {"schema": schema, "name": table}).scalar_one()

    def advance(self, positions: Sequence[str]) -> str:
        """Make the slot if there is none, and advance it to the earliest of the positions, once in a run.

        Returns:
            The slot's position: changes before it have gone.
        """
        database, slot = self._database, {"slot": self._database.slot}
        with database.connection(isolation_level="AUTOCOMMIT") as connection:
            row = connection.execute(_SLOT, slot).one_or_none()
            if row is None:
                connection.execute(_CREATE, {**slot, "plugin": _PLUGIN})
                row = connection.execute(_SLOT, slot).one()
            if row.plugin != _PLUGIN:
                raise SourceError(f"the slot {database.slot!r} has the plugin {row.plugin!r}; expected {_PLUGIN}")
            confirmed: str = row.confirmed_flush_lsn
            earliest = min(positions, key=rank, default=confirmed)
            if not database.has_advanced and rank(earliest) > rank(confirmed):
                connection.execute(_ADVANCE, {**slot, "lsn": earliest})
                confirmed = connection.execute(_SLOT, slot).one().confirmed_flush_lsn
        database.has_advanced = True
        return confirmed

    def changes(self, since: str, set_position: Callable[[str], None]) -> Iterator[list[Row]]:
        """Yield the rows that changed, as they are now, and deleted ones with ``_sdc_deleted_at``.

        Args:
            since: the position up to which all changes were read.
            set_position: called with the position up to which all rows were yielded.

        Raises:
            TableTruncated: the table was truncated: it has to be read as a whole.
            SourceError: the database fails, or a change does not name its row.
        """
        keys: dict[Key, None] = {}
        writers: set[int] = set()
        is_truncated = False
        with self._database.connection() as connection:
            end: str = connection.execute(_END).scalar_one()
        arguments = {"slot": self._database.slot, "end": end, "prefix": self._prefix}
        with self._database.connection(stream_results=True) as connection:
            for lsn, xid, data in connection.execute(_CHANGES, arguments):
                if data.startswith("COMMIT"):
                    if rank(lsn) <= rank(since):  # another stream still needs it
                        keys.clear()
                        is_truncated = False
                    elif is_truncated:
                        self._wait(writers)
                        raise TableTruncated(lsn)
                    elif len(keys) >= _KEYS:
                        yield from self._flush(keys, writers)
                        set_position(lsn)
                elif data.startswith(self._prefix):
                    writers.add(int(xid))
                    named_keys = changed_keys(data[len(self._prefix) :], self._reader.keys)
                    is_truncated = is_truncated or named_keys is None
                    keys.update(dict.fromkeys(named_keys or ()))
                    if len(keys) >= _MAX_KEYS:
                        yield from self._flush(keys, writers)
                elif self._names_table(data):
                    writers.add(int(xid))
                    is_truncated = True
        yield from self._flush(keys, writers)
        set_position(end)

    def _names_table(self, data: str) -> bool:
        """Return whether a TRUNCATE of several tables is also one of this table."""
        match = _TRUNCATED.match(data, len("table "))
        name = self._prefix[len("table ") : -2]
        return match is not None and name in re.findall(r'(?:"(?:[^"]|"")*"|[^"\s:,])+', match[1])

    def _flush(self, keys: dict[Key, None], writers: set[int]) -> Iterator[list[Row]]:
        self._wait(writers)
        every = list(keys)
        for start in range(0, len(every), _KEYS):
            yield self._rows(every[start : start + _KEYS])
        keys.clear()
        writers.clear()

    def _wait(self, writers: set[int]) -> None:
        """Wait until transactions are visible, which the log has a moment before (or until a standby has them)."""
        is_reported = False
        while writers:
            with self._database.connection() as connection:
                if not any(is_running(xid, connection.execute(_SNAPSHOT).scalar_one()) for xid in writers):
                    return
            if not is_reported:
                self._log.info("Transactions of the log are not visible yet; waiting for them")
                is_reported = True
            time.sleep(_POLL_SECONDS)

    def _rows(self, keys: list[Key]) -> list[Row]:
        """Return the rows with these keys; a row that is not there has its key and ``_sdc_deleted_at``."""
        from datetime import datetime, timezone

        reader, names = self._reader, self._reader.keys
        columns = {name: reader.columns[name] for name in names}
        texts = [cast(literal(list(part), ARRAY(Text())), ARRAY(Text())) for part in zip(*keys)]
        titles = [f"k{index}" for index in range(len(names))]
        wanted = func.unnest(*texts).table_valued(*titles, name="wanted").render_derived()
        ours = [cast(wanted.c[f"k{index}"], columns[name].kind) for index, name in enumerate(names)]
        matches = and_(*(reader.table.c[name] == column for name, column in zip(names, ours)))
        shown = [columns[name].read.select(column) for name, column in zip(names, ours)]
        there = reader.table.c[names[0]].is_not(None)
        statement = select(there, *shown, *reader.selected()).select_from(wanted.outerjoin(reader.table, matches))
        with self._database.connection() as connection:
            joined_rows = connection.execute(statement).fetchall()
        deleted_at = datetime.now(timezone.utc)
        width = 1 + len(names)
        rows = reader.rows(row[width:] for row in joined_rows if row[0])
        for row in rows:
            row["_sdc_deleted_at"] = None
        gone = [dict(zip(names, row[1:width])) for row in joined_rows if not row[0]]
        return rows + [{**row, "_sdc_deleted_at": deleted_at} for row in gone]


class TableTruncated(Exception):
    """The table was truncated.

    Args:
        position: the position of the log after that.
    """

    def __init__(self, position: str) -> None:
        super().__init__(position)
        self.position = position


def rank(lsn: str) -> int:
    """Return a position of the log, ``16/B374D848``, as a number."""
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def is_running(xid: int, snapshot: str) -> bool:
    """Return whether a snapshot, ``xmin:xmax:xip,…``, does not see a transaction of 32 bits yet."""
    _, most, running = snapshot.split(":")
    limit = int(most)
    full = (limit >> 32 << 32) + xid
    if full > limit + (1 << 31):  # of the epoch before
        full -= 1 << 32
    elif full < limit - (1 << 31):
        full += 1 << 32
    return full >= limit or str(full) in running.split(",")


def changed_keys(data: str, keys: Sequence[str]) -> list[Key] | None:
    """Return the keys that a change names, as text: the old one of a moved row, too; None for TRUNCATE.

    Raises:
        SourceError: the change does not have the key.
    """
    if data.startswith("TRUNCATE:"):
        return None
    _, _, columns = data.partition(": ")
    named_keys: list[Key] = []
    for marker in ("old-key: ", "new-tuple: "):
        if not columns.startswith(marker):
            continue
        values, end = _values(columns, len(marker))
        columns = columns[end:]
        named_keys.append(_key(values, keys))
    if not named_keys:
        named_keys.append(_key(_values(columns, 0)[0], keys))
    return named_keys


def _values(columns: str, start: int) -> tuple[dict[str, str], int]:
    values: dict[str, str] = {}
    while not columns.startswith("new-tuple: ", start):
        match = _COLUMN.match(columns, start)
        if match is None:
            break
        name = match["name"] if match["quoted"] is None else match["quoted"].replace('""', '"')
        values[name] = match["bare"] if match["text"] is None else match["text"].replace("''", "'")
        start = match.end()
    return values, start


def _key(values: dict[str, str], keys: Sequence[str]) -> Key:
    lacking = [key for key in keys if key not in values]
    if lacking:
        raise SourceError(
            f"a change in the log lacks {lacking[0]!r}: the table's REPLICA IDENTITY must have its primary key"
        )
    return tuple(values[key] for key in keys)
