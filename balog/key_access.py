"""Structs that also read as the dict of their JSON form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

__all__ = ["KeyAccess"]


class KeyAccess:
    """Reads the fields of a struct by the keys of its JSON form, ``event["header"]["channel"]``, as of a dict."""

    __slots__ = ()

    def keys(self) -> tuple[str, ...]:
        """Return the keys that are set."""
        fields = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)  # type: ignore[attr-defined]
        return tuple(key for key, name in fields if getattr(self, name) is not UNSET)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key; the default if there is none."""
        try:
            return self[key]
        except KeyError:
            return default

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())
