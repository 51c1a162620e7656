"""Configs held against a JSON Schema, by the keywords that configs use.

The base install has no validator, and a tap's config must mean the same whether or not one is there: so this one is
always used. What a schema says and this does not know is refused when the tap is declared, never passed over.
The rules are those of JSON Schema 2020-12 (draft 7's ``definitions`` are read, too); formats are asserted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from balog.problems import suggest
from balog.tap.config.formats import ANNOTATED_FORMATS, FORMATS
from balog.tap.errors import TapError

__all__ = ["Fault", "check", "kinds_of", "refuse_unknown", "target_of"]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": lambda value: _is_number(value),  # noqa: PLW0108  # it comes below
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
_ANNOTATIONS = {
    *("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly"),
    *("writeOnly", "secret", "$defs", "definitions"),
}
_MAX_DEPTH = 60


class Fault(NamedTuple):
    """What is wrong with a config.

    Attributes:
        path: names and numbers that lead to it.
        reason: a clause, without any value of the config.
        keyword: the keyword, or the words, of the rule that it breaks.
        name: the field that is missing, or should not be there; "" where it is about something else.
    """

    path: tuple[str | int, ...]
    reason: str
    keyword: str
    name: str = ""


def check(value: Any, schema: Any, root: Any = None, path: tuple[str | int, ...] = ()) -> Iterator[Fault]:
    """Give what is wrong with a value, in the schema's order.

    Args:
        value: as JSON decodes.
        schema: one that ``refuse_unknown`` has passed.
        root: the document that references lead into; the schema itself when None.
        path: where the value is.
    """
    root = schema if root is None else root
    if schema is True:
        return
    if schema is False:
        yield Fault(path, "nothing is allowed here", "false")
        return
    wanted = kinds_of(schema)
    if wanted and not any(_TYPES[kind](value) for kind in wanted):
        yield Fault(path, f"want {_listed(map(_a, wanted))}, got {_a(_kind(value))}", "type")
        return
    for keyword, said in schema.items():
        rule = _RULES.get(keyword)
        if rule is not None:
            yield from rule(value, said, schema, root, path)


def kinds_of(schema: Any) -> tuple[str, ...]:
    """Give the types that a schema's own ``type`` names; () where it names none."""
    said = schema.get("type") if isinstance(schema, Mapping) else None
    return (said,) if isinstance(said, str) else tuple(said or ())


def target_of(schema: Any, root: Any) -> Any:
    """Give the schema that a schema's ``$ref`` leads to, or the schema itself.

    Raises:
        TapError: it leads nowhere, or round.
    """
    seen = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or reference in seen:
            raise TapError(f"config schema: the $ref {reference!r} does not lead to a place in the schema")
        seen.add(reference)
        schema = root
        for part in reference[2:].split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema, Mapping) or name not in schema:
                raise TapError(f"config schema: the $ref {reference!r} leads nowhere; there is no {name!r}")
            schema = schema[name]
    return schema


def refuse_unknown(schema: Any, root: Any = None, path: str = "$", depth: int = 0) -> None:
    """Refuse a schema that says what ``check`` does not look at, or that is none.

    Raises:
        TapError: with the place in the schema, and what there is instead.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise TapError(f"config schema: {path}: want a schema, got {_a(_kind(schema))}")
    if depth > _MAX_DEPTH:
        raise TapError(f"config schema: {path}: nested more than {_MAX_DEPTH} deep")
    for keyword, said in schema.items():
        place = f"{path}.{keyword}"
        if keyword not in _SHAPES and keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
            raise TapError(
                f"config schema: {place}: this keyword is not looked at in a config; there are "
                f"{', '.join(sorted({*_SHAPES, *_ANNOTATIONS}))}"
            )
        _SHAPES.get(keyword, _anything)(said, place)
        if keyword in ("properties", "patternProperties", "$defs", "definitions"):
            _want_mapping(said, place)
            for name, inner in said.items():
                refuse_unknown(inner, root, f"{place}.{name}", depth + 1)
        elif keyword in ("anyOf", "oneOf", "allOf"):
            for number, inner in enumerate(said):
                refuse_unknown(inner, root, f"{place}[{number}]", depth + 1)
        elif keyword in ("items", "additionalProperties", "propertyNames", "not"):
            refuse_unknown(said, root, place, depth + 1)
        elif keyword == "$ref":
            target_of(schema, root)


# -- rules --------------------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(item, other[name]) for name, item in one.items())
    return bool(one == other)


def _enum(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if not any(_same(value, one) for one in said):
        yield Fault(path, f"want one of {', '.join(map(repr, said))}", "enum")


def _const(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if not _same(value, said):
        yield Fault(path, f"want {said!r}", "const")


def _bound(words: str, is_kept: Callable[[Any, Any], bool]) -> Callable[..., Iterator[Fault]]:
    def rule(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
        if _is_number(value) and not is_kept(value, said):
            yield Fault(path, f"want a number {words} {said}", words)

    return rule


def _is_multiple(value: Any, of: Any) -> bool:
    from fractions import Fraction  # by the digits that were written: 0.3 is a multiple of 0.1

    try:
        return (Fraction(str(value)) / Fraction(str(of))).denominator == 1
    except ValueError:  # no finite number
        return False


def _size(
    kind: type[Any], words: str, thing: str, is_kept: Callable[[int, int], bool]
) -> Callable[..., Iterator[Fault]]:
    def rule(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
        if isinstance(value, kind) and not is_kept(len(value), said):
            yield Fault(path, f"want {words} {said} {thing}, got {len(value)}", words)

    return rule


def _pattern(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, str) and not re.search(said, value):
        yield Fault(path, f"want a text that matches {said}", "pattern")


def _format(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    known = FORMATS.get(said)
    if known and isinstance(value, str) and not known.fits(value):
        yield Fault(path, f"want {known.words}", "format")


def _items(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from check(item, said, root, (*path, number))


def _unique(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if said and isinstance(value, list):
        for number, item in enumerate(value):
            if any(_same(item, other) for other in value[:number]):
                yield Fault((*path, number), "the same is there before", "uniqueItems")


def _required(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for name in said:
            if name not in value:
                yield Fault(path, f"the field {name!r} is missing", "required", name)


def _dependent(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for name, others in said.items():
            for other in others:
                if name in value and other not in value:
                    yield Fault(path, f"the field {other!r} is missing, which {name!r} wants", "dependentRequired")


def _properties(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for name, inner in said.items():
            if name in value:
                yield from check(value[name], inner, root, (*path, name))


def _pattern_properties(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for expression, inner in said.items():
            for name, item in value.items():
                if re.search(expression, name):
                    yield from check(item, inner, root, (*path, name))


def _additional(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        patterns = schema.get("patternProperties", {})
        for name, item in value.items():
            if name in schema.get("properties", {}) or any(re.search(one, name) for one in patterns):
                continue
            if said is False:
                known = sorted(schema.get("properties", {}))
                hint = f"; {suggest(name, known)}" if known else ""
                yield Fault(path, f"there is no field {name!r}{hint}", "additionalProperties", name)
            else:
                yield from check(item, said, root, (*path, name))


def _names(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for name in value:
            for fault in check(name, said, root, path):
                yield Fault(path, f"the name {name!r}: {fault.reason}", "propertyNames")


def _reference(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if len(path) > _MAX_DEPTH:
        yield Fault(path, f"nested more than {_MAX_DEPTH} deep", "$ref")
        return
    yield from check(value, target_of(schema, root), root, path)


def _all_of(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    for one in said:
        yield from check(value, one, root, path)


def _any_of(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    found = [list(check(value, one, root, path)) for one in said]
    if all(found):
        yield from _nearest(found, path, "anyOf")


def _one_of(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    found = [list(check(value, one, root, path)) for one in said]
    fits = sum(not faults for faults in found)
    if fits > 1:
        yield Fault(path, f"fits {fits} of the forms that there are; want just one", "oneOf")
    elif not fits:
        yield from _nearest(found, path, "oneOf")


def _nearest(found: list[list[Fault]], path: Any, keyword: str) -> Iterator[Fault]:
    """Give the faults of the one form that was meant; of several, a line with what each of them wants."""
    if all(len(faults) == 1 and faults[0].keyword == "type" and faults[0].path == path for faults in found):
        wanted = [faults[0].reason.rpartition(", got ")[0].removeprefix("want ") for faults in found]
        yield Fault(
            path, f"want {_listed(dict.fromkeys(wanted))}, got {found[0][0].reason.rpartition(', got ')[2]}", keyword
        )
        return
    of_type = [faults for faults in found if not any(one.path == path and one.keyword == "type" for one in faults)]
    if len(of_type) == 1:
        yield from of_type[0]
        return
    ways = dict.fromkeys(faults[0].reason for faults in found if faults)
    yield Fault(path, " or ".join(ways) or "nothing fits", keyword)


def _not(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if not any(True for _ in check(value, said, root, path)):
        yield Fault(path, "fits what it must not be", "not")


_RULES: dict[str, Callable[..., Iterator[Fault]]] = {
    "enum": _enum,
    "const": _const,
    "minimum": _bound("of at least", lambda value, bound: value >= bound),
    "maximum": _bound("of at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound("above", lambda value, bound: value > bound),
    "exclusiveMaximum": _bound("below", lambda value, bound: value < bound),
    "multipleOf": _bound("that is a multiple of", _is_multiple),
    "minLength": _size(str, "at least", "characters", lambda length, bound: length >= bound),
    "maxLength": _size(str, "at most", "characters", lambda length, bound: length <= bound),
    "minItems": _size(list, "at least", "items", lambda length, bound: length >= bound),
    "maxItems": _size(list, "at most", "items", lambda length, bound: length <= bound),
    "minProperties": _size(dict, "at least", "fields", lambda length, bound: length >= bound),
    "maxProperties": _size(dict, "at most", "fields", lambda length, bound: length <= bound),
    "pattern": _pattern,
    "format": _format,
    "items": _items,
    "uniqueItems": _unique,
    "required": _required,
    "dependentRequired": _dependent,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "$ref": _reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
}

# -- what the keywords themselves must be -------------------------------------------------------------------------


def _anything(said: Any, place: str) -> None:
    """Any value will do."""


def _want(is_right: Callable[[Any], bool], words: str) -> Callable[[Any, str], None]:
    def shape(said: Any, place: str) -> None:
        if not is_right(said):
            raise TapError(f"config schema: {place}: want {words}")

    return shape


def _is_expression(said: Any) -> bool:
    try:
        re.compile(said)
    except (re.error, TypeError, RecursionError):
        return False
    return True


def _is_names(said: Any) -> bool:
    return isinstance(said, (list, tuple)) and all(isinstance(one, str) for one in said)


def _is_types(said: Any) -> bool:
    names = [said] if isinstance(said, str) else said
    return isinstance(names, (list, tuple)) and bool(names) and all(one in _TYPES for one in names)


_want_mapping = _want(lambda said: isinstance(said, Mapping), "an object of schemas by name")
_want_number = _want(_is_number, "a number")
_want_count = _want(lambda said: isinstance(said, int) and not isinstance(said, bool) and said >= 0, "a count from 0")
_want_schemas = _want(lambda said: isinstance(said, (list, tuple)) and bool(said), "a list of schemas, not empty")
_SHAPES: dict[str, Callable[[Any, str], None]] = {
    **dict.fromkeys(_RULES, _anything),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _want_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _want_count),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _want_schemas),
    "type": _want(_is_types, f"one or more of {', '.join(_TYPES)}"),
    "enum": _want(lambda said: isinstance(said, (list, tuple)) and bool(said), "a list of values, not empty"),
    "multipleOf": _want(lambda said: _is_number(said) and said > 0, "a number above 0"),
    "pattern": _want(_is_expression, "a regular expression of Python's"),
    "patternProperties": _want(
        lambda said: isinstance(said, Mapping) and all(map(_is_expression, said)), "schemas by regular expressions"
    ),
    "format": _want(
        lambda said: said in FORMATS or said in ANNOTATED_FORMATS,
        f"a format that is known: {', '.join(sorted({*FORMATS, *ANNOTATED_FORMATS}))}",
    ),
    "uniqueItems": _want(lambda said: isinstance(said, bool), "true or false"),
    "required": _want(_is_names, "a list of names"),
    "dependentRequired": _want(
        lambda said: isinstance(said, Mapping) and all(map(_is_names, said.values())), "lists of names by name"
    ),
}

# -- words --------------------------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    for name in ("null", "boolean", "integer", "number", "string", "array"):
        if _TYPES[name](value):
            return name
    return "object"


_WORDS = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _a(kind: str) -> str:
    return _WORDS[kind]


def _listed(words: Any) -> str:
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last
