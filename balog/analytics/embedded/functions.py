"""Functions of Spark that DuckDB computes with equal results: each makes the SQL of a call from its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from balog.analytics.closed_duckdb import text
from balog.analytics.embedded.patterns import to_re2
from balog.analytics.embedded.values import (
    Kind,
    SparkNeeded,
    UnfitType,
    Value,
    array_of,
    common,
    converted,
    digits,
    duckdb_type,
    failing,
    family,
    refusing,
)

Function = Callable[..., Value]
NUMBERS = ("whole", "double")
ORDERED = ("whole", "double", "decimal", "string", "timestamp", "date", "boolean")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def plain(form: str, kind: Kind | None, *families: tuple[str, ...]) -> Function:
    """Return a function with fixed arguments; ``kind`` None is the type of the first."""

    def make(*values: Value) -> Value:
        need(values, *families)
        return Value(form.format(*(value.sql for value in values)), values[0].kind if kind is None else kind)

    return make


def need(values: tuple[Value, ...], *families: tuple[str, ...]) -> None:
    """Check number and types of arguments.

    Raises:
        SparkNeeded: their number is another.
        UnfitType: Spark would convert them, or reject them.
    """
    if len(values) != len(families):
        raise SparkNeeded(f"a function has {len(values)} arguments that only Spark reads")
    for value, allowed in zip(values, families):
        if value.kind != "void" and family(value.kind) not in allowed:
            raise UnfitType(f"reads the types {', '.join(allowed)}, not {family(value.kind)}")


def constant(value: Value, kind: type) -> Any:
    """Return the value of an argument that is a literal.

    Raises:
        SparkNeeded: it is computed.
    """
    if not isinstance(value.literal, kind) or isinstance(value.literal, bool):
        raise SparkNeeded("an argument is computed where the embedded engine reads a constant")
    return value.literal


def ascii_only(name: str) -> Function:
    """Return ``upper`` or ``lower``: the rules of Java and DuckDB differ beyond ASCII."""

    def make(value: Value) -> Value:
        need((value,), ("string",))
        return Value(
            refusing(
                f"strlen({value.sql}) <> length({value.sql})", f"{name}() of text beyond ASCII", f"{name}({value.sql})"
            ),
            "string",
        )

    return make


def substring(value: Value, start: Value, length: Value | None = None) -> Value:
    """Return ``substring`` with Spark's reading of starts: 0 is 1."""
    need((value, start), ("string",), ("whole",))
    first = constant(start, int)
    if first < 0:
        raise SparkNeeded("substring() counts from the end")
    if length is None:
        return Value(f"substring({value.sql}, {first or 1})", "string")
    return Value(f"substring({value.sql}, {first or 1}, {max(constant(length, int), 0)})", "string")


def concat(*values: Value) -> Value:
    """Return ``concat`` of texts: null if one is null."""
    parts = [value.sql if value.kind == "string" else to_text(value) for value in values]
    return Value("(" + " || ".join(parts) + ")", "string")


def to_text(value: Value) -> str:
    """Return a value as text, where both engines write it alike."""
    if family(value.kind) not in ("whole", "date", "boolean", "timestamp", "string", "void"):
        raise SparkNeeded(f"a {family(value.kind)} becomes text")
    return f"CAST({value.sql} AS VARCHAR)"


def concat_ws(separator: Value, *values: Value) -> Value:
    """Return ``concat_ws`` of texts; nulls are left out."""
    need((separator, *values), *[("string",)] * (len(values) + 1))
    return Value(f"concat_ws({', '.join(value.sql for value in (separator, *values))})", "string")


def coalesce(*values: Value) -> Value:
    """Return ``coalesce``."""
    kind = common(list(values), "coalesce()")
    return Value(f"coalesce({', '.join(converted(value, kind) for value in values)})", kind)


def extreme(name: str) -> Function:
    """Return ``greatest`` or ``least``: nulls are skipped."""

    def make(*values: Value) -> Value:
        kind = common(list(values), f"{name}()")
        return Value(f"{name}({', '.join(converted(value, kind) for value in values)})", kind)

    return make


def nullif(value: Value, other: Value) -> Value:
    """Return ``nullif``."""
    kind = common([value, other], "nullif()")
    return Value(f"nullif({converted(value, kind)}, {converted(other, kind)})", value.kind)


def rounded(value: Value, places: Value | None = None) -> Value:
    """Return ``round``: half up on the decimal digits of a number, as Java prints it."""
    need((value,), ("whole", "double", "decimal"))
    scale = 0 if places is None else constant(places, int)
    if not 0 <= scale <= 10:
        raise SparkNeeded("round() to other than 0 to 10 places")
    if family(value.kind) == "whole":
        return value
    if family(value.kind) == "decimal":
        precision, have = digits(value.kind)
        kind = f"decimal({min(precision - have + min(scale, have) + 1, 38)},{min(scale, have)})"
        return Value(f"CAST(round({value.sql}, {min(scale, have)}) AS {duckdb_type(kind)})", kind)
    exact = f"CAST(CAST(CAST({value.sql} AS VARCHAR) AS DECIMAL(38,{scale})) AS DOUBLE)"
    return Value(f"(CASE WHEN abs({value.sql}) < 1e15 THEN {exact} ELSE {value.sql} END)", "double")


def whole_of(name: str) -> Function:
    """Return ``floor`` or ``ceil``."""

    def make(value: Value) -> Value:
        need((value,), NUMBERS)
        return value if family(value.kind) == "whole" else Value(f"CAST({name}({value.sql}) AS BIGINT)", "long")

    return make


def truncated(unit: Value, value: Value) -> Value:
    """Return ``date_trunc(unit, time)``."""
    need((value,), ("timestamp", "date"))
    name = constant(unit, str).upper()
    if name not in _UNITS:
        raise SparkNeeded(f"date_trunc() to {name}")
    return Value(f"CAST(date_trunc({text(name)}, {value.sql}) AS TIMESTAMP)", "timestamp")


def to_date(value: Value) -> Value:
    """Return ``to_date`` of a time."""
    need((value,), ("timestamp", "date"))
    return Value(f"CAST({value.sql} AS DATE)", "date")


_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%g", "SSSSSS": "%f"}


_PIECES = re.compile(r"(([A-Za-z])\2*)|'([^']+)'|([^A-Za-z']+)|(.)", re.DOTALL)


def date_format(value: Value, form: Value) -> Value:
    """Return ``date_format`` with patterns of numbers."""
    need((value,), ("timestamp", "date"))
    made = []
    for found in _PIECES.finditer(constant(form, str)):
        field, _, quoted, other, unknown = found.groups()
        if unknown or (field and field not in _FIELDS):
            raise SparkNeeded(f"date_format() with {found[0]!r}")
        made.append(_FIELDS[field] if field else (quoted or other).replace("%", "%%"))
    return Value(f"strftime({value.sql}, {text(''.join(made))})", "string")


def matches(value: Value, pattern: Value) -> Value:
    """Return ``rlike``."""
    need((value,), ("string",))
    return Value(f"regexp_matches({value.sql}, {text(to_re2(constant(pattern, str)))})", "boolean")


def extracted(value: Value, pattern: Value, group: Value | None = None) -> Value:
    """Return ``regexp_extract``: "" without a match."""
    need((value,), ("string",))
    number = 1 if group is None else constant(group, int)
    wanted = constant(pattern, str)
    if number > len(re.findall(r"(?<!\\)\((?!\?)", wanted)):
        raise SparkNeeded(f"the pattern has no group {number}")
    return Value(f"regexp_extract({value.sql}, {text(to_re2(wanted))}, {number})", "string")


def replaced(value: Value, pattern: Value, by: Value) -> Value:
    """Return ``regexp_replace`` of all matches, without references to groups."""
    need((value,), ("string",))
    if re.search(r"[$\\]", constant(by, str)):
        raise SparkNeeded("regexp_replace() with references to groups")
    return Value(f"regexp_replace({value.sql}, {text(to_re2(constant(pattern, str)))}, {by.sql}, 'g')", "string")


def size(value: Value) -> Value:
    """Return the number of items of an array or map."""
    need((value,), ("array", "map"))
    name = "len" if value.kind["type"] == "array" else "cardinality"
    return Value(f"CAST({name}({value.sql}) AS INTEGER)", "integer")


def item(value: Value, key: Value, base: int = 0) -> Value:
    """Return ``map[key]``, or ``array[index]``, which fails outside of the array."""
    if isinstance(value.kind, dict) and value.kind["type"] == "map":
        need((key,), (family(value.kind["keyType"]),))
        return Value(f"{value.sql}[{key.sql}]", value.kind["valueType"])
    need((value, key), ("array",), ("whole",))
    index = constant(key, int)
    if index < base:
        raise SparkNeeded("an index counts from the end")
    number = index + 1 - base
    missing = f"{number} > len({value.sql})"
    return Value(
        failing(missing, f"the index {index} is outside of an array", f"{value.sql}[{number}]"),
        value.kind["elementType"],
    )


def keys(part: str) -> Function:
    """Return ``map_keys`` or ``map_values``."""

    def make(value: Value) -> Value:
        need((value,), ("map",))
        return Value(f"map_{part}s({value.sql})", array_of(value.kind["keyType" if part == "key" else "valueType"]))

    return make


def has_key(value: Value, key: Value) -> Value:
    """Return ``map_contains_key``."""
    need((value, key), ("map",), ("string",))
    return Value(f"list_contains(map_keys({value.sql}), {key.sql})", "boolean")


_PATH = re.compile(r"\$(?:\.\w+)+")


def json_text(value: Value, path: Value) -> Value:
    """Return ``get_json_object`` of texts, whole numbers and booleans; other values are written differently."""
    need((value,), ("string",))
    if not _PATH.fullmatch(constant(path, str)):
        raise SparkNeeded(f"get_json_object() with the path {path.literal}")
    kind = f"json_type({value.sql}, {path.sql})"
    found = f"json_extract_string({value.sql}, {path.sql})"
    number = f"abs(TRY_CAST({found} AS DOUBLE))"
    is_same = f"CAST(TRY_CAST({found} AS DOUBLE) AS VARCHAR) = {found}"
    plain_number = f"{kind} = 'DOUBLE' AND {is_same} AND {number} >= 0.001 AND {number} < 1e7"
    simple = f"{kind} IS NULL OR {kind} IN ('VARCHAR', 'BIGINT', 'UBIGINT', 'BOOLEAN', 'NULL') OR {plain_number}"
    checked = refusing(f"NOT ({simple})", "get_json_object() of an object, a list or a rare number", found)
    return Value(f"(CASE WHEN json_valid({value.sql}) THEN {checked} END)", "string")


def days_added(sign: str) -> Function:
    """Return ``date_add`` or ``date_sub``."""

    def make(value: Value, days: Value) -> Value:
        need((value, days), ("date", "timestamp"), ("whole",))
        return Value(f"(CAST({value.sql} AS DATE) {sign} CAST({days.sql} AS INTEGER))", "date")

    return make


def days_between(end: Value, start: Value) -> Value:
    """Return ``datediff(end, start)``."""
    need((end, start), ("date", "timestamp"), ("date", "timestamp"))
    return Value(f"CAST(CAST({end.sql} AS DATE) - CAST({start.sql} AS DATE) AS INTEGER)", "integer")


def choice(condition: Value, yes: Value, no: Value) -> Value:
    """Return ``if``."""
    need((condition,), ("boolean",))
    kind = common([yes, no], "if()")
    return Value(f"(CASE WHEN {condition.sql} THEN {converted(yes, kind)} ELSE {converted(no, kind)} END)", kind)


def tried_division(value: Value, by: Value) -> Value:
    """Return ``try_divide``: null for a division by zero."""
    need((value, by), NUMBERS, NUMBERS)
    return Value(f"(CAST({value.sql} AS DOUBLE) / nullif(CAST({by.sql} AS DOUBLE), 0))", "double")


def array(*values: Value) -> Value:
    """Return ``array``."""
    kind = common(list(values), "array()")
    return Value(f"[{', '.join(converted(value, kind) for value in values)}]", array_of(kind))


_TIME = ("timestamp", "date")
_STRING = ("string",)
_TEXTS = (_STRING, _STRING)

SCALARS: dict[str, Function] = {
    "abs": plain("abs({})", None, NUMBERS),
    "array": array,
    "ceil": whole_of("ceil"),
    "ceiling": whole_of("ceil"),
    "char_length": plain("CAST(length({}) AS INTEGER)", "integer", _STRING),
    "character_length": plain("CAST(length({}) AS INTEGER)", "integer", _STRING),
    "cardinality": size,
    "coalesce": coalesce,
    "concat": concat,
    "concat_ws": concat_ws,
    "contains": plain("contains({}, {})", "boolean", *_TEXTS),
    "date_add": days_added("+"),
    "date_format": date_format,
    "date_sub": days_added("-"),
    "date_trunc": truncated,
    "datediff": days_between,
    "date_diff": days_between,
    "day": plain("CAST(day({}) AS INTEGER)", "integer", _TIME),
    "dayofmonth": plain("CAST(day({}) AS INTEGER)", "integer", _TIME),
    "dayofweek": plain("CAST(dayofweek({}) + 1 AS INTEGER)", "integer", _TIME),
    "dayofyear": plain("CAST(dayofyear({}) AS INTEGER)", "integer", _TIME),
    "element_at": lambda value, key: item(value, key, 1),
    "endswith": plain("ends_with({}, {})", "boolean", *_TEXTS),
    "floor": whole_of("floor"),
    "get_json_object": json_text,
    "greatest": extreme("greatest"),
    "hour": plain("CAST(hour({}) AS INTEGER)", "integer", ("timestamp",)),
    "if": choice,
    "ifnull": coalesce,
    "instr": plain("CAST(instr({}, {}) AS INTEGER)", "integer", *_TEXTS),
    "isnan": plain("isnan({})", "boolean", ("double",)),
    "isnotnull": plain("({} IS NOT NULL)", "boolean", (*ORDERED, "map", "array", "struct")),
    "isnull": plain("({} IS NULL)", "boolean", (*ORDERED, "map", "array", "struct")),
    "last_day": plain("last_day({})", "date", _TIME),
    "lcase": ascii_only("lower"),
    "least": extreme("least"),
    "left": plain("left({}, greatest({}, 0))", "string", _STRING, ("whole",)),
    "length": plain("CAST(length({}) AS INTEGER)", "integer", _STRING),
    "lower": ascii_only("lower"),
    "ltrim": plain("ltrim({}, ' ')", "string", _STRING),
    "map_contains_key": has_key,
    "map_keys": keys("key"),
    "map_values": keys("value"),
    "minute": plain("CAST(minute({}) AS INTEGER)", "integer", ("timestamp",)),
    "month": plain("CAST(month({}) AS INTEGER)", "integer", _TIME),
    "nullif": nullif,
    "nvl": coalesce,
    "nvl2": lambda value, yes, no: choice(Value(f"({value.sql} IS NOT NULL)", "boolean"), yes, no),
    "octet_length": plain("CAST(strlen({}) AS INTEGER)", "integer", _STRING),
    "quarter": plain("CAST(quarter({}) AS INTEGER)", "integer", _TIME),
    "regexp": matches,
    "regexp_extract": extracted,
    "regexp_like": matches,
    "regexp_replace": replaced,
    "replace": plain("replace({}, {}, {})", "string", _STRING, _STRING, _STRING),
    "reverse": plain("reverse({})", "string", _STRING),
    "rlike": matches,
    "round": rounded,
    "rtrim": plain("rtrim({}, ' ')", "string", _STRING),
    "second": plain("CAST(second({}) AS INTEGER)", "integer", ("timestamp",)),
    "size": size,
    "sqrt": plain("(CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END)", "double", NUMBERS),
    "startswith": plain("starts_with({}, {})", "boolean", *_TEXTS),
    "substr": substring,
    "substring": substring,
    "to_date": to_date,
    "try_divide": tried_division,
    "ucase": ascii_only("upper"),
    "unix_micros": plain("epoch_us({})", "long", ("timestamp",)),
    "unix_millis": plain("CAST(floor(epoch_us({}) / 1000) AS BIGINT)", "long", ("timestamp",)),
    "unix_seconds": plain("CAST(floor(epoch_us({}) / 1000000) AS BIGINT)", "long", ("timestamp",)),
    "upper": ascii_only("upper"),
    "weekofyear": plain("CAST(week({}) AS INTEGER)", "integer", _TIME),
    "year": plain("CAST(year({}) AS INTEGER)", "integer", _TIME),
}
"""Functions of one row, by name."""
