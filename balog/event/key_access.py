"""Structs that also read as the dict of their JSON form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from typing_extensions import Self


class KeyAccess:
    """Gives access to a struct's fields by the keys of its JSON form, as in a dict: ``event["header"]["channel"]``.

    Values may be replaced; no other key can be added, and none removed.
    """

    __slots__ = ()

    def keys(self) -> tuple[str, ...]:
        """Return the keys that are set."""
        fields = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)  # type: ignore[attr-defined]
        return tuple(key for key, name in fields if getattr(self, name) is not UNSET)

    def values(self) -> tuple[Any, ...]:
        """Return the values of the keys that are set."""
        return tuple(self[key] for key in self.keys())

    def items(self) -> tuple[tuple[str, Any], ...]:
        """Return the keys that are set, with their values."""
        return tuple((key, self[key]) for key in self.keys())

    def update(self, values: Mapping[str, Any]) -> None:
        """Replace the values of keys."""
        for key, value in dict(values).items():
            self[key] = value

    def copy(self) -> Self:
        """Return a copy that shares the values, as that of a dict does."""
        return copy(self)

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

    def __setitem__(self, key: str, value: Any) -> None:
        keys: tuple[str, ...] = self.__struct_encode_fields__  # type: ignore[attr-defined]
        if key not in keys:
            raise KeyError(f"{key!r}; {type(self).__name__} has {', '.join(keys)}")
        setattr(self, key, value)

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())
