"""What a config may say about records and their schemas: ``records`` and ``schemas`` of a broker's config."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from balog.broker.records.paths import parse_path
from balog.secrets import Secret

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


class Md5(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="how", tag="md5"):
    """MD5 of the value, 32 hexadecimal digits. Weak: who can guess values can try them, unless there is a key."""

    key: Annotated[Secret, Meta(description="A key, 16 bytes or more, for HMAC-MD5.")] | None = None


class Redact(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="how", tag="redact"):
    """A constant text in the place of a text; anything else becomes null."""

    text: Annotated[str, Meta(max_length=1000, description="The constant.")] = "[redacted]"


class Partial(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="how", tag="partial"):
    """Only the ends of a text, or of a number's digits, stay; one that is no longer than those ends is masked whole."""

    first: Annotated[int, Meta(ge=0, le=1000, description="Characters that stay at the beginning.")] = 0
    last: Annotated[int, Meta(ge=0, le=1000, description="Characters that stay at the end.")] = 0
    fill: Annotated[str, Meta(min_length=1, max_length=100, description="What stands for the rest.")] = "***"

    def __post_init__(self) -> None:
        if not self.first and not self.last:
            raise ValueError('partial keeps the "first" or the "last" characters; to keep none there is "redact"')


AnyMask = Sha256 | Md5 | Redact | Partial | Literal["md5", "redact", "null"]
"""How a value is masked; a word is short for the struct without options."""


class Flatten(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Properties of nested objects become properties of the record, ``address__city``."""

    separator: Annotated[str, Meta(min_length=1, max_length=20, description="What joins the names.")] = "__"
    max_depth: Annotated[int, Meta(ge=1, le=100, description="Objects inside objects that are opened.")] = 10


class Sample(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A part of the records. Without a seed the same record is always in, or always out."""

    rate: Annotated[float, Meta(ge=0, le=1, description="The part that stays, 0 to 1.")]
    by: Annotated[list[Path], Meta(description="Properties that decide; the stream's key properties by default.")] = []
    seed: Annotated[int, Meta(description="Decide by chance, the same in each run that has this seed.")] | None = None

    def __post_init__(self) -> None:
        if self.by and self.seed is not None:
            raise ValueError('"by" decides by the record and "seed" by chance; give one of them')
        for path in self.by:
            parse_path(path)


class RecordRule(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What happens to the records of a stream, and to its schema; the order is that of the fields here.

    Filter, sample and throttle come first, so that the work that follows is spent on records that stay; they see a
    record as it came. ``set`` sees it unmasked, and what it sets can be masked. All names but the new ones of
    ``rename`` are the names that the record comes with. Of several rules for a stream each works on what the one
    before it gave.
    """

    stream: Stream
    filter: Annotated[str, Meta(description="Keeps the records for which this expression is true.")] | None = None
    sample: Sample | None = None
    throttle: (
        Annotated[float, Meta(gt=0, description="Records a second at most; the whole pipe is slowed down.")] | None
    ) = None
    set: Annotated[
        dict[Property, Any], Meta(description='Constants, or {"expr": "…"} over the record, by property.')
    ] = {}
    mask: Annotated[dict[Path, AnyMask], Meta(description="How each property's value is hidden.")] = {}
    drop: Annotated[list[Path], Meta(description="Properties that don't go on.")] = []
    rename: Annotated[dict[Path, Property], Meta(description="New names by property; a nested one stays nested.")] = {}
    flatten: Flatten | None = None
    allow_key_change: Annotated[
        bool, Meta(description="Let key properties be dropped, set, or masked so that rows can't be told apart.")
    ] = False

    def __post_init__(self) -> None:
        for path in (*self.mask, *self.drop, *self.rename):
            parse_path(path)


class SchemaRule(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What is added to a stream's schema, after the rules for its records have changed it."""

    stream: Stream
    set: Annotated[dict[str, Any], Meta(description="A JSON merge patch (RFC 7396) on the schema; null removes.")] = {}
    from_records: Annotated[
        bool, Meta(description="A record with a property that the schema does not have sends a new SCHEMA ahead.")
    ] = False
    max_new: Annotated[int, Meta(ge=1, le=10_000, description="Properties that records may add, a stream.")] = 100
