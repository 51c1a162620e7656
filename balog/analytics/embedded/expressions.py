"""Translates expressions of Spark's dialect to DuckDB's. What is not known to be equal raises ``SparkNeeded``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from sqlglot import exp

from balog.analytics.closed_duckdb import text
from balog.analytics.embedded.aggregates import AGGREGATES, WINDOWS
from balog.analytics.embedded.functions import ORDERED, SCALARS, concat, constant, item, matches, need, substring
from balog.analytics.embedded.positions import position
from balog.analytics.embedded.scopes import Scope, fields_of
from balog.analytics.embedded.values import (
    SparkNeeded,
    UnfitType,
    Value,
    common,
    converted,
    digits,
    duckdb_type,
    failing,
    family,
    refusing,
)
from balog.errors import ConfigError
from balog.suggestions import nearest

Subquery = Callable[[Any, Scope], "tuple[str, list[Any]]"]
"""Translates a query: its SQL, and the types of its columns."""

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
                exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM"}  # fmt: skip
_TYPES = {"INT": "integer", "BIGINT": "long", "DOUBLE": "double", "TEXT": "string", "VARCHAR": "string", "DATE": "date",
          "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamp", "BOOLEAN": "boolean"}  # fmt: skip
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?)?(Z|[+-]\d\d:\d\d)?")
_PARTS = {"this", "expression", "expressions", "negate"}
_FURTHER = {
    exp.Column: {"table", "db", "catalog"}, exp.Alias: {"alias"}, exp.Literal: {"is_string"},
    exp.Case: {"ifs", "default"},
    exp.If: {"true", "false"}, exp.Cast: {"to"}, exp.TryCast: {"to", "safe"}, exp.Between: {"low", "high"},
    exp.In: {"query"}, exp.Div: {"typed", "safe"}, exp.DPipe: {"safe"}, exp.Trim: {"position"},
    exp.Substring: {"start", "length"}, exp.StrPosition: {"substr"}, exp.Window: {"partition_by", "order", "over"},
}  # fmt: skip
"""What else the translation of a node reads; a node with more is left to Spark."""

_UNITS = {"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"}
_DAY_UNITS = _UNITS - {"SECOND", "MINUTE", "HOUR"}


class Expressions:
    """Translates expressions; ``subquery`` translates queries inside of them."""

    def __init__(self, subquery: Subquery) -> None:
        self._subquery = subquery
        self._makers: dict[type, Callable[[Any, Scope], Value]] = {
            exp.Column: lambda node, scope: scope.resolve(node),
            exp.Dot: lambda node, scope: fields_of(self.value(node.this, scope), [node.expression.name]),
            exp.Paren: lambda node, scope: self._same(self.value(node.this, scope)),
            exp.Alias: lambda node, scope: self.value(node.this, scope),
            exp.Literal: self._literal,
            exp.Boolean: lambda node, scope: Value("true" if node.this else "false", "boolean", bool(node.this)),
            exp.Null: lambda node, scope: Value("NULL", "void"),
            exp.Neg: self._negative,
            exp.Not: lambda node, scope: Value(f"(NOT {self.condition(node.this, scope)})", "boolean"),
            exp.And: lambda node, scope: self._logic(node, scope, "AND"),
            exp.Or: lambda node, scope: self._logic(node, scope, "OR"),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: lambda node, scope: self._like(node, scope, "{} LIKE {}"),
            exp.ILike: lambda node, scope: self._like(node, scope, "lower({}) LIKE lower({})"),
            exp.RegexpLike: lambda node, scope: matches(
                self.value(node.this, scope), self.value(node.expression, scope)
            ),
            exp.Case: self._case,
            exp.If: lambda node, scope: self._call(
                "if", [node.this, node.args["true"], node.args.get("false") or exp.Null()], scope
            ),
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Bracket: self._bracket,
            exp.DPipe: lambda node, scope: concat(self.value(node.left, scope), self.value(node.right, scope)),
            exp.Div: self._divide,
            exp.IntDiv: lambda node, scope: self._whole_division(node, scope, "//"),
            exp.Mod: lambda node, scope: self._whole_division(node, scope, "%"),
            exp.Extract: lambda node, scope: self._call(node.name.lower(), [node.expression], scope),
            exp.Trim: self._trim,
            exp.Substring: self._substring,
            exp.Floor: lambda node, scope: self._rounding(node, scope, "floor"),
            exp.Ceil: lambda node, scope: self._rounding(node, scope, "ceil"),
            exp.StrPosition: self._position,
            exp.Exists: self._exists,
            exp.Subquery: self._scalar,
            exp.Anonymous: lambda node, scope: self._call(node.name, node.expressions, scope, node),
            exp.Filter: self._filtered,
            exp.Window: self._window,
            **dict.fromkeys(_ARITHMETIC, self._arithmetic),
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def value(self, node: Any, scope: Scope) -> Value:
        """Translate an expression.

        Raises:
            SparkNeeded: DuckDB may answer differently.
            ConfigError: a name is unknown.
        """
        maker = self._makers.get(type(node))
        if maker is None:
            raise SparkNeeded(f"{node.sql('spark'):.60} is answered by Spark only")
        rest = {name for name, part in node.args.items() if part} - _PARTS - _FURTHER.get(type(node), set())
        if rest:
            raise SparkNeeded(f"{node.sql('spark'):.60} has a form that only Spark reads")
        try:
            made = maker(node, scope)
        except UnfitType as error:
            raise SparkNeeded(f"{node.sql('spark'):.60} {error.reason}") from None
        if node.args.get("negate"):
            made = Value(f"(NOT {made.sql})", "boolean")
        if "\0" in made.sql and not isinstance(node.parent, (exp.Filter, exp.Window)):
            made = made._replace(sql=made.sql.replace("\0", ""))
        return made

    def condition(self, node: Any, scope: Scope) -> str:
        """Translate a condition."""
        made = self.value(node, scope)
        if made.kind not in ("boolean", "void"):
            raise SparkNeeded("a condition is not a boolean")
        return made.sql

    @staticmethod
    def _same(value: Value) -> Value:
        return value._replace(sql=f"({value.sql})")

    def _literal(self, node: Any, scope: Scope) -> Value:
        if node.is_string:
            if "\\" in node.this or "\0" in node.this:
                raise SparkNeeded("a text with a backslash")
            return Value(text(node.this), "string", node.this)
        if re.fullmatch(r"\d+", node.this):
            number = int(node.this)
            if number >= 1 << 63:
                raise SparkNeeded("a number beyond 64 bits")
            kind = "integer" if number < 1 << 31 else "long"
            return Value(f"CAST({number} AS {duckdb_type(kind)})", kind, number)
        found = re.fullmatch(r"(\d*)\.(\d*)", node.this)
        if found is None:
            raise SparkNeeded(f"the number {node.this}")
        whole = found[1].lstrip("0")
        kind = f"decimal({max(len(whole) + len(found[2]), 1)},{len(found[2])})"
        return Value(f"CAST({node.this} AS {kind})", kind, float(node.this))

    def _negative(self, node: Any, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        need((value,), ("whole", "double", "decimal"))
        if value.literal == 1 << 31 and isinstance(node.this, exp.Literal):  # the least integer is one number
            return Value(f"CAST(-{value.literal} AS INTEGER)", "integer", -value.literal)
        return Value(f"(-{value.sql})", value.kind, None if value.literal is None else -value.literal)

    def _logic(self, node: Any, scope: Scope, word: str) -> Value:
        return Value(f"({self.condition(node.left, scope)} {word} {self.condition(node.right, scope)})", "boolean")

    def _is(self, node: Any, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        if isinstance(node.expression, exp.Null):
            return Value(f"({value.sql} IS NULL)", "boolean")
        if isinstance(node.expression, exp.Boolean) and value.kind == "boolean":
            return Value(f"({value.sql} IS {'TRUE' if node.expression.this else 'FALSE'})", "boolean")
        raise SparkNeeded("an IS of another form")

    # -- comparisons ----------------------------------------------------------------------------------------------

    def _aligned(self, values: list[Value], where: str) -> list[str]:
        """Return values in their common type; literal texts become times beside times."""
        times = {value.kind for value in values if value.kind in ("timestamp", "date")}
        if times:
            kind = "timestamp" if "timestamp" in times else "date"
            values = [_moment(value, kind) if value.kind == "string" else value for value in values]
        kind = common(values, where)
        if kind != "void" and family(kind) not in ORDERED:
            raise SparkNeeded(f"{where} of the type {family(kind)}")
        return [converted(value, kind) for value in values]

    def _comparison(self, node: Any, scope: Scope) -> Value:
        sign = _COMPARISONS[type(node)]
        left, right = self._aligned([self.value(node.left, scope), self.value(node.right, scope)], "a comparison")
        return Value(f"({left} {sign} {right})", "boolean")

    def _between(self, node: Any, scope: Scope) -> Value:
        if node.args.get("symmetric"):
            raise SparkNeeded("BETWEEN SYMMETRIC")
        values = [self.value(part, scope) for part in (node.this, node.args["low"], node.args["high"])]
        one, low, high = self._aligned(values, "BETWEEN")
        return Value(f"({one} BETWEEN {low} AND {high})", "boolean")

    def _in(self, node: Any, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            sql, kinds = self._subquery(query.this if isinstance(query, exp.Subquery) else query, scope)
            if len(kinds) != 1 or kinds[0] != value.kind:
                raise SparkNeeded("IN (SELECT …) compares different types")
            return Value(f"({value.sql} IN ({sql}))", "boolean")
        if not node.expressions:
            raise SparkNeeded("an IN of another form")
        one, *others = self._aligned([value, *(self.value(part, scope) for part in node.expressions)], "IN")
        return Value(f"({one} IN ({', '.join(others)}))", "boolean")

    def _like(self, node: Any, scope: Scope, form: str) -> Value:
        value, pattern = self.value(node.this, scope), self.value(node.expression, scope)
        need((value, pattern), ("string",), ("string",))
        constant(pattern, str)
        sql = f"({form.format(value.sql, pattern.sql)})"
        if isinstance(node, exp.ILike):
            sql = refusing(f"strlen({value.sql}) <> length({value.sql})", "ILIKE of text beyond ASCII", sql)
        return Value(sql, "boolean")

    def _exists(self, node: Any, scope: Scope) -> Value:
        if not isinstance(node.this, exp.Query):
            raise SparkNeeded("exists() with a function")
        return Value(f"EXISTS ({self._subquery(node.this, scope)[0]})", "boolean")

    def _scalar(self, node: Any, scope: Scope) -> Value:
        sql, kinds = self._subquery(node.this, scope)
        if len(kinds) != 1:
            raise SparkNeeded("a subquery of several columns")
        return Value(f"({sql})", kinds[0])

    # -- numbers --------------------------------------------------------------------------------------------------

    def _arithmetic(self, node: Any, scope: Scope) -> Value:
        sign = _ARITHMETIC[type(node)]
        if isinstance(node.right, exp.Interval):
            return self._shifted(node, scope, sign)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        need((left, right), ("whole", "double", "decimal"), ("whole", "double", "decimal"))
        kind = common([left, right], "arithmetic")
        if kind == "void" or family(kind) != "decimal":
            return Value(f"({converted(left, kind)} {sign} {converted(right, kind)})", kind)
        (one, scale), (other, places) = _digits(left), _digits(right)
        if sign == "*":
            precision, result = one + other + 1, scale + places
        else:
            result = max(scale, places)
            precision = max(one - scale, other - places) + result + 1
        if precision > 38:
            raise SparkNeeded("decimals of more than 38 digits")
        return Value(
            f"CAST(({left.sql} {sign} {right.sql}) AS decimal({precision},{result}))", f"decimal({precision},{result})"
        )

    def _shifted(self, node: Any, scope: Scope, sign: str) -> Value:
        value, interval = self.value(node.left, scope), node.right
        unit = str(interval.args.get("unit") or "").upper().rstrip("S")
        need((value,), ("timestamp", "date"))
        allowed = _DAY_UNITS if value.kind == "date" else _UNITS
        if sign == "*" or unit not in allowed or not re.fullmatch(r"\d{1,6}", interval.this.name):
            raise SparkNeeded(f"{interval.sql('spark')} is added")
        moved = f"({value.sql} {sign} INTERVAL {interval.this.name} {unit})"
        return Value(f"CAST({moved} AS {duckdb_type(value.kind)})", value.kind)

    def _divide(self, node: Any, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        need((left, right), ("whole", "double", "decimal"), ("whole", "double", "decimal"))
        families = {family(left.kind), family(right.kind)}
        if "decimal" in families and "double" not in families:
            raise SparkNeeded("a division of decimals (write 100D for a double)")
        divided = f"CAST({left.sql} AS DOUBLE) / CAST({right.sql} AS DOUBLE)"
        if right.literal:
            return Value(f"({divided})", "double")
        return Value(failing(f"{right.sql} = 0", f"Division by zero{_place(node)}", divided), "double")

    def _whole_division(self, node: Any, scope: Scope, sign: str) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        need((left, right), ("whole",), ("whole",))
        kind = "long" if sign == "//" else common([left, right], "%")
        divided = f"{converted(left, kind)} {sign} {converted(right, kind)}"
        return Value(failing(f"{right.sql} = 0", f"Division by zero{_place(node)}", divided), kind)

    def _rounding(self, node: Any, scope: Scope, name: str) -> Value:
        if node.args.get("decimals") or node.args.get("to"):
            raise SparkNeeded(f"{name}() to places")
        return SCALARS[name](self.value(node.this, scope))

    # -- other forms ----------------------------------------------------------------------------------------------

    def _case(self, node: Any, scope: Scope) -> Value:
        results = [self.value(one.args["true"], scope) for one in node.args["ifs"]]
        default = node.args.get("default")
        other = self.value(default, scope) if default is not None else Value("NULL", "void")
        kind = common([*results, other], "CASE")
        parts = []
        for one, result in zip(node.args["ifs"], results):
            if node.this is None:
                condition = self.condition(one.this, scope)
            else:
                left, right = self._aligned([self.value(node.this, scope), self.value(one.this, scope)], "CASE")
                condition = f"{left} = {right}"
            parts.append(f"WHEN {condition} THEN {converted(result, kind)}")
        return Value(f"(CASE {' '.join(parts)} ELSE {converted(other, kind)} END)", kind)

    def _cast(self, node: Any, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        name = node.to.this.name
        precision = [int(part.name) for part in node.to.expressions] if name == "DECIMAL" else []
        kind = f"decimal({precision[0]},{precision[1] if len(precision) > 1 else 0})" if precision else _TYPES.get(name)
        if kind is None:
            raise SparkNeeded(f"a cast to {node.to.sql('spark')}")
        return _cast_value(value, kind, isinstance(node, exp.TryCast))

    def _bracket(self, node: Any, scope: Scope) -> Value:
        if len(node.expressions) != 1:
            raise SparkNeeded("an index of another form")
        return item(self.value(node.this, scope), self.value(node.expressions[0], scope))

    def _trim(self, node: Any, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        need((value,), ("string",))
        if node.expression is not None:
            raise SparkNeeded("trim() of given characters")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
        return Value(f"{name}({value.sql}, ' ')", "string")

    def _substring(self, node: Any, scope: Scope) -> Value:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return substring(*(self.value(part, scope) for part in parts if part is not None))

    def _position(self, node: Any, scope: Scope) -> Value:
        if node.args.get("position") is not None:
            raise SparkNeeded("locate() from a position")
        return SCALARS["instr"](self.value(node.this, scope), self.value(node.args["substr"], scope))

    def _call(self, name: str, arguments: list[Any], scope: Scope, node: Any = None) -> Value:
        called = name.lower()
        if called == "count":
            return self._count(arguments, scope)
        known = SCALARS.get(called) or AGGREGATES.get(called)
        if known is None and isinstance(node and node.parent, exp.Window):
            known = WINDOWS.get(called)
        if known is None:
            # A name that is merely alike is another function of Spark: weekday is not day.
            likely = nearest(called, [*SCALARS, *AGGREGATES], likeness=0.8)
            hint = f" (did you mean {likely!r}?)" if likely else ""
            raise SparkNeeded(f"the embedded engine has no function {name}{hint}{position(node.meta) if node else ''}")
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct and called in ("sum", "avg", "min", "max"):
            made = known(*(self.value(part, scope) for part in arguments[0].expressions))
            return made._replace(sql=made.sql.replace(f"{called}(", f"{called}(DISTINCT ", 1))
        try:
            return known(*(self.value(part, scope) for part in arguments))
        except TypeError:
            raise SparkNeeded(f"the function {name} has {len(arguments)} arguments") from None

    def _count(self, arguments: list[Any], scope: Scope) -> Value:
        if len(arguments) != 1:
            raise SparkNeeded("count() of several columns")
        if isinstance(arguments[0], exp.Star):
            return Value("count(*)\0", "long")
        if not isinstance(arguments[0], exp.Distinct):
            return Value(f"count({self.value(arguments[0], scope).sql})\0", "long")
        if len(arguments[0].expressions) != 1:
            raise SparkNeeded("count(DISTINCT …) of several columns")
        value = self.value(arguments[0].expressions[0], scope)
        need((value,), ORDERED)
        return Value(f"count(DISTINCT {value.sql})\0", "long")

    def _filtered(self, node: Any, scope: Scope) -> Value:
        made = self.value(node.this, scope)
        if "\0" not in made.sql:
            raise SparkNeeded("FILTER of this function")
        condition = self.condition(node.expression.this, scope)
        return made._replace(sql=made.sql.replace("\0", f" FILTER (WHERE {condition})\0"))

    def _window(self, node: Any, scope: Scope) -> Value:
        made = self.value(node.this, scope)
        if "\0" not in made.sql or node.args.get("alias") is not None or node.args.get("spec") is not None:
            raise SparkNeeded("a window of this form")
        parts = []
        if node.args.get("partition_by"):
            parts.append(
                "PARTITION BY "
                + ", ".join(self.value(part, scope).sql.replace("\0", "") for part in node.args["partition_by"])
            )
        if node.args.get("order") is not None:
            parts.append("ORDER BY " + ", ".join(self.ordered(part, scope) for part in node.args["order"].expressions))
        return made._replace(sql=made.sql.replace("\0", f" OVER ({' '.join(parts)})"), literal=None)

    def ordered(self, node: Any, scope: Scope, sql: str = "") -> str:
        """Translate an item of ORDER BY; nulls are first in ascending order, unless written otherwise."""
        if not sql:
            value = self.value(node.this, scope)
            if family(value.kind) not in (*ORDERED, "void"):
                raise SparkNeeded(f"an order by the type {family(value.kind)}")
            sql = value.sql
        direction = "DESC" if node.args.get("desc") else "ASC"
        return f"{sql} {direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _place(node: Any) -> str:
    """Return the place of an expression in the statement, as in errors of Spark."""
    parts = [part.meta for part in node.walk() if "start" in part.meta]
    if not parts:
        return ""
    return position(min(parts, key=lambda meta: int(meta["start"])))


def _digits(value: Value) -> tuple[int, int]:
    if isinstance(value.literal, int) and family(value.kind) == "whole":
        return len(str(abs(value.literal))), 0
    return digits(value.kind)


def _moment(value: Value, kind: str) -> Value:
    """Return a literal text as a time, in UTC."""
    found = _MOMENT.fullmatch(value.literal) if isinstance(value.literal, str) else None
    if found is None or (kind == "date" and (found[2] or found[4])):
        raise SparkNeeded("a text becomes a time")
    day, time, fraction, zone = found.groups()
    if zone and not time:
        raise SparkNeeded("a text becomes a time")
    clock = time or "00:00"
    whole = f"{day}T{clock if len(clock) == 8 else clock + ':00'}.{(fraction or '').ljust(6, '0')}"
    try:
        moment = datetime.fromisoformat(whole + (zone or "+00:00").replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigError(f"{value.literal!r} is not a time", "SQL") from None
    if kind == "date":
        return Value(f"DATE '{day}'", "date")
    return Value(f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'", "timestamp")


def _cast_value(value: Value, kind: str, tries: bool) -> Value:
    """Return a cast of Spark in its ANSI mode."""
    have, want = family(value.kind), family(kind)
    if have == "void" or value.kind == kind:
        return Value(f"CAST({value.sql} AS {duckdb_type(kind)})", kind, value.literal if value.kind == kind else None)
    if isinstance(value.literal, str) and want in ("timestamp", "date") and not tries:
        return _moment(value, kind)
    made = f"{'TRY_' if tries else ''}CAST({value.sql} AS {duckdb_type(kind)})"
    if (have, want) == ("double", "whole"):
        made = f"{'TRY_' if tries else ''}CAST(trunc({value.sql}) AS {duckdb_type(kind)})"
    elif (have, want) == ("string", "whole"):
        matched = f"regexp_full_match({value.sql}, '[+-]?[0-9]{{1,18}}')"
        if tries:
            raise SparkNeeded("a try_cast of text to a whole number")
        made = refusing(f"NOT {matched}", "a cast of text that is not a plain number", made)
    elif isinstance(value.literal, str) and want == "decimal" and re.fullmatch(r"\d+\.?\d*", value.literal):
        pass  # a number with the suffix BD
    elif (have, want) == ("string", "double"):
        matched = f"regexp_full_match({value.sql}, '[+-]?[0-9]{{1,15}}([.][0-9]{{1,15}})?')"
        made = refusing(f"NOT {matched}", "a cast of text that is not a plain number", made)
    elif (have, want) not in _EQUAL_CASTS:
        raise SparkNeeded(f"a cast of {have} to {want}")
    literal = value.literal if want == "whole" and have == "whole" else None
    return Value(made, kind, literal)


_EQUAL_CASTS = {
    *(("whole", other) for other in ("whole", "double", "string", "decimal")),
    *(("decimal", other) for other in ("double", "decimal")),
    *(("boolean", other) for other in ("string",)),
    *(("date", other) for other in ("timestamp", "string")),
    *(("timestamp", other) for other in ("date", "string")),
}
