"""Rows as the JSON texts that Spark writes for them."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import msgspec

from balog.analytics.embedded.values import Kind, family
from balog.errors import ConfigError

Encoder = Callable[[Any], str]


def encoder_of(kinds: list[Kind]) -> Callable[[tuple[Any, ...]], str]:
    """Return a function from a row to the text of an object with the fields ``c0``, ``c1`` …"""
    parts = [(f'"c{number}":', _encoder(kind)) for number, kind in enumerate(kinds)]

    def encode(row: tuple[Any, ...]) -> str:
        return "{" + ",".join(name + make(value) for (name, make), value in zip(parts, row)) + "}"

    return encode


def _encoder(kind: Kind) -> Encoder:
    name = family(kind)
    if name == "array":
        return _nullable(_array(_encoder(kind["elementType"])))
    if name == "map":
        return _nullable(_map(_encoder(kind["valueType"])))
    if name == "struct":
        return _nullable(_struct([(field["name"], _encoder(field["type"])) for field in kind["fields"]]))
    return _nullable(_SCALARS[name])


def _nullable(make: Encoder) -> Encoder:
    return lambda value: "null" if value is None else make(value)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _double(value: float) -> str:
    """Write a number as Java does: ``1.0E10``, and not-a-number as text."""
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        found = repr(value)
        return found if "e" not in found else f"{value:f}"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
        whole, _, rest = digits.partition(".")
        together = (whole + rest).lstrip("0")
        power = len(whole) - 1 if whole != "0" else -(len(rest) - len(rest.lstrip("0")) + 1)
        mantissa, exponent = f"{sign}{together[0]}.{together[1:].rstrip('0') or '0'}", str(power)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _timestamp(value: Any) -> str:
    if isinstance(value, str):  # DuckDB returns the text of a time that Python has no value for
        raise ConfigError(
            f"the time {value} is outside of the years 1 to 9999, which only --engine spark returns", "SQL"
        )
    return f'"{value.strftime("%Y").zfill(4)}{value.strftime("-%m-%dT%H:%M:%S.%f")}Z"'


def _array(item: Encoder) -> Encoder:
    return lambda value: "[" + ",".join(map(item, value)) + "]"


def _map(item: Encoder) -> Encoder:
    return lambda value: "{" + ",".join(f"{_text(str(key))}:{item(one)}" for key, one in value.items()) + "}"


def _struct(fields: list[tuple[str, Encoder]]) -> Encoder:
    return lambda value: "{" + ",".join(f"{_text(name)}:{make(value[name])}" for name, make in fields) + "}"


_SCALARS: dict[str, Encoder] = {
    "boolean": lambda value: "true" if value else "false",
    "whole": str,
    "double": _double,
    "decimal": str,
    "string": _text,
    "binary": lambda value: _text(base64.b64encode(value).decode()),
    "date": lambda value: f'"{value.isoformat()}"',
    "timestamp": _timestamp,
    "void": _text,
}
