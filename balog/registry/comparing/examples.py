"""Finds counterexamples: payloads that one schema accepts and another one rejects, confirmed by both validators.

Candidates for each place come from the schemas: their constants, the numbers and lengths at and around their limits,
strings of their patterns and formats, members and items present and absent. At each place, values that the writer
accepts and the reader rejects come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from balog.registry.comparing.document import ITEMS, OTHERS, Node, SchemaDocument, Step
from balog.registry.comparing.strings import FORMAT_EXAMPLES, matching_strings

_MOST_A_PLACE = 40
_MOST_IN_ALL = 20_000
_MOST_TESTED = 1_000
_DEEPEST = 12
_MANY = 30
_LONGEST = 1_000
_UNNAMED = "another"


class Counterexample(NamedTuple):
    """A payload that the writer accepts and the reader rejects, with the reader's violations."""

    payload: Any
    violations: list[tuple[tuple[str | int, ...], bool]]

    def shows(self, path: Sequence[Step], presence: bool) -> bool:
        """Return whether the reader rejects the value of a place, or (``presence``) its absence."""
        return any(missing == presence and _leads(violation, path) for violation, missing in self.violations)


def find_examples(reader: SchemaDocument, writer: SchemaDocument) -> list[Counterexample]:
    """Return counterexamples, the smallest first. An empty list proves nothing."""
    candidates = _Candidates(reader, writer)
    found: dict[tuple[Any, ...], tuple[bytes, Counterexample]] = {}
    tested = 0
    for source in (_of_difference(reader, writer), iter(candidates.at([writer.root], [reader.root], 0))):
        for payload in islice(source, _MOST_IN_ALL):
            if tested < _MOST_TESTED and writer.accepts(payload) and not reader.accepts(payload):
                tested += 1
                example, text = Counterexample(payload, _violations(reader, payload)), msgspec.json.encode(payload)
                key = tuple(example.violations)
                if key not in found or (len(text), text) < (len(found[key][0]), found[key][0]):
                    found[key] = text, example
    return [example for text, example in sorted(found.values(), key=lambda one: (len(one[0]), one[0]))]


def suggest_payloads(document: SchemaDocument) -> list[Any]:
    """Return valid and invalid payloads that are close to a schema's limits."""
    return _Candidates(document, document).at([], [document.root], 0)


def _of_difference(reader: SchemaDocument, writer: SchemaDocument) -> Iterator[Any]:
    """Yield candidates from the difference of the two schemas, if jsonschema-rs can compute it."""
    old, new = writer.canonical([writer.root]), reader.canonical([reader.root])
    try:
        schema = None if old is None or new is None else old.subtract(new).to_json_schema()
    except ValueError:
        return
    if isinstance(schema, dict):
        document = SchemaDocument(schema)
        yield from _Candidates(reader, document).at([document.root], [], 0)


def _violations(reader: SchemaDocument, payload: Any) -> list[tuple[tuple[str | int, ...], bool]]:
    """Return the places of violations, and whether a member is missing there."""
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


def _leads(violation: Sequence[Any], path: Sequence[Step]) -> bool:
    return len(violation) == len(path) and all(
        step is OTHERS or (step is ITEMS and isinstance(at, int)) or step == at
        for at, step in zip(violation, path, strict=True)
    )


class _Candidates:
    def __init__(self, reader: SchemaDocument, writer: SchemaDocument) -> None:
        self._reader, self._writer = reader, writer
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Any]] = {}

    def at(self, writes: list[Node], reads: list[Node], depth: int) -> list[Any]:
        """Return values that the writer accepts at a place, at most 40."""
        key = (tuple(map(id, writes)), tuple(map(id, reads)))
        if key in self._known:
            return self._known[key]
        self._known[key] = []  # for recursive places
        schemas = [*self._writer.expand(writes), *self._reader.expand(reads)]
        candidates: Iterable[Any] = _scalars(schemas)
        if depth < _DEEPEST:
            candidates = [
                *candidates,
                *self._lists(schemas, writes, reads, depth),
                *self._objects(schemas, writes, reads, depth),
            ]
        accepts = self._writer.tester(writes) if writes else None
        refuses = self._reader.tester(reads) if reads else None
        kept = {msgspec.json.encode([one]): one for one in candidates if accepts is None or accepts(one)}.values()
        if refuses is None:
            best = list(kept)
        else:
            bad = [one for one in kept if not refuses(one)]
            best = [*bad[: _MOST_A_PLACE * 3 // 4], *(one for one in kept if refuses(one)), *bad]
        found = best if depth == 0 else best[:_MOST_A_PLACE]
        self._known[key] = found
        return found

    def _lists(
        self, schemas: list[dict[str, Any]], writes: list[Node], reads: list[Node], depth: int
    ) -> Iterator[list[Any]]:
        if not _may_be(schemas, "array"):
            return
        yield []
        items = self.at(self._writer.items(writes), self._reader.items(reads), depth + 1) or [None, 0, ""]
        for item in items:
            yield [item]
        written, read = _first_items(self._writer.expand(writes)), _first_items(self._reader.expand(reads))
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
        for count in _around(schemas, ("minItems", "maxItems", "minContains", "maxContains")):
            if 0 <= count <= 100:
                for item in items[:3]:
                    yield [item] * count
                    yield [items[n % len(items)] for n in range(count)]

    def _objects(
        self, schemas: list[dict[str, Any]], writes: list[Node], reads: list[Node], depth: int
    ) -> Iterator[dict[str, Any]]:
        if not _may_be(schemas, "object"):
            return
        writer, reader = self._writer, self._reader
        required = {name: None for node in writer.expand(writes) for name in _texts_in(node.get("required"))}
        names = {**required, **writer.declared(writes), **reader.declared(reads)}
        names |= {name: None for node in schemas for name in _texts_in(node.get("required"))}
        names |= {name: None for node in schemas for name in (node.get("dependentRequired") or {})}
        for node in schemas:
            names |= {
                text: None for pattern in node.get("patternProperties") or {} for text in matching_strings(pattern, 2)
            }
        names[_UNNAMED] = None
        values = {
            name: self.at(writer.member(writes, name), reader.member(reads, name), depth + 1)
            for name in islice(names, 500)
        }
        fine = {
            name: next((one for one in some if reader.tester(nodes)(one)), some[0])
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
        ):  # the first value of each member, then the second, so that all members count if few values are kept
            for name, some in values.items():
                if n < len(some):
                    yield {**base, name: some[n]}
        for name, some in values.items() if len(values) <= _MANY else ():
            yield {other: one for other, one in whole.items() if other != name}
            for one in some[:10]:
                yield {**whole, name: one}
        for branch in _branches(schemas):
            of_branch = {name: fine[name] for name in branch if name in fine}
            for name, some in values.items():
                for one in some[:5]:
                    yield {**base, **of_branch, name: one}
        for count in _around(schemas, ("minProperties", "maxProperties")):
            if 0 <= count <= 100:
                names_then = [*values, *(f"{_UNNAMED}{n}" for n in range(count))][: max(count, 0)]
                yield {name: fine.get(name, fine.get(_UNNAMED)) for name in names_then}


def _scalars(schemas: list[dict[str, Any]]) -> list[Any]:
    """Return scalar values of each type that may occur, and those that the keywords name."""
    found: list[Any] = []
    for node in schemas:
        found += node["enum"] if isinstance(node.get("enum"), list) else []
        found += [node["const"]] if "const" in node else []
    if _may_be(schemas, "string"):
        found += ["", "a", "?!"]
        for node in schemas:
            found += matching_strings(node["pattern"]) if isinstance(node.get("pattern"), str) else []
            found += [FORMAT_EXAMPLES[node["format"]]] if node.get("format") in FORMAT_EXAMPLES else []
        found += ["a" * n for n in _around(schemas, ("minLength", "maxLength")) if 0 <= n <= _LONGEST]
    if _may_be(schemas, "integer") or _may_be(schemas, "number"):
        found += [0, 1, -1, 0.5, -0.5]
        for number in _around(schemas, ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")):
            found += [number, number + 0.5, number - 0.5] if abs(number) < 2**50 else [number]
        for node in schemas:
            by: Any = node.get("multipleOf")
            found += [by * 2, by * 3, by * 7] if _is_number(by) else []
    found += [None, False, True]
    return found


def _may_be(schemas: list[dict[str, Any]], kind: str) -> bool:
    """Return whether a value of the type may occur."""
    return any(
        "type" not in node or kind in ([t] if isinstance(t := node["type"], str) else t) for node in schemas
    ) or (not schemas)


def _around(schemas: list[dict[str, Any]], words: Sequence[str]) -> list[Any]:
    """Return the limits and their neighbours. A limit without a fraction is an int: 1.0 is 1."""
    found: dict[Any, None] = {}
    for node in schemas:
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


def _first_items(schemas: list[dict[str, Any]]) -> list[Node]:
    for node in schemas:
        for word in ("prefixItems", "items"):
            if isinstance(node.get(word), list):
                return list(node[word][:20])
    return []


def _branches(schemas: list[dict[str, Any]]) -> list[list[str]]:
    """Return the required members of each alternative, so that a payload can match any of them."""
    return [
        _texts_in(node.get("required"))
        for node in schemas
        if isinstance(node.get("required"), list) and len(schemas) > 2
    ][:10]
