"""Configs held against a JSON Schema, by the keywords that configs use.

The base install has no validator, and a tap's config must mean the same whether or not one is there: so this one is
always used. ``keywords`` refuses schemas that use anything else. The rules are those of
JSON Schema 2020-12 (draft 7's ``definitions`` are read, too); formats are asserted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from balog.problems import suggest
from balog.tap.config.formats import FORMATS
from balog.tap.config.json_types import MAX_DEPTH, TYPES, in_words, is_number, kind_of, kinds_of, listed, target_of
from balog.tap.constraints import BOUNDS, SIZES, is_equal, is_multiple, repeated

__all__ = ["RULES", "Fault", "check"]


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
    if wanted and not any(TYPES[kind](value) for kind in wanted):
        yield Fault(path, f"want {listed(map(in_words, wanted))}, got {in_words(kind_of(value))}", "type")
        return
    for keyword, said in schema.items():
        rule = RULES.get(keyword)
        if rule is not None:
            yield from rule(value, said, schema, root, path)


def _enum(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if not any(is_equal(value, one) for one in said):
        yield Fault(path, f"want one of {', '.join(map(repr, said))}", "enum")


def _const(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
    if not is_equal(value, said):
        yield Fault(path, f"want {said!r}", "const")


def _bound(words: str, is_kept: Callable[[Any, Any], bool]) -> Callable[..., Iterator[Fault]]:
    def rule(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
        if is_number(value) and not is_kept(value, said):
            yield Fault(path, f"want a number {words} {said}", words)

    return rule


def _size(kind: str, words: str, is_kept: Callable[[int, int], bool]) -> Callable[..., Iterator[Fault]]:
    def rule(value: Any, said: Any, schema: Any, root: Any, path: Any) -> Iterator[Fault]:
        if TYPES[kind](value) and not is_kept(len(value), said):
            yield Fault(path, f"want {words} {said} {_UNITS[kind]}, got {len(value)}", words)

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
        for number in repeated(value):
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
    if len(path) > MAX_DEPTH:
        yield Fault(path, f"nested more than {MAX_DEPTH} deep", "$ref")
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
            path, f"want {listed(dict.fromkeys(wanted))}, got {found[0][0].reason.rpartition(', got ')[2]}", keyword
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


_UNITS = {"string": "characters", "array": "items", "object": "fields"}
RULES: dict[str, Callable[..., Iterator[Fault]]] = {
    "enum": _enum,
    "const": _const,
    "minimum": _bound("of at least", BOUNDS["minimum"]),
    "maximum": _bound("of at most", BOUNDS["maximum"]),
    "exclusiveMinimum": _bound("above", BOUNDS["exclusiveMinimum"]),
    "exclusiveMaximum": _bound("below", BOUNDS["exclusiveMaximum"]),
    "multipleOf": _bound("that is a multiple of", is_multiple),
    **{keyword: _size(*size) for keyword, size in SIZES.items()},
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
"""By keyword; ``type`` is looked at first, by ``check`` itself."""
