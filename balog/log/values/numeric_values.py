"""Values of numpy, pandas and pyarrow as Python's, without an import of these libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from balog.common.duplicate_keys import unused_key

_UNIT = re.compile(r"\[(\d*)(\w+)\]")
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_NANOSECONDS |= {"D": 86400 * 10**9, "W": 7 * 86400 * 10**9}
_DAY = 86400 * 10**9


def timedelta_text(nanoseconds: int) -> str:
    """Return a duration as ISO 8601, in the form that msgspec writes: ``P1DT0.000001S``."""
    days, rest = divmod(abs(nanoseconds), _DAY)
    seconds, fraction = divmod(rest, 10**9)
    text = "-P" if nanoseconds < 0 else "P"
    if days or not rest:
        text += f"{days}D"
    if rest:
        digits = f".{fraction:09d}".rstrip("0").rstrip(".")
        text += f"T{seconds}{digits}S"
    return text


def item_of_numpy(value: Any) -> Any:
    """Return the Python value of a scalar of numpy; a record as a dict, and a number that Python lacks as text."""
    plain = value.item()
    if type(plain) is type(value):
        return str(value)
    names = value.dtype.names
    return plain if names is None else {name: value[name] for name in names}


def time_of_numpy(value: Any) -> Any:
    """Return a ``datetime64`` as an ISO 8601 text; None for ``NaT``."""
    text = str(value)
    return None if text == "NaT" else text


def duration_of_numpy(value: Any) -> Any:
    """Return a ``timedelta64`` as an ISO 8601 text; None for ``NaT``."""
    text = str(value)
    if text == "NaT":
        return None
    match = _UNIT.search(value.dtype.str)
    if match is None or match[2] not in _NANOSECONDS:
        return text
    return timedelta_text(int(value.astype("int64")) * int(match[1] or 1) * _NANOSECONDS[match[2]])


class Rows(NamedTuple):
    """The first rows of an array, a series or a frame.

    Attributes:
        total: the number of all rows.
        has_same_names: whether a number was added to the name of a column, because another one has it.
    """

    rows: list[Any]
    total: int
    has_same_names: bool = False


def rows_of(value: Any, limit: int) -> Rows:
    """Return the first rows of an array, a series or a frame, with about ``limit`` values in all.

    A frame's rows are dicts. Rows of more than ``limit`` values are arrays, to be cut on their own.
    """
    total = len(value)
    width = _width(value, total)
    first = getattr(value, "iloc", value)[: max(1, limit // max(1, width))]
    if hasattr(first, "to_dict") and hasattr(first, "columns"):  # a frame of pandas
        return _named_rows(first.columns, first.itertuples(index=False, name=None), total)
    if hasattr(first, "to_pylist") and hasattr(first, "column_names"):
        return _named_rows(first.column_names, zip(*map(_values_of_arrow, first.columns), strict=True), total)
    if width <= limit and getattr(getattr(first, "dtype", None), "kind", "O") in "biufUSc":
        return Rows(first.tolist(), total)
    return Rows(list(first), total)


def _named_rows(columns: Iterable[Any], rows: Iterable[Any], total: int) -> Rows:
    names = list(map(str, columns))
    unique = unique_names(names)
    return Rows([dict(zip(unique, row, strict=True)) for row in rows], total, unique != names)


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names, with a number added to each that is there already."""
    unique: dict[str, None] = {}
    for name in names:
        unique[unused_key(name, unique)] = None
    return list(unique)


def _values_of_arrow(column: Any) -> Any:
    try:
        return column.to_pylist()
    except Exception:  # a value that Python lacks, such as the year 10000; each is converted on its own
        return list(column)


def _width(value: Any, total: int) -> int:
    """Return the number of values in a row."""
    size = getattr(value, "size", None)
    if isinstance(size, int) and total:
        return size // total
    return getattr(value, "num_columns", 1) or 1
