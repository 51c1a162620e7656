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

from balog.common.errors import split_refusal
from balog.registry.complexity import Complexity, measure_complexity
from balog.registry.json_compiler import compile_schema
from balog.registry.reasons import describe_error, json_path, shorten
from balog.registry.schema import MAX_SCHEMA_BYTES, MAX_SECONDS, TOO_LONG, InvalidSchemaError, SchemaViolation
from balog.registry.subschemas import copy_schema

MAX_VIOLATIONS = 100
_MAX_VALUES = 5_000
_MAX_PATHS = 1_000_000
_MAX_BRANCHED = 1e7  # paths into a payload
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
        self._searcher: Any = None
        self._deepest = _deepest(self._complexity)
        worst_of_byte = (self._complexity.place_ns + self._complexity.byte_ns) * 1e-9
        # A payload of fewer bytes cannot take long, whatever is in it.
        self._short = MAX_SECONDS / worst_of_byte - 1 if self._deepest == _DEEPEST else 0
        self._validator: Any = _validator(self.document, where)
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

        For large payloads (thousands of values) and recursive schemas with several branches, validation stops at the
        first violation: a small payload could reach its violations in billions of ways.
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
            values = _count_values(payload)
            if self._complexity.branches > 1 or values > _MAX_VALUES or values * self._complexity.size > _MAX_PATHS:
                return [self._first_violation(document)]
            found = islice(_violations(iter(self._validator.iter_errors(document))), MAX_VIOLATIONS)
            return list(dict.fromkeys(found))
        except (ValueError, RecursionError):  # jsonschema-rs goes 255 deep
            return [SchemaViolation("$", "nested too deep")]

    def _first_violation(self, document: Any) -> SchemaViolation:
        """Return one violation, without looking into the alternatives of ``anyOf`` and ``oneOf``."""
        import jsonschema_rs

        if self._searcher is None:
            self._searcher = compile_schema(_without_reasons(self.document))
        try:
            self._searcher.validate(document)
        except jsonschema_rs.ValidationError as error:
            return SchemaViolation(json_path(error.instance_path), f"{describe_error(error)} (there may be more)")
        return SchemaViolation("$", "is not valid")


def _deepest(complexity: Complexity) -> int:
    """Return how many levels of a payload can be checked in bounded time."""
    if complexity.branches < 2:
        return _DEEPEST
    return max(1, int(log(_MAX_BRANCHED / complexity.size, complexity.branches)))


def _validator(document: Any, where: str) -> Any:
    import jsonschema_rs

    try:
        return compile_schema(document)
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchemaError(_rejection(error, document), where, json_path(error.instance_path)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"not a JSON Schema: {split_refusal(error)[0]}", where) from None


def _count_values(payload: bytes) -> int:
    """Return an upper bound of the number of values in a payload."""
    return payload.count(b",") + payload.count(b"{") + payload.count(b"[") + 1


def _without_reasons(document: dict[str, Any]) -> Any:
    """Return an equivalent schema whose errors do not describe alternatives: each ``anyOf`` is inside a double ``not``.

    A ``not`` hides which members its schema evaluates, so a schema with ``unevaluated…`` becomes ``{}``.
    """
    try:
        if b'"unevaluated' not in msgspec.json.encode(document):
            wrapped = copy_schema(document, _without_choices)
            compile_schema(wrapped)  # a reference may lead to what has another place now
            return wrapped
    except ValueError:
        pass
    return {}


def _without_choices(schema: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    choices = [{"not": {"not": {name: schema.pop(name)}}} for name in ("anyOf", "oneOf") if name in original]
    return {**schema, "allOf": [*schema.get("allOf", []), *choices]} if choices else schema


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


def _violations(errors: Iterator[Any]) -> Iterator[SchemaViolation]:
    for error in errors:
        yield SchemaViolation(json_path(error.instance_path), describe_error(error))
        yield from _nearest_alternative(error)


def describe_violation(error: Any) -> tuple[list[str | int], str]:
    """Return the steps to the deepest place of an error, and the reason there."""
    while (near := _nearest(error)) is not None:
        error = near[0]
    return list(error.instance_path), describe_error(error)


def _nearest_alternative(error: Any) -> Iterator[SchemaViolation]:
    """Yield the violations of the alternative that the value matches best, if one matches in type."""
    if (near := _nearest(error)) is not None:
        yield from _violations(iter(near))


def _nearest(error: Any) -> list[Any] | None:
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


def _rejection(error: Any, document: Any) -> str:
    """Return why a document is not a JSON Schema. The reason may contain values of the schema."""
    name, message = error.kind.name, str(error.message)
    if message.startswith("Unknown meta-schema"):
        return "$schema is none of the drafts 4, 6, 7, 2019-09 and 2020-12"
    if message.startswith("Pointer "):
        return f"$ref #{shorten(message.split(chr(39))[1])} leads nowhere"
    if " is not present in a registry" in message:
        reference = shorten(message.split(chr(39))[1])
        return f"$ref {reference} leads out of the document, and to no registered type such as ../order/1.0.0.json"
    if name == "format" and "regex" in message:
        for step in error.instance_path:
            document = document[step] if isinstance(document, (dict, list)) and step in _keys(document) else step
        pattern = document if isinstance(document, str) else error.instance_path[-1]
        return f"{shorten(str(pattern))} is no pattern that runs in linear time: no look-around, no back reference"
    if name in ("anyOf", "oneOf"):
        return "not a JSON Schema: the value is not valid for the keyword"
    return f"not a JSON Schema: {describe_error(error)}"


def _keys(node: Any) -> Any:
    return node if isinstance(node, dict) else range(len(node))


def _malformed(error: Exception) -> str:
    return f"not JSON: {split_refusal(error)[0]}"


def is_deeper(document: bytes, limit: int) -> bool:
    """Return whether JSON has more than ``limit`` objects and arrays inside each other."""
    if document.count(b"{") + document.count(b"[") <= limit:
        return False
    if b"\\" in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = document.translate(None, _NO_MARKS)
    outside = b"".join(marks.split(b'"')[::2])  # every second part lies between two strings
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0) > limit
