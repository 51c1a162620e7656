"""Reading a table in the order of a key, a page at a time, so that any page can be the first one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

import sqlalchemy
from sqlalchemy import and_, case, false, or_

from balog.tap.errors import SourceError
from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.values import anything
from balog.tap.sql.database import Database

Row = dict[str, Any]


class TableReader:
    """Reads the rows of one table.

    Names are always quoted, and values are always bound. Null comes after all other values of a key.

    Args:
        database: the database.
        schema: the table's schema; None for the default one.
        table: its name.
        wanted: the columns to select; those that the table lacks are in ``missing``.
        keys: the columns that identify a row; empty if there are none.

    Attributes:
        columns: the table's columns, by name.
        names: the selected columns.
        table: SQLAlchemy's table.

    Raises:
        SourceError: there is no such table, or it lacks a key.
    """

    def __init__(
        self, database: Database, schema: str | None, table: str, wanted: Collection[str], keys: Sequence[str]
    ) -> None:
        self._database = database
        with database.connection() as connection:
            self.columns = database.columns(connection, schema, table)
        lacking = [key for key in keys if key not in self.columns]
        if lacking:
            raise SourceError(f"the table {table!r} has no column {lacking[0]!r}, which is a key; run --discover again")
        self.keys = list(keys)
        self.names = [name for name in self.columns if name in wanted or name in keys]
        self.missing = sorted(set(wanted) - self.columns.keys())
        quoted = sqlalchemy.quoted_name
        columns = [sqlalchemy.column(quoted(name, True), column.kind) for name, column in self.columns.items()]
        self.table = sqlalchemy.table(
            quoted(table, True), *columns, schema=None if schema is None else quoted(schema, True)
        )
        self._converters = [(name, convert) for name in self.names if (convert := self.columns[name].read.convert)]

    def pages(self, order: Sequence[str], after: Sequence[Any] | None, *conditions: Any) -> Iterator[list[Row]]:
        """Yield pages of rows in the order of columns that identify a row.

        Args:
            order: the columns.
            after: their values in the last row that was read, as in a state; None for none.
            conditions: further conditions.

        Raises:
            SourceError: the database fails, or two rows have the same values of ``order``.
        """
        limit, key_of = self._database.page_rows, itemgetter(*(self.names.index(name) for name in order))
        statement = self._select(order).limit(limit + 1)  # the first row of the next page shows whether its key is new
        if after is not None:
            after = [self.columns[name].read.parse(value) for name, value in zip(order, after)]
        while True:
            where = [*conditions, *([] if after is None else [self._after(order, after)])]
            with self._database.connection() as connection:
                rows = connection.execute(statement.where(*where)).fetchall()
            if any(key == following for key, following in pairwise(map(key_of, rows))):
                raise SourceError(f"several rows have the same {', '.join(order)}, so pages would lose some of them")
            page = rows[:limit]
            if not page:
                return
            after = [page[-1][self.names.index(name)] for name in order]
            yield self.rows(page)
            if len(rows) <= limit:
                return

    def all(self, order: Sequence[str], *conditions: Any) -> Iterator[list[Row]]:
        """Yield the rows of one statement in pages, in an order that pages cannot go on from; it may be empty."""
        statement = self._select(order, is_by_value=True).where(*conditions)
        with self._database.connection(stream_results=True, max_row_buffer=self._database.page_rows) as connection:
            with connection.execute(statement) as result:
                for page in result.partitions(self._database.page_rows):
                    yield self.rows(page)

    def since(self, key: str, value: Any) -> Any:
        """Return the condition for rows from a replication value on; without one, for rows that have a value."""
        column, read = self.table.c[key], self.columns[key].read
        if value is None:
            return column.is_not(None)
        by = read.order or (lambda expression: expression)
        return by(column) >= by(read.bind(read.parse(value)))

    def position(self, row: Row) -> list[Any] | None:
        """Return the keys of a row, as JSON; None if they cannot be read from it."""
        if not all(self.columns[key].read.is_exact for key in self.keys):
            return None
        try:
            return [anything(row[key]) for key in self.keys]
        except MismatchError:
            return None

    def rows(self, value_rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Return records of selected values."""
        names = self.names
        rows = [dict(zip(names, values)) for values in value_rows]
        for name, convert in self._converters:
            for row in rows:
                if row[name] is not None:
                    row[name] = convert(row[name])
        return rows

    def selected(self) -> list[Any]:
        """Return what is selected of each column, in the order of ``names``."""
        return [self.columns[name].read.select(self.table.c[name]) for name in self.names]

    # -- statements -----------------------------------------------------------------------------------------------

    def _select(self, order: Sequence[str], *, is_by_value: bool = False) -> Any:
        columns = self.table.c
        ordered: list[Any] = []
        for name in order:
            if self.columns[name].null:
                ordered.append(case((columns[name].is_(None), 1), else_=0))
            if is_by_value and (by := self.columns[name].read.order):
                ordered.append(by(columns[name]))
            ordered.append(columns[name])
        return sqlalchemy.select(*self.selected()).select_from(self.table).order_by(*ordered)

    def _after(self, order: Sequence[str], values: Sequence[Any]) -> Any:
        """Return the condition for rows after one, in a form that indexes serve: ``a >= 1 AND (a > 1 OR …)``."""
        condition: Any = None
        for name, value in reversed(list(zip(order, values))):
            column, is_nullable = self.table.c[name], self.columns[name].null
            if value is None:
                condition = false() if condition is None else and_(column.is_(None), condition)
                continue
            bound = self.columns[name].read.bind(value)
            greater: Any = or_(column > bound, column.is_(None)) if is_nullable else column > bound
            if condition is None:
                condition = greater
            else:
                condition = or_(greater, and_(column == bound, condition))
                if not is_nullable:
                    condition = and_(column >= bound, condition)
        return condition
