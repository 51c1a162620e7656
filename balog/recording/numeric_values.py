"""Values of numpy, pandas and pyarrow as Python's, without an import of these libraries."""

from __future__ import annotations

import re
from typing import Any

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
    found = _UNIT.search(value.dtype.str)
    if found is None or found[2] not in _NANOSECONDS:
        return text
    return timedelta_text(int(value.astype("int64")) * int(found[1] or 1) * _NANOSECONDS[found[2]])


def rows_of(value: Any, limit: int) -> tuple[list[Any], int]:
    """Return the first rows of an array, a series or a frame, with about ``limit`` values in all, and its length.

    A frame's rows are dicts. Rows of more than ``limit`` values are arrays, to be cut on their own.
    """
    total = len(value)
    width = _width(value, total)
    first = getattr(value, "iloc", value)[: max(1, limit // max(1, width))]
    if hasattr(first, "to_dict") and hasattr(first, "columns"):  # a frame of pandas
        names = [str(name) for name in first.columns]
        return [dict(zip(names, row, strict=True)) for row in first.itertuples(index=False, name=None)], total
    if hasattr(first, "to_pylist") and hasattr(first, "column_names"):
        return first.to_pylist(), total
    if width <= limit and getattr(getattr(first, "dtype", None), "kind", "O") in "biufUSc":
        return first.tolist(), total
    return list(first), total


def _width(value: Any, total: int) -> int:
    """Return the number of values in a row."""
    size = getattr(value, "size", None)
    if isinstance(size, int) and total:
        return size // total
    return getattr(value, "num_columns", 1) or 1
