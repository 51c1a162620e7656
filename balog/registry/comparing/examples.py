"""Finds payloads that one schema takes and another one refuses; each is judged by both validators.

Tries are made place by place, of what the two schemas speak of: their constants, the numbers and lengths at their
limits and beside them, texts of their patterns and formats, members and items there and not. At each place those come
first that the reader refuses there and the writer takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from balog.registry.comparing.document import ITEMS, OTHERS, Node, SchemaDocument, Step
from balog.registry.comparing.strings import OF_FORMATS, matching

__all__ = ["Counterexample", "find_examples", "suggested"]

_MOST_A_PLACE = 40
_MOST_IN_ALL = 20_000
_MOST_LOOKED_AT = 1_000
_DEEPEST = 12
_MANY = 30
_LONGEST = 1_000
_UNNAMED = "another"


class Counterexample(NamedTuple):
    """A payload that the writer takes and the reader refuses, and where the reader finds fault with it."""

    payload: Any
    faults: list[tuple[tuple[str | int, ...], bool]]

    def shows(self, path: Sequence[Step], presence: bool) -> bool:
        """Tell whether the reader finds fault with the value at a place, or (``presence``) with its not being there."""
        return any(missing == presence and _leads(fault, path) for fault, missing in self.faults)


def find_examples(reader: SchemaDocument, writer: SchemaDocument) -> list[Counterexample]:
    """Give some, the smallest first; none where none was found, which proves nothing."""
    tries = _Tries(reader, writer)
    found: dict[tuple[Any, ...], tuple[bytes, Counterexample]] = {}
    looked = 0
    for source in (_of_difference(reader, writer), iter(tries.at([writer.root], [reader.root], 0))):
        for payload in islice(source, _MOST_IN_ALL):
            if looked < _MOST_LOOKED_AT and writer.takes(payload) and not reader.takes(payload):
                looked += 1
                example, text = Counterexample(payload, _faults(reader, payload)), msgspec.json.encode(payload)
                key = tuple(example.faults)
                if key not in found or (len(text), text) < (len(found[key][0]), found[key][0]):
                    found[key] = text, example
    return [example for text, example in sorted(found.values(), key=lambda one: (len(one[0]), one[0]))]


def suggested(document: SchemaDocument) -> list[Any]:
    """Return payloads that a schema itself speaks of, valid ones and others."""
    return _Tries(document, document).at([], [document.root], 0)


def _of_difference(reader: SchemaDocument, writer: SchemaDocument) -> Iterator[Any]:
    """Give tries of the schema that has exactly what is searched for, where jsonschema-rs can write it."""
    old, new = writer.canonical([writer.root]), reader.canonical([reader.root])
    try:
        schema = None if old is None or new is None else old.subtract(new).to_json_schema()
    except ValueError:
        return
    if isinstance(schema, dict):
        document = SchemaDocument(schema)
        yield from _Tries(reader, document).at([document.root], [], 0)


def _faults(reader: SchemaDocument, payload: Any) -> list[tuple[tuple[str | int, ...], bool]]:
    """Give the places of faults, and whether something is missing there."""
    found: list[tuple[tuple[str | int, ...], bool]] = []
    errors = list(islice(reader.validator.iter_errors(payload), 50))
    while errors:
        error = errors.pop()
        path = tuple(error.instance_path)
        found.append((path, False))
        if error.kind.name == "required":
            found.append(((*path, error.kind.property), True))
        elif error.kind.name in ("additionalProperties", "unevaluatedProperties"):
            found += [((*path, name), False) for name in error.kind.unexpected]
        for group in getattr(error.kind, "context", None) or []:
            errors += group
    return found


def _leads(fault: Sequence[Any], path: Sequence[Step]) -> bool:
    return len(fault) == len(path) and all(
        step is OTHERS or (step is ITEMS and isinstance(at, int)) or step == at
        for at, step in zip(fault, path, strict=True)
    )


class _Tries:
    def __init__(self, reader: SchemaDocument, writer: SchemaDocument) -> None:
        self._reader, self._writer = reader, writer
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Any]] = {}

    def at(self, writes: list[Node], reads: list[Node], depth: int) -> list[Any]:
        """Give values that the writer takes at a place, at most 40."""
        key = (tuple(map(id, writes)), tuple(map(id, reads)))
        if key in self._known:
            return self._known[key]
        self._known[key] = []  # of what is within itself
        said = [*self._writer.spread(writes), *self._reader.spread(reads)]
        tries: Iterable[Any] = _scalars(said)
        if depth < _DEEPEST:
            tries = [*tries, *self._lists(said, writes, reads, depth), *self._objects(said, writes, reads, depth)]
        takes = self._writer.test_of(writes) if writes else None
        refuses = self._reader.test_of(reads) if reads else None
        kept = {msgspec.json.encode([one]): one for one in tries if takes is None or takes(one)}.values()
        if refuses is None:
            best = list(kept)
        else:
            bad = [one for one in kept if not refuses(one)]
            best = [*bad[: _MOST_A_PLACE * 3 // 4], *(one for one in kept if refuses(one)), *bad]
        found = best if depth == 0 else best[:_MOST_A_PLACE]
        self._known[key] = found
        return found

    def _lists(
        self, said: list[dict[str, Any]], writes: list[Node], reads: list[Node], depth: int
    ) -> Iterator[list[Any]]:
        if not _may_be(said, "array"):
            return
        yield []
        items = self.at(self._writer.items(writes), self._reader.items(reads), depth + 1) or [None, 0, ""]
        for item in items:
            yield [item]
        written, read = _first_items(self._writer.spread(writes)), _first_items(self._reader.spread(reads))
        first = [
            self.at(
                [written[n]] if n < len(written) else self._writer.items(writes),
                [read[n]] if n < len(read) else self._reader.items(reads),
                depth + 1,
            )[:10]
            for n in range(max(len(written), len(read)))
        ]
        for place in range(len(first) + 1):
            begin = [one[0] for one in first[:place] if one]
            yield begin
            for item in (*items, *(first[place] if place < len(first) else ())):
                yield [*begin, item]
        yield [items[0], items[0]]
        for count in _around(said, ("minItems", "maxItems", "minContains", "maxContains")):
            if 0 <= count <= 100:
                for item in items[:3]:
                    yield [item] * count
                    yield [items[n % len(items)] for n in range(count)]

    def _objects(
        self, said: list[dict[str, Any]], writes: list[Node], reads: list[Node], depth: int
    ) -> Iterator[dict[str, Any]]:
        if not _may_be(said, "object"):
            return
        writer, reader = self._writer, self._reader
        required = {name: None for node in writer.spread(writes) for name in _texts_in(node.get("required"))}
        names = {**required, **writer.declared(writes), **reader.declared(reads)}
        names |= {name: None for node in said for name in _texts_in(node.get("required"))}
        names |= {name: None for node in said for name in (node.get("dependentRequired") or {})}
        for node in said:
            names |= {text: None for pattern in node.get("patternProperties") or {} for text in matching(pattern, 2)}
        names[_UNNAMED] = None
        values = {
            name: self.at(writer.member(writes, name), reader.member(reads, name), depth + 1)
            for name in islice(names, 500)
        }
        fine = {
            name: next((one for one in some if reader.test_of(nodes)(one)), some[0])
            if (nodes := reader.member(reads, name))
            else some[0]
            for name, some in values.items()
            if some
        }
        base = {name: fine[name] for name in required if name in fine}
        whole = {name: fine[name] for name in fine if name != _UNNAMED}
        yield base
        yield {}
        yield whole
        for n in range(
            _MOST_A_PLACE
        ):  # each member's first, then each one's second: where few are kept, all have a say
            for name, some in values.items():
                if n < len(some):
                    yield {**base, name: some[n]}
        for name, some in values.items() if len(values) <= _MANY else ():
            yield {other: one for other, one in whole.items() if other != name}
            for one in some[:10]:
                yield {**whole, name: one}
        for branch in _branches(said):
            of_branch = {name: fine[name] for name in branch if name in fine}
            for name, some in values.items():
                for one in some[:5]:
                    yield {**base, **of_branch, name: one}
        for count in _around(said, ("minProperties", "maxProperties")):
            if 0 <= count <= 100:
                names_then = [*values, *(f"{_UNNAMED}{n}" for n in range(count))][: max(count, 0)]
                yield {name: fine.get(name, fine.get(_UNNAMED)) for name in names_then}


def _scalars(said: list[dict[str, Any]]) -> list[Any]:
    """Give values without parts: of each type that may be there, and those that the words speak of."""
    found: list[Any] = []
    for node in said:
        found += node["enum"] if isinstance(node.get("enum"), list) else []
        found += [node["const"]] if "const" in node else []
    if _may_be(said, "string"):
        found += ["", "a", "?!"]
        for node in said:
            found += matching(node["pattern"]) if isinstance(node.get("pattern"), str) else []
            found += [OF_FORMATS[node["format"]]] if node.get("format") in OF_FORMATS else []
        found += ["a" * n for n in _around(said, ("minLength", "maxLength")) if 0 <= n <= _LONGEST]
    if _may_be(said, "integer") or _may_be(said, "number"):
        found += [0, 1, -1, 0.5, -0.5]
        for number in _around(said, ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")):
            found += [number, number + 0.5, number - 0.5] if abs(number) < 2**50 else [number]
        for node in said:
            by: Any = node.get("multipleOf")
            found += [by * 2, by * 3, by * 7] if _is_number(by) else []
    found += [None, False, True]
    return found


def _may_be(said: list[dict[str, Any]], kind: str) -> bool:
    """Tell whether some of the words leave a type open, or name it."""
    return any("type" not in node or kind in ([t] if isinstance(t := node["type"], str) else t) for node in said) or (
        not said
    )


def _around(said: list[dict[str, Any]], words: Sequence[str]) -> list[Any]:
    """Return the numbers that limits name, and those beside them. A limit without a fraction is an int: 1.0 is 1."""
    found: dict[Any, None] = {}
    for node in said:
        for word in words:
            limit: Any = node.get(word)
            if _is_number(limit):
                limit = int(limit) if limit == int(limit) else limit
                found |= dict.fromkeys((limit, limit - 1, limit + 1))
    return list(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _texts_in(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _first_items(said: list[dict[str, Any]]) -> list[Node]:
    for node in said:
        for word in ("prefixItems", "items"):
            if isinstance(node.get(word), list):
                return list(node[word][:20])
    return []


def _branches(said: list[dict[str, Any]]) -> list[list[str]]:
    """Give what each alternative asks for, so that a payload can be of one that is not the first."""
    return [
        _texts_in(node.get("required")) for node in said if isinstance(node.get("required"), list) and len(said) > 2
    ][:10]
