"""JSON Schema: a document compiled once, and what a payload has wrong by it.

Drafts 4, 6, 7, 2019-09 and 2020-12, as ``$schema`` says; 2020-12 where it does not. Every ``format`` that those drafts
define is checked. A ``$ref`` leads into the document itself: nothing is fetched. Patterns run in time linear in the
text (the regex crate's syntax), so look-around and back references are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from balog.errors import MissingExtraError, complain, split_refusal
from balog.registry import worker_pool
from balog.registry.complexity import measure_complexity
from balog.registry.json_compiler import compile_schema
from balog.registry.nesting import is_deeper
from balog.registry.reasons import describe_error, json_path, shorten
from balog.registry.schema import MAX_SCHEMA_BYTES, InvalidSchemaError, Schema, SchemaViolation
from balog.registry.subschemas import copy_schema
from balog.registry.worker_pool import MAX_SECONDS, check_apart

if TYPE_CHECKING:
    from balog.registry.reference import ReferenceValidator

__all__ = ["JsonValidator", "decode_schema"]

MAX_FAULTS = 100
_MAX_PLACES = 5_000
_MAX_WAYS = 1_000_000
_SLOWER = 100.0  # jsonschema
_MAX_BRANCHED = 12  # levels of a payload, by a schema that branches within itself


class JsonValidator:
    """See ``PayloadValidator``.

    Args:
        schema: the document, or its bytes.
        where: its file or ``TYPE/VERSION``, for errors.

    Attributes:
        document: the schema.
        is_valid: tells of a payload, as JSON decodes it, no more than that; raises ValueError where it is nested deeper
            than 255.

    Raises:
        InvalidSchemaError: it is no JSON Schema, refers to other documents, or is beyond what is bounded.
        MissingExtraError: neither jsonschema-rs nor jsonschema is installed.
    """

    def __init__(self, schema: bytes | Mapping[str, Any], where: str = "") -> None:
        self.document = decode_schema(schema, where) if isinstance(schema, bytes) else dict(schema)
        self._source = schema if isinstance(schema, bytes) else msgspec.json.encode(self.document)
        self._unfolding = measure_complexity(self.document, where)
        self._searcher: Any = None
        self._reference = _reference_alone(self.document, where)
        self._validator: Any = None if self._reference is not None else _validator(self.document, where)
        judge: Any = self._reference or self._validator
        self.is_valid: Callable[[Any], bool] = judge.is_valid
        self._decode = msgspec.json.Decoder().decode

    def worst_seconds(self, payload: bytes) -> float:
        """See ``PayloadValidator``."""
        unfolding = self._unfolding
        if self._reference is not None and (unfolding.byte_ns or unfolding.is_branching):
            return inf  # Python's patterns may take exponential time
        if unfolding.is_branching and is_deeper(payload, _MAX_BRANCHED):
            return inf
        slower = 1.0 if self._reference is None else _SLOWER
        return (_places(payload) * unfolding.place_ns + len(payload) * unfolding.byte_ns) * 1e-9 * slower

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """See ``PayloadValidator``; at most 100 faults.

        For large payloads (thousands of values) and schemas that branch within themselves, validation stops at the
        first error: a small payload could have many billions of ways to its errors.
        """
        if worker_pool.is_worker or self.worst_seconds(payload) <= MAX_SECONDS:
            return self.check_here(payload)
        return check_apart(Schema("", "", "json", self._source), payload)

    def check_here(self, payload: bytes) -> list[SchemaViolation]:
        """Check in this process, however long it takes."""
        try:
            document = self._decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            return [SchemaViolation("$", _malformed(error))]
        except RecursionError:
            return [SchemaViolation("$", "nested too deep")]
        try:
            if self._reference is not None:
                return self._reference.faults(document, MAX_FAULTS)
            if self.is_valid(document):
                return []
            places = _places(payload)
            if self._unfolding.is_branching or places > _MAX_PLACES or places * self._unfolding.size > _MAX_WAYS:
                return [self._first(document)]
            found = islice(_faults(iter(self._validator.iter_errors(document))), MAX_FAULTS)
            return list(dict.fromkeys(found))
        except (ValueError, RecursionError):  # jsonschema-rs goes 255 deep
            return [SchemaViolation("$", "nested too deep")]

    def _first(self, document: Any) -> SchemaViolation:
        """Give one fault, by a schema whose choices are not looked into."""
        import jsonschema_rs

        if self._searcher is None:
            self._searcher = compile_schema(_without_reasons(self.document))
        try:
            self._searcher.validate(document)
        except jsonschema_rs.ValidationError as error:
            return SchemaViolation(json_path(error.instance_path), f"{describe_error(error)} (there may be more)")
        return SchemaViolation("$", "is not valid")


def _reference_alone(document: Any, where: str) -> ReferenceValidator | None:
    """Return jsonschema's validator where jsonschema-rs is not installed, else None.

    Raises:
        MissingExtraError: neither is installed.
    """
    try:
        import jsonschema_rs  # noqa: F401
    except ImportError:
        pass
    else:
        return None
    from balog.registry.reference import ReferenceValidator

    try:
        found = ReferenceValidator(document, where)
    except ImportError:
        raise MissingExtraError("validating by JSON Schema", "schema") from None
    _complain_once()
    return found


@lru_cache(maxsize=1)
def _complain_once() -> None:
    complain(
        "jsonschema-rs is not installed, so jsonschema validates: some hundred times slower, and with fewer formats"
    )


def _validator(document: Any, where: str) -> Any:
    import jsonschema_rs

    try:
        return compile_schema(document)
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchemaError(_refusal(error, document), where, json_path(error.instance_path)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"not a JSON Schema: {split_refusal(error)[0]}", where) from None


def _places(payload: bytes) -> int:
    """Return how many values a payload has at most."""
    return payload.count(b",") + payload.count(b"{") + payload.count(b"[") + 1


def _without_reasons(document: dict[str, Any]) -> Any:
    """Give the same schema with choices that say only whether one of them fits: a ``not`` tells nothing of its inside.

    What a schema evaluates would not be known outside of a ``not``, so one that asks for that says nothing at all.
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
    """Read a document that should be a JSON Schema; ``true`` as ``{}``, ``false`` as ``{"not": {}}``.

    Raises:
        InvalidSchemaError: it is no JSON object, or too large.
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
        raise InvalidSchemaError("not a JSON Schema: want an object, true or false", where)
    return document


def _faults(errors: Iterator[Any]) -> Iterator[SchemaViolation]:
    for error in errors:
        yield SchemaViolation(json_path(error.instance_path), describe_error(error))
        yield from _nearest(error)


def _nearest(error: Any) -> Iterator[SchemaViolation]:
    """Give what is wrong by that alternative of a choice which the value comes nearest to, if it comes near to one."""
    if error.kind.name not in ("anyOf", "oneOf"):
        return
    context = getattr(error.kind, "context", None) or []
    depth = len(error.instance_path)
    near: list[list[Any]] = [
        group
        for group in context
        if group and not any(len(e.instance_path) == depth and e.kind.name in ("type", "const", "enum") for e in group)
    ]
    if near:
        fewest = min(len(group) for group in near)
        yield from _faults(iter(next(group for group in near if len(group) == fewest)))


def _refusal(error: Any, document: Any) -> str:
    """Say why a document is no JSON Schema; here its values may be said."""
    name, message = error.kind.name, str(error.message)
    if message.startswith("Unknown meta-schema"):
        return "$schema is none of the drafts 4, 6, 7, 2019-09 and 2020-12"
    if message.startswith("Pointer "):
        return f"$ref #{shorten(message.split(chr(39))[1])} leads nowhere"
    if " is not present in a registry" in message:
        said = shorten(message.split(chr(39))[1])
        return f"$ref {said} leads out of the document, and to no registered type such as ../order/1.0.0.json"
    if name == "format" and "regex" in message:
        for step in error.instance_path:
            document = document[step] if isinstance(document, (dict, list)) and step in _keys(document) else step
        pattern = document if isinstance(document, str) else error.instance_path[-1]
        return f"{shorten(str(pattern))} is no pattern that runs in linear time: no look-around, no back reference"
    if name in ("anyOf", "oneOf"):
        return "not a JSON Schema: what is here is no value that the keyword takes"
    return f"not a JSON Schema: {describe_error(error)}"


def _keys(node: Any) -> Any:
    return node if isinstance(node, dict) else range(len(node))


def _malformed(error: Exception) -> str:
    return f"not JSON: {split_refusal(error)[0]}"
