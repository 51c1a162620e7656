"""Names of a package that are imported when somebody asks for them: nobody else pays for what they bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["deferred"]


def deferred(namespace: dict[str, Any], homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a package's ``__getattr__`` (PEP 562).

    Args:
        namespace: the package's ``globals()``, where a name stays once it was asked for.
        homes: the module that each name comes from.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(homes[name]), name)
        return value

    return get
