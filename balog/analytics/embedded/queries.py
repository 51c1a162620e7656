"""Translates queries of Spark's dialect to DuckDB's, clause by clause. Other clauses raise ``SparkNeeded``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from balog.analytics.closed_duckdb import quoted
from balog.analytics.embedded.columns import UnknownColumn
from balog.analytics.embedded.expressions import Expressions
from balog.analytics.embedded.names import name_of
from balog.analytics.embedded.scopes import NamedRows, Scope
from balog.analytics.embedded.values import Kind, SparkNeeded, Value, common, duckdb_type
from balog.errors import ConfigError
from balog.suggestions import suggest

_CLAUSES = {"kind", "expressions", "distinct", "from", "from_", "joins", "laterals", "where", "group", "having",
            "order", "limit", "offset", "with", "with_"}  # fmt: skip
_JOINS = {"": "JOIN", "INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}


_SparkParser: Any = Spark.parser_class


class _Functions(Spark):
    """Spark's dialect, with functions by their own names and casts as written."""

    class Parser(_SparkParser):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse
            for name, parse in _SparkParser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "CEIL", "FLOOR")
        }
        STRICT_CAST = True


class Translated(NamedTuple):
    """A query in DuckDB's dialect: its columns in order, with Spark's names and types."""

    sql: str
    names: list[str]
    kinds: list[Kind]


def translate(sql: str, tables: Mapping[str, Mapping[str, Kind]]) -> Translated:
    """Translate one checked SELECT.

    Args:
        sql: the statement, in Spark's dialect.
        tables: the types of the columns of each table.

    Raises:
        SparkNeeded: DuckDB may answer differently.
        ConfigError: a name is unknown.
    """
    if "|>" in sql:
        raise SparkNeeded("a query with |>")
    try:
        tree = sqlglot.parse_one(sql, read=_Functions)
    except SqlglotError:
        raise SparkNeeded("the statement is read by Spark only") from None
    try:
        return _Queries(tables).query(tree, Scope(), {})
    except UnknownColumn as unknown:
        raise UnknownColumn(unknown.name, unknown.where, [*unknown.tables, *tables.values()]) from None
    except RecursionError:
        raise SparkNeeded("the statement is nested too deep") from None


_Ctes = Mapping[str, NamedRows]


class _Queries:
    """Translates queries; the tables of WITH are visible below it."""

    def __init__(self, tables: Mapping[str, Mapping[str, Kind]]) -> None:
        self._tables = {name.lower(): NamedRows(name, dict(columns)) for name, columns in tables.items()}
        self._expressions = Expressions(self._inner)
        self._ctes: dict[str, NamedRows] = {}

    def _inner(self, node: Any, scope: Scope) -> tuple[str, list[Any]]:
        made = self.query(node, scope, self._ctes)
        return made.sql, made.kinds

    def query(self, node: Any, parent: Scope, ctes: _Ctes) -> Translated:
        """Translate a SELECT, a set operation or a query in parentheses."""
        before = self._ctes
        self._ctes = dict(ctes)
        try:
            head = self._with(node, parent)
            if isinstance(node, exp.Select):
                made = self._select(node, parent)
            elif isinstance(node, exp.SetOperation):
                made = self._set_operation(node, parent)
            elif isinstance(node, exp.Subquery) and not node.alias:
                made = self._parenthesized(node, parent)
            else:
                raise SparkNeeded(f"{node.key.upper()} is answered by Spark only")
            return made._replace(sql=head + made.sql)
        finally:
            self._ctes = before

    def _with(self, node: Any, parent: Scope) -> str:
        found = node.args.get("with_") or node.args.get("with")
        if found is None:
            return ""
        if found.recursive:
            raise SparkNeeded("WITH RECURSIVE")
        parts = []
        for cte in found.expressions:
            made = self.query(cte.this, parent, self._ctes)
            names = [column.name for column in cte.args["alias"].columns] or made.names
            source = self._columns(cte.alias, names, made)
            self._ctes[cte.alias.lower()] = source
            parts.append(f"{quoted(cte.alias)}({', '.join(map(quoted, names))}) AS ({made.sql})")
        return f"WITH {', '.join(parts)} "

    @staticmethod
    def _columns(alias: str, names: list[str], made: Translated) -> NamedRows:
        if len({name.lower() for name in names}) < len(names) or len(names) != len(made.kinds):
            raise SparkNeeded(f"two columns of {alias or 'a subquery'} have one name")
        return NamedRows(alias, dict(zip(names, made.kinds)))

    # -- SELECT ---------------------------------------------------------------------------------------------------

    def _select(self, node: Any, parent: Scope) -> Translated:
        for name, value in node.args.items():
            if value and name not in _CLAUSES:
                raise SparkNeeded(f"the clause {name.upper().strip('_')}")
        scope = Scope(parent=parent)
        parts = self._from(node, scope)
        where = node.args.get("where")
        condition = "" if where is None else f" WHERE {self._expressions.condition(where.this, scope)}"
        columns = self._projections(node, scope)
        group = self._group(node, scope, columns)
        having = node.args.get("having")
        if having is not None:
            group += f" HAVING {self._expressions.condition(having.this, scope)}"
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise SparkNeeded("DISTINCT ON")
        order = self._order(node, scope, columns, distinct is not None)
        shown = ", ".join(f"{value.sql} AS {quoted(f'c{number}')}" for number, (_, value) in enumerate(columns))
        head = "SELECT DISTINCT " if distinct is not None else "SELECT "
        sql = head + shown + parts + condition + group + order + self._limits(node)
        return Translated(sql, [name for name, _ in columns], [value.kind for _, value in columns])

    def _projections(self, node: Any, scope: Scope) -> list[tuple[str, Value]]:
        columns: list[tuple[str, Value]] = []
        for one in node.expressions:
            if isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
                star = one if isinstance(one, exp.Star) else one.this
                if any(star.args.values()):
                    raise SparkNeeded("* EXCEPT")
                columns += scope.star(one.table if isinstance(one, exp.Column) else "")
                continue
            name, value = name_of(one), self._expressions.value(one, scope)
            columns.append((name, value))
            if one.alias:
                scope.aliases.setdefault(one.alias.lower(), value)
        if not columns:
            raise SparkNeeded("a SELECT without columns")
        return columns

    def _group(self, node: Any, scope: Scope, columns: list[tuple[str, Value]]) -> str:
        group = node.args.get("group")
        if group is None:
            return ""
        if any(value for name, value in group.args.items() if name not in ("expressions", "all")):
            raise SparkNeeded("GROUP BY with ROLLUP, CUBE or sets")
        if group.args.get("all"):
            return " GROUP BY ALL"
        keys = []
        for one in group.expressions:
            position = _position(one, columns)
            value = columns[position][1] if position is not None else self._expressions.value(one, scope)
            keys.append(value.sql)
        return f" GROUP BY {', '.join(keys)}"

    def _order(self, node: Any, scope: Scope, columns: list[tuple[str, Value]], distinct: bool) -> str:
        order = node.args.get("order")
        if order is None:
            return ""
        names = [name.lower() for name, _ in columns]
        outputs = {name.lower(): value for name, value in columns if names.count(name.lower()) == 1}
        inner = Scope(scope.sources, scope.parent, scope.merged, {**scope.aliases, **outputs}, aliases_first=True)
        items = []
        for one in order.expressions:
            if isinstance(one.this, exp.Column) and one.this.name.lower() == "all" and not one.this.table:
                raise SparkNeeded("ORDER BY ALL")
            position = _position(one.this, columns)
            if position is not None:
                sql = columns[position][1].sql
            elif distinct:
                value = self._expressions.value(one.this, inner)
                sql = value.sql
                if sql not in {column.sql for _, column in columns}:
                    raise SparkNeeded("SELECT DISTINCT in the order of another column")
            else:
                sql = ""
            items.append(self._expressions.ordered(one, inner, sql))
        return f" ORDER BY {', '.join(items)}"

    @staticmethod
    def _limits(node: Any) -> str:
        parts = ""
        for name in ("limit", "offset"):
            found = node.args.get(name)
            if found is not None:
                if not isinstance(found, (exp.Limit, exp.Offset)) or not found.expression.name.isdigit():
                    raise SparkNeeded(f"a {name} that is computed")
                parts += f" {name.upper()} {found.expression.name}"
        return parts

    # -- FROM -----------------------------------------------------------------------------------------------------

    def _from(self, node: Any, scope: Scope) -> str:
        found = node.args.get("from_") or node.args.get("from")
        if found is None:
            return ""
        sql = " FROM " + self._source(found.this, scope)
        for join in [*found.this.args.get("joins", []), *(node.args.get("joins") or [])]:
            sql += self._join(join, scope)
        for lateral in [*(found.this.args.get("laterals") or []), *(node.args.get("laterals") or [])]:
            sql += self._lateral(lateral, scope)
        return sql

    def _source(self, node: Any, scope: Scope) -> str:
        if isinstance(node, exp.Subquery):
            made = self.query(node.this, Scope(), self._ctes)
            source = self._columns(node.alias, made.names, made)
            if any(node.args.get(name) for name in ("sample", "pivots")):
                raise SparkNeeded("a sample or a pivot")
            alias = node.alias or f"_{len(scope.sources)}"
            scope.sources.append(source._replace(alias=alias))
            return f"({made.sql}) AS {quoted(alias)}({', '.join(map(quoted, source.columns))})"
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise SparkNeeded(f"rows of {node.sql('spark'):.60}")
        if any(value for name, value in node.args.items() if name not in ("this", "alias", "joins", "laterals")):
            raise SparkNeeded("a table with a sample, a pivot or a version")
        source = self._ctes.get(node.name.lower()) or self._tables.get(node.name.lower())  # type: ignore[assignment]
        if source is None:
            raise ConfigError(f"no table {node.name!r}{suggest(node.name, sorted(self._tables), limit=20)}", "SQL")
        if node.args.get("alias") is not None and node.args["alias"].columns:
            raise SparkNeeded("a table whose columns get other names")
        alias = node.alias or source.alias
        if alias.lower() in {one.alias.lower() for one in scope.sources}:
            raise SparkNeeded(f"two tables are called {alias}")
        scope.sources.append(NamedRows(alias, source.columns))
        return f"{quoted(source.alias)} AS {quoted(alias)}"

    def _join(self, join: Any, scope: Scope) -> str:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        rest = {name for name, part in join.args.items() if part} - {"this", "side", "kind", "on", "using"}
        if rest:
            raise SparkNeeded(f"a join with {min(rest).upper()}")
        if kind in ("SEMI", "ANTI"):
            return self._filtering_join(join, scope, kind)
        words = "CROSS JOIN" if kind == "CROSS" else _JOINS.get(side or ("" if kind == "OUTER" else kind))
        using, condition = join.args.get("using"), join.args.get("on")
        if words is None or (kind == "OUTER" and not side):
            raise SparkNeeded(f"{side} {kind} JOIN".strip())
        if condition is None and not using:
            words = "CROSS JOIN"
        before = list(scope.sources)
        sql = f" {words} {self._source(join.this, scope)}"
        if using:
            return sql + self._using([one.name for one in using], before, scope, side)
        return sql if condition is None else f"{sql} ON {self._expressions.condition(condition, scope)}"

    def _filtering_join(self, join: Any, scope: Scope, kind: str) -> str:
        condition = join.args.get("on")
        if condition is None:
            raise SparkNeeded(f"{kind} JOIN without ON")
        before = list(scope.sources)
        sql = f" {kind} JOIN {self._source(join.this, scope)} ON {self._expressions.condition(condition, scope)}"
        scope.sources[:] = before  # the right side has no columns after it
        return sql

    @staticmethod
    def _using(names: list[str], before: list[NamedRows], scope: Scope, side: str) -> str:
        if scope.merged:
            raise SparkNeeded("several joins with USING")
        conditions = []
        for name in names:
            left = [value for source in before if (value := source.value(name)) is not None]
            right = scope.sources[-1].value(name)
            if len(left) != 1 or right is None or left[0].kind != right.kind:
                raise SparkNeeded(f"USING ({name})")
            conditions.append(f"{left[0].sql} = {right.sql}")
            merged = {"RIGHT": right.sql, "FULL": f"coalesce({left[0].sql}, {right.sql})"}.get(side, left[0].sql)
            exact = next(one for source in before for one in source.columns if one.lower() == name.lower())
            scope.merged[name.lower()] = (exact, Value(merged, left[0].kind))
        return f" ON {' AND '.join(conditions)}"

    def _lateral(self, node: Any, scope: Scope) -> str:
        """Translate LATERAL VIEW explode(…)."""
        call, alias = node.this, node.args.get("alias")
        if node.args.get("outer") or not isinstance(call, exp.Anonymous) or call.name.lower() != "explode":
            raise SparkNeeded("a LATERAL VIEW of this form")
        value = self._expressions.value(call.expressions[0], scope)
        names = [one.name for one in alias.columns] if alias is not None else []
        table = alias.name if alias is not None and alias.name else f"_{len(scope.sources)}"
        kind = value.kind
        if isinstance(kind, dict) and kind["type"] == "array":
            columns, parts = {(names or ["col"])[0]: kind["elementType"]}, [f"unnest({value.sql})"]
        elif isinstance(kind, dict) and kind["type"] == "map":
            columns = dict(zip(names or ["key", "value"], (kind["keyType"], kind["valueType"])))
            parts = [f"unnest(map_keys({value.sql}))", f"unnest(map_values({value.sql}))"]
        else:
            raise SparkNeeded("explode() of this type")
        if len(columns) != len(parts) or (names and len(names) != len(parts)):
            raise SparkNeeded("a LATERAL VIEW with other columns")
        scope.sources.append(NamedRows(table, columns))
        shown = ", ".join(f"{part} AS {quoted(name)}" for part, name in zip(parts, columns))
        return f" CROSS JOIN LATERAL (SELECT {shown}) AS {quoted(table)}"

    # -- sets -----------------------------------------------------------------------------------------------------

    def _parenthesized(self, node: Any, parent: Scope) -> Translated:
        made = self.query(node.this, parent, self._ctes)
        if not any(node.args.get(name) for name in ("order", "limit", "offset")):
            return made._replace(sql=f"({made.sql})")
        return self._ordered_again(node, made)

    def _set_operation(self, node: Any, parent: Scope) -> Translated:
        if node.args.get("by_name") or node.args.get("on") or node.args.get("side"):
            raise SparkNeeded("UNION BY NAME")
        sides = [self.query(side, parent, self._ctes) for side in (node.this, node.expression)]
        if len(sides[0].kinds) != len(sides[1].kinds):
            raise ConfigError("the two sides of a UNION have different numbers of columns", "SQL")
        kinds = [
            common([Value("", one), Value("", other)], "UNION") for one, other in zip(sides[0].kinds, sides[1].kinds)
        ]
        words = node.key.upper() + (" ALL" if not node.args.get("distinct", True) else "")
        both = [_as_kinds(side, kinds) for side in sides]
        made = Translated(f"({both[0]}) {words} ({both[1]})", sides[0].names, kinds)
        return self._ordered_again(node, made)

    def _ordered_again(self, node: Any, made: Translated) -> Translated:
        """Order and limit the result of a query as a whole."""
        if not any(node.args.get(name) for name in ("order", "limit", "offset")):
            return made
        source = self._columns("_all", made.names, made)
        scope = Scope([source])
        columns = list(scope.star())
        order = self._order(node, scope, columns, distinct=False)
        names = ", ".join(map(quoted, source.columns))
        sql = f"SELECT * FROM ({made.sql}) AS {quoted('_all')}({names}){order}{self._limits(node)}"
        return made._replace(sql=sql)


def _as_kinds(side: Translated, kinds: list[Kind]) -> str:
    """Return a side of a set operation in its columns' common types."""
    if side.kinds == kinds:
        return side.sql
    names = [f"c{number}" for number in range(len(kinds))]
    shown = ", ".join(f"CAST({name} AS {duckdb_type(kind)}) AS {name}" for name, kind in zip(names, kinds))
    return f"SELECT {shown} FROM ({side.sql}) AS _side({', '.join(names)})"


def _position(node: Any, columns: list[tuple[str, Value]]) -> int | None:
    """Return the index of a column that is named by its number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    number = int(node.this) if node.this.isdigit() else 0
    if not 1 <= number <= len(columns):
        raise ConfigError(f"there is no column {node.this}; there are {len(columns)}", "SQL")
    return number - 1
