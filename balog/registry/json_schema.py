"""Validates payloads against JSON Schema.

Supports drafts 4, 6, 7, 2019-09 and 2020-12 according to ``$schema``; the default is 2020-12. Every ``format`` that
those drafts define is checked. A ``$ref`` must point into the document itself: nothing is fetched. Patterns use the
syntax of Rust's regex crate and run in linear time, so look-around and back references are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, islice
from math import inf, log
from typing import Any

import msgspec

from balog.common.errors import EventError, MissingExtraError, split_refusal
from balog.event import check_keys
from balog.registry.complexity import Complexity, measure_complexity
from balog.registry.json_compiler import compile_schema
from balog.registry.reasons import describe_error, json_path
from balog.registry.schema import MAX_SCHEMA_BYTES, MAX_SECONDS, TOO_LONG, InvalidSchemaError, SchemaViolation

MAX_VIOLATIONS = 100
_MAX_VALUES = 5_000
_MAX_PATHS = 1_000_000
_MAX_BRANCHED = 1e7  # paths into a payload
_LARGEST_FOR_REFERENCE = 64 << 10  # bytes of a schema; jsonschema needs about a second for it
_DEEPEST = 255  # of jsonschema-rs
_NO_MARKS = bytes(set(range(256)) - set(b'{}[]"'))
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


class JsonValidator:
    """See ``PayloadValidator``.

    Args:
        schema: the schema, decoded or as bytes.
        where: the file or ``TYPE/VERSION``, for errors.

    Attributes:
        document: the decoded schema.
        is_valid: returns whether a decoded payload is valid. Raises ValueError if it is nested deeper than 255 levels.

    Raises:
        InvalidSchemaError: not a JSON Schema, a reference to another document, or a limit exceeded.
    """

    def __init__(self, schema: bytes | Mapping[str, Any], where: str = "") -> None:
        self.document = decode_schema(schema, where) if isinstance(schema, bytes) else dict(schema)
        self._complexity = measure_complexity(self.document, where)
        self._deepest = _deepest(self._complexity)
        worst_of_byte = (self._complexity.place_ns + self._complexity.byte_ns) * 1e-9
        # A payload of fewer bytes cannot take long, whatever is in it.
        self._short = MAX_SECONDS / worst_of_byte - 1 if self._deepest == _DEEPEST else 0
        self._validator: Any = checked_validator(self.document, where)
        self.is_valid: Callable[[Any], bool] = self._validator.is_valid
        self._decode = msgspec.json.Decoder().decode

    def worst_seconds(self, payload: bytes) -> float:
        """See ``PayloadValidator``."""
        complexity = self._complexity
        if self._deepest < _DEEPEST and is_deeper(payload, self._deepest):
            return inf
        return (_count_values(payload) * complexity.place_ns + len(payload) * complexity.byte_ns) * 1e-9

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """See ``PayloadValidator``; returns at most 100 violations.

        For large payloads (thousands of values), validation stops at the first violation. For deep payloads of
        recursive schemas with several branches, the violation has no place: it could be reached in billions of ways.
        """
        if len(payload) >= self._short and self.worst_seconds(payload) > MAX_SECONDS:
            return [SchemaViolation("$", TOO_LONG)]
        try:
            document = self._decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            return [SchemaViolation("$", _malformed(error))]
        except RecursionError:
            return [SchemaViolation("$", "nested too deep")]
        try:
            if self.is_valid(document):
                return []
            values, branches = _count_values(payload), self._complexity.branches
            paths = values * self._complexity.size
            if branches > 1 and paths * branches ** depth_of(payload) > _MAX_PATHS:
                return [SchemaViolation("$", "is not valid")]
            if values > _MAX_VALUES or paths > _MAX_PATHS:
                return [self._first_violation(document)]
            violations = islice(_violations(iter(self._validator.iter_errors(document))), MAX_VIOLATIONS)
            return list(dict.fromkeys(violations))
        except (ValueError, RecursionError):  # jsonschema-rs goes 255 deep
            return [SchemaViolation("$", "nested too deep")]

    def _first_violation(self, document: Any) -> SchemaViolation:
        import jsonschema_rs

        try:
            self._validator.validate(document)
        except jsonschema_rs.ValidationError as error:
            return SchemaViolation(json_path(error.instance_path), f"{describe_error(error)} (there may be more)")
        raise AssertionError("the payload is not valid")


def _deepest(complexity: Complexity) -> int:
    """Return how many levels of a payload can be checked in bounded time."""
    if complexity.branches < 2:
        return _DEEPEST
    return max(1, int(log(_MAX_BRANCHED / complexity.size, complexity.branches)))


def checked_validator(document: Any, where: str = "") -> Any:
    """Compile a schema.

    Raises:
        InvalidSchemaError: it is not valid; the error has the path and the reason.
    """
    import jsonschema_rs

    try:
        return compile_schema(document)
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchemaError(_rejection(error), where, json_path(error.instance_path)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"not a JSON Schema: {split_refusal(error)[0]}", where) from None


def _count_values(payload: bytes) -> int:
    """Return an upper bound of the number of values in a payload."""
    return payload.count(b",") + payload.count(b"{") + payload.count(b"[") + 1


def decode_schema(source: bytes, where: str = "") -> dict[str, Any]:
    """Decode a JSON Schema. ``true`` becomes ``{}``, ``false`` becomes ``{"not": {}}``.

    Raises:
        InvalidSchemaError: the document is not a JSON object, or too large.
    """
    if len(source) > MAX_SCHEMA_BYTES:
        raise InvalidSchemaError(f"larger than {MAX_SCHEMA_BYTES >> 20} MiB", where)
    try:
        document = msgspec.json.decode(source.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidSchemaError(_malformed(error), where) from None
    except RecursionError:
        raise InvalidSchemaError("nested too deep", where) from None
    if isinstance(document, bool):
        return {} if document else {"not": {}}
    if not isinstance(document, dict):
        raise InvalidSchemaError("not a JSON Schema: expected an object, true or false", where)
    return document


def check_document(source: bytes, where: str) -> Any:
    """Check that each key is there once, and with jsonschema that other validators can read a schema, too.

    Returns:
        The type that the schema declares for ``cls_type``; None if it declares none.

    Raises:
        InvalidSchemaError: a key is duplicate, or the schema breaks its meta-schema.
        MissingExtraError: jsonschema is not installed.
    """
    try:
        document = check_keys(source.removeprefix(b"\xef\xbb\xbf"))
    except EventError as error:
        raise InvalidSchemaError(error.reason, where, error.path) from None
    if len(source) <= _LARGEST_FOR_REFERENCE:
        try:
            from jsonschema import Draft202012Validator, SchemaError
            from jsonschema.validators import validator_for
        except ImportError:
            raise MissingExtraError("checking a JSON Schema", "schema") from None
        try:
            validator_for(document, default=Draft202012Validator).check_schema(document)
        except SchemaError as error:
            raise InvalidSchemaError(f"not a JSON Schema: {error.message:.200}", where, error.json_path) from None
    try:
        return document["properties"]["cls_type"].get("const")
    except (AttributeError, KeyError, TypeError):
        return None


def _violations(errors: Iterator[Any]) -> Iterator[SchemaViolation]:
    for error in errors:
        yield SchemaViolation(json_path(error.instance_path), describe_error(error))
        yield from _violations(iter(_nearest(error) or ()))


def describe_violation(error: Any) -> tuple[list[str | int], str]:
    """Return the steps to the deepest place of an error, and the reason there."""
    while (near := _nearest(error)) is not None:
        error = near[0]
    return list(error.instance_path), describe_error(error)


def _nearest(error: Any) -> list[Any] | None:
    """Return the errors of the alternative that the value matches best; None if no alternative matches in type."""
    if error.kind.name not in ("anyOf", "oneOf"):
        return None
    context = getattr(error.kind, "context", None) or []
    depth = len(error.instance_path)
    near: list[list[Any]] = [
        group
        for group in context
        if group and not any(len(e.instance_path) == depth and e.kind.name in ("type", "const", "enum") for e in group)
    ]
    return min(near, key=len) if near else None


def _rejection(error: Any) -> str:
    """Return why a document is not a JSON Schema."""
    if error.kind.name == "format":
        return "is not a valid pattern in Rust's syntax, which has no look-around and no back reference"
    if error.kind.name == "$ref" and "is not present in a registry" in error.message:
        return f"a $ref must lead into the document itself, since nothing is fetched: {describe_error(error)}"
    return f"not a JSON Schema: {describe_error(error)}"


def _malformed(error: Exception) -> str:
    return f"not JSON: {split_refusal(error)[0]}"


def is_deeper(document: bytes, limit: int) -> bool:
    """Return whether JSON has more than ``limit`` objects and arrays inside each other."""
    return document.count(b"{") + document.count(b"[") > limit and depth_of(document) > limit


def depth_of(document: bytes) -> int:
    """Return how many objects and arrays JSON has inside each other."""
    if b"\\" in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = document.translate(None, _NO_MARKS)
    outside = b"".join(marks.split(b'"')[::2])  # every second part lies between two strings
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0)
