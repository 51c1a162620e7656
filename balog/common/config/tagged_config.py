"""Configs whose field ``type`` names their struct in a registry, so that only the structs in use are imported."""

from __future__ import annotations

from typing import Any, Union

import msgspec
from msgspec import Struct

from balog.common.errors import BalogError


class TaggedConfig:
    """Base of the structs of one registry. A field of this type takes each of them; see :func:`convert`."""

    __slots__ = ()

    @classmethod
    def known_tags(cls) -> list[str]:
        """Return the names of all structs, sorted, without importing them."""
        raise NotImplementedError

    @classmethod
    def struct_of(cls, tag: str) -> type[Struct]:
        """Import a struct.

        Raises:
            KeyError: there is no such name.
            BalogError: the plug-in of that name cannot be used.
        """
        raise NotImplementedError


def convert(document: Any, type: Any) -> Any:
    """Convert plain data as ``msgspec.convert`` does, with ``TaggedConfig`` fields.

    Raises:
        msgspec.ValidationError: the document does not match. Inside a tagged config, the path begins at that config.
    """
    return msgspec.convert(document, type, dec_hook=decode_tagged)


def decode_tagged(kind: Any, value: Any) -> Any:
    """Convert the data of one tagged config: the ``dec_hook`` of msgspec's decoders."""
    if not issubclass(kind, TaggedConfig):
        raise NotImplementedError(kind)
    if not isinstance(value, dict):
        return msgspec.convert(value, dict)
    if "type" not in value:
        raise msgspec.ValidationError("Object missing required field `type`")
    tag = msgspec.convert({"type": value["type"]}, _Tag).type
    try:
        struct = kind.struct_of(tag)
    except KeyError:
        raise msgspec.ValidationError(f"Invalid value {tag!r} - at `$.type`") from None
    except BalogError as error:
        raise msgspec.ValidationError(str(error)) from None
    return msgspec.convert(value, struct)


class _Tag(Struct):
    type: str


def union_of(kind: type[TaggedConfig]) -> Any:
    """Return the union of all structs of a registry that can be imported, for a JSON Schema."""
    return Union[tuple(kind.struct_of(tag) for tag in kind.known_tags())]  # noqa: UP007
