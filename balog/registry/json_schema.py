"""JSON Schema: a document compiled once, and what a payload has wrong by it.

Drafts 4, 6, 7, 2019-09 and 2020-12, as ``$schema`` says; 2020-12 where it does not. Every ``format`` that those drafts
define is checked. A ``$ref`` leads into the document itself: nothing is fetched. Patterns run in time linear in the
text (the regex crate's syntax), so look-around and back references are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from balog.errors import MissingExtraError, complain, split_refusal
from balog.registry import worker_pool
from balog.registry.nesting import is_deeper
from balog.registry.pattern_size import MAX_PATTERN_BYTES
from balog.registry.schema import MAX_SCHEMA_BYTES, Fault, Schema, SchemaError
from balog.registry.unfolding import unfold
from balog.registry.worker_pool import MAX_SECONDS, check_apart

if TYPE_CHECKING:
    from balog.registry.reference import ReferenceValidator

__all__ = ["JsonValidator", "decode_schema", "json_path", "reason_of", "second_opinion"]

MAX_FAULTS = 100
_MAX_PLACES = 5_000
_MAX_WAYS = 1_000_000
_MAX_SAID = 100
_SLOWER = 100.0  # jsonschema
_MAX_BRANCHED = 12  # levels of a payload, by a schema that branches within itself


class JsonValidator:
    """See ``Validator``.

    Args:
        schema: the document, or its bytes.
        where: its file or ``TYPE/VERSION``, for errors.

    Attributes:
        document: the schema.
        is_valid: tells of a payload, as JSON decodes it, no more than that; raises ValueError where it is nested deeper
            than 255.

    Raises:
        SchemaError: it is no JSON Schema, refers to other documents, or is beyond what is bounded.
        MissingExtraError: neither jsonschema-rs nor jsonschema is installed.
    """

    def __init__(self, schema: bytes | Mapping[str, Any], where: str = "") -> None:
        self.document = decode_schema(schema, where) if isinstance(schema, bytes) else dict(schema)
        self._source = schema if isinstance(schema, bytes) else msgspec.json.encode(self.document)
        self._unfolding = unfold(self.document, where)
        self._searcher: Any = None
        self._second: tuple[Any, Any] | None = None
        self._reference = _reference_alone(self.document, where)
        self._validator: Any = None if self._reference is not None else _validator(self.document, where)
        judge: Any = self._reference or self._validator
        self.is_valid: Callable[[Any], bool] = judge.is_valid
        self._decode = msgspec.json.Decoder().decode

    def worst_seconds(self, payload: bytes) -> float:
        """See ``Validator``."""
        unfolding = self._unfolding
        if self._reference is not None and (unfolding.byte_ns or unfolding.is_branching):
            return inf  # Python's patterns may take exponential time
        if unfolding.is_branching and is_deeper(payload, _MAX_BRANCHED):
            return inf
        slower = 1.0 if self._reference is None else _SLOWER
        return (_places(payload) * unfolding.place_ns + len(payload) * unfolding.byte_ns) * 1e-9 * slower

    def check(self, payload: bytes) -> list[Fault]:
        """See ``Validator``; at most 100 faults.

        For large payloads (thousands of values) and schemas that branch within themselves, validation stops at the
        first error: a small payload could have many billions of ways to its errors.
        """
        if worker_pool.is_worker or self.worst_seconds(payload) <= MAX_SECONDS:
            return self.check_here(payload)
        return check_apart(Schema("", "", "json", self._source), payload)

    def check_here(self, payload: bytes) -> list[Fault]:
        """Check in this process, however long it takes."""
        try:
            document = self._decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            return [Fault("$", _malformed(error))]
        except RecursionError:
            return [Fault("$", "nested too deep")]
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
            return [Fault("$", "nested too deep")]

    def disagreement(self, payload: bytes) -> str:
        """Return what is wrong where jsonschema-rs and jsonschema disagree on a payload; "" where they agree.

        Formats are left out: jsonschema knows few of them without further packages.

        Raises:
            SchemaError: jsonschema can't read the schema.
            MissingExtraError: one of the two is not installed.
        """
        from balog.registry.reference import ReferenceValidator, disagreement

        if self._second is None:
            try:
                self._second = second_opinion(self.document), ReferenceValidator(self.document, formats=False)
            except ImportError:
                raise MissingExtraError("comparing two validators", "schema") from None
        try:
            document = self._decode(payload)
            fast, slow = (one.is_valid(document) for one in self._second)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            return ""  # `check` tells it
        if fast == slow:
            return ""
        return disagreement(fast)

    def _first(self, document: Any) -> Fault:
        """Give one fault, by a schema whose choices are not looked into."""
        import jsonschema_rs

        if self._searcher is None:
            self._searcher = _compiled(_without_reasons(self.document))
        try:
            self._searcher.validate(document)
        except jsonschema_rs.ValidationError as error:
            return Fault(json_path(error.instance_path), f"{reason_of(error)} (there may be more)")
        return Fault("$", "is not valid")


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
        return _compiled(document)
    except jsonschema_rs.ValidationError as error:
        raise SchemaError(_refusal(error, document), where, json_path(error.instance_path)) from None
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not a JSON Schema: {split_refusal(error)[0]}", where) from None


def second_opinion(document: Any) -> Any:
    """Return the validator of jsonschema-rs as it is compared with jsonschema's: without formats."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES)
    return jsonschema_rs.validator_for(document, validate_formats=False, offline=True, pattern_options=options)


def _places(payload: bytes) -> int:
    """Return how many values a payload has at most."""
    return payload.count(b",") + payload.count(b"{") + payload.count(b"[") + 1


def _compiled(document: Any) -> Any:
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES)
    return jsonschema_rs.validator_for(document, validate_formats=True, offline=True, pattern_options=options, mask="…")


def _without_reasons(document: dict[str, Any]) -> Any:
    """Give the same schema with choices that say only whether one of them fits: a ``not`` tells nothing of its inside.

    What a schema evaluates would not be known outside of a ``not``, so one that asks for that says nothing at all.
    """
    try:
        if b'"unevaluated' not in msgspec.json.encode(document):
            wrapped = _wrapped(document)
            _compiled(wrapped)  # a reference may lead to what has another place now
            return wrapped
    except ValueError:
        pass
    return {}


_DATA = frozenset({"enum", "const", "default", "examples"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _wrapped(node: Any) -> Any:
    if isinstance(node, list):
        return [_wrapped(item) for item in node]
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    choices = []
    for name, inner in node.items():
        if name in _DATA:
            found[name] = inner
        elif name in _MAPS and isinstance(inner, dict):
            found[name] = {key: _wrapped(each) for key, each in inner.items()}
        elif name in ("anyOf", "oneOf"):
            choices.append({"not": {"not": {name: _wrapped(inner)}}})
        else:
            found[name] = _wrapped(inner)
    if choices:
        found["allOf"] = [*found.get("allOf", []), *choices]
    return found


def decode_schema(source: bytes, where: str = "") -> dict[str, Any]:
    """Read a document that should be a JSON Schema; ``true`` as ``{}``, ``false`` as ``{"not": {}}``.

    Raises:
        SchemaError: it is no JSON object, or too large.
    """
    if len(source) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"larger than {MAX_SCHEMA_BYTES >> 20} MiB", where)
    try:
        document = msgspec.json.decode(source.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SchemaError(_malformed(error), where) from None
    except RecursionError:
        raise SchemaError("nested too deep", where) from None
    if isinstance(document, bool):
        return {} if document else {"not": {}}
    if not isinstance(document, dict):
        raise SchemaError("not a JSON Schema: want an object, true or false", where)
    return document


def json_path(steps: Sequence[str | int]) -> str:
    """Write a place as a JSONPath (RFC 9535): ``$.lines[2].price``, ``$['a b']``; one printable line."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            path += f".{_short(step)}"
        else:
            path += "['" + _short(step).replace("\\", "\\\\").replace("'", "\\'") + "']"
    return path


def _faults(errors: Iterator[Any]) -> Iterator[Fault]:
    for error in errors:
        yield Fault(json_path(error.instance_path), reason_of(error))
        yield from _nearest(error)


def _nearest(error: Any) -> Iterator[Fault]:
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


_LIMITS = {
    "minimum": "is less than {}",
    "maximum": "is more than {}",
    "exclusiveMinimum": "is not more than {}",
    "exclusiveMaximum": "is not less than {}",
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "minItems": "has less than {} items",
    "maxItems": "has more than {} items",
    "minProperties": "has less than {} members",
    "maxProperties": "has more than {} members",
}


def reason_of(error: Any) -> str:
    """Say what an error of jsonschema-rs means, without a value of the payload."""
    kind, said = error.kind, _words(error.kind)
    name = str(kind.name)
    if name in _LIMITS:
        return _LIMITS[name].format(said.get("limit"))
    if name == "required":
        return f"{_quoted(said['property'])} is missing"
    if name == "type":
        return f"want {' or '.join(sorted(said['types'], key='null'.__eq__))}"
    if name == "const":
        return f"want {_json(said['expected_value'])}"
    if name == "enum":
        return f"want one of {_json(said['options'])}"
    if name == "pattern":
        return f"does not match {_short(said['pattern'])}"
    if name == "format":
        return f"is no {said['format']}"
    if name == "multipleOf":
        return f"is no multiple of {said['multiple_of']}"
    if name in ("additionalProperties", "unevaluatedProperties"):
        names = [_quoted(key) for key in said["unexpected"]]
        return f"has members that it may not have: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    if name in ("anyOf", "oneOf") or name.startswith("oneOf"):
        matched = name != "anyOf" and "multiple" in type(kind).__name__.lower()
        return "is more than one of the alternatives at once" if matched else "is none of the alternatives"
    if name == "propertyNames":
        return f"has a member whose name may not be: {reason_of(said['error'])}"
    if name == "not":
        inner = said["schema"]
        is_choice = isinstance(inner, dict) and list(inner) == ["not"]
        return "is none of the alternatives, or more than one" if is_choice else "is what it may not be"
    if name == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return "has members that it may not have"  # of a schema without properties all of them
    return _OTHERS.get(name, f"breaks {name}")


_OTHERS = {
    "uniqueItems": "has an item twice",
    "contains": "has not as many of the items as it should",
    "falseSchema": "may not be there",
    "additionalItems": "has more items than it may",
    "unevaluatedItems": "has items that it may not have",
}


def _words(kind: Any) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in kind.__match_args__ if name != "context"}


def _refusal(error: Any, document: Any) -> str:
    """Say why a document is no JSON Schema; here its values may be said."""
    name, message = error.kind.name, str(error.message)
    if message.startswith("Unknown meta-schema"):
        return "$schema is none of the drafts 4, 6, 7, 2019-09 and 2020-12"
    if message.startswith("Pointer "):
        return f"$ref #{_short(message.split(chr(39))[1])} leads nowhere"
    if " is not present in a registry" in message:
        said = _short(message.split(chr(39))[1])
        return f"$ref {said} leads out of the document, and to no registered type such as ../order/1.0.0.json"
    if name == "format" and "regex" in message:
        for step in error.instance_path:
            document = document[step] if isinstance(document, (dict, list)) and step in _keys(document) else step
        pattern = document if isinstance(document, str) else error.instance_path[-1]
        return f"{_short(str(pattern))} is no pattern that runs in linear time: no look-around, no back reference"
    if name in ("anyOf", "oneOf"):
        return "not a JSON Schema: what is here is no value that the keyword takes"
    return f"not a JSON Schema: {reason_of(error)}"


def _keys(node: Any) -> Any:
    return node if isinstance(node, dict) else range(len(node))


def _malformed(error: Exception) -> str:
    return f"not JSON: {split_refusal(error)[0]}"


def _json(value: Any) -> str:
    return _short(msgspec.json.encode(value).decode())


def _quoted(name: str) -> str:
    return f"'{_short(name)}'"


def _short(text: str) -> str:
    said = "".join(char if char.isprintable() else "�" for char in text[: _MAX_SAID + 1])
    return said if len(said) <= _MAX_SAID else said[: _MAX_SAID - 1] + "…"
