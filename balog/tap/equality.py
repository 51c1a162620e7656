"""When two values are one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["same"]


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: 1 is 1.0, and neither is true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(item, other[name]) for name, item in one.items())
    return bool(one == other)
