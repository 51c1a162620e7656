"""The config of rules for records, which their schemas follow: ``records`` of a broker's config."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from balog.broker.records.paths import parse_path
from balog.common.secrets import Secret

Stream = Annotated[str, Meta(min_length=1, max_length=1000, description="The stream's name, or a pattern with * ? [].")]
Property = Annotated[str, Meta(min_length=1, max_length=1000)]
Path = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1000,
        description="A property; dots lead into objects, and into each item of an array; \\. is a dot in a name.",
    ),
]


class Sha256(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="how", tag="sha256"):
    """HMAC-SHA-256 of the value, 64 hexadecimal digits: equal values stay equal, and only the key's owner can guess."""

    key: Annotated[Secret, Meta(description="The key, 16 bytes or more.")]


class Redact(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="how", tag="redact"):
    """Replace a text by a constant text; any other value becomes null."""

    text: Annotated[str, Meta(max_length=1000, description="The constant.")] = "[redacted]"


AnyMask = Sha256 | Redact | Literal["md5", "redact", "null"]
"""How a value is masked; ``md5`` is weak: anyone who can guess values can verify them."""


class RecordRule(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Changes of a stream's records and schema, in the order of these fields.

    The filter comes first and sees the original record, so that only kept records cost further work.
    ``set`` sees unmasked values, and its results can be masked. All names, except the new ones of ``rename``, are those
    of the original record. Several rules for a stream apply in turn, each to the output of the previous one.
    """

    examples: ClassVar = (
        {
            "stream": "orders",
            "filter": "amount > 0",
        },
        {
            "stream": "users*",
            "set": {"region": "eu", "name": {"expr": "upper(name)"}},
            "mask": {"email": {"how": "sha256", "key": {"env": "MASK_KEY"}}, "phone": "redact"},
            "drop": ["password"],
            "rename": {"mail": "email"},
        },
    )

    stream: Stream
    filter: Annotated[str, Meta(description="Keeps the records for which this expression is true.")] | None = None
    set: Annotated[
        dict[Property, Any], Meta(description='Constants, or {"expr": "…"} over the record, by property.')
    ] = {}
    mask: Annotated[dict[Path, AnyMask], Meta(description="How to mask each property.")] = {}
    drop: Annotated[list[Path], Meta(description="Properties to remove.")] = []
    rename: Annotated[dict[Path, Property], Meta(description="New names by property; a nested one stays nested.")] = {}

    def __post_init__(self) -> None:
        for path in (*self.mask, *self.drop, *self.rename):
            parse_path(path)
