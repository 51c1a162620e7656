"""Describes the differences between two JSON Schemas, one place of a payload after the other.

The description is not a proof: a change "narrows" or "widens" if no other change compensates it. ``covers`` decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from balog.common.text import cut
from balog.registry.comparing.document import DEEPEST, ITEMS, OTHERS, Node, SchemaDocument, Step, is_anything
from balog.registry.subschemas import type_of

_AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_AT_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_OTHER_WORDS = (
    "pattern", "format", "multipleOf", "uniqueItems", "contains", "not", "if", "then", "else", "dependentRequired",
    "dependentSchemas", "dependencies", "propertyNames", "patternProperties", "unevaluatedProperties",
    "unevaluatedItems", "oneOf", "anyOf",
)  # fmt: skip
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_MOST = 1_000

Schemas = Sequence[dict[str, Any]]
"""The schemas against which every value of a place must be valid."""


class Difference(NamedTuple):
    """One change.

    Attributes:
        path: the place in a payload.
        reason: the change, as a clause.
        narrows: a valid payload may have become invalid.
        widens: an invalid payload may have become valid.
        presence: the change affects whether a member is present, not its value.
        vague: the change has no detail, and is left out if there are changes inside of it.
    """

    path: tuple[Step, ...]
    reason: str
    narrows: bool
    widens: bool
    presence: bool = False
    vague: bool = False


def differences(old: SchemaDocument, new: SchemaDocument) -> list[Difference]:
    """Return the changes from the root down, at most 1,000."""
    changes = list(dict.fromkeys(islice(_Walk(old, new).every(), _MOST)))
    inner = {change.path[:length] for change in changes for length in range(len(change.path))}
    return [change for change in changes if not (change.vague and change.path in inner)]


class _Walk:
    def __init__(self, old: SchemaDocument, new: SchemaDocument) -> None:
        self._old, self._new = old, new
        self._queue: deque[tuple[list[Node], list[Node], tuple[Step, ...]]] = deque()

    def every(self) -> Iterator[Difference]:
        """Yield the differences, nearest to the root first."""
        self._queue.append(([self._old.root], [self._new.root], ()))
        seen = set()
        while self._queue:
            old_nodes, new_nodes, path = self._queue.popleft()
            key = (_key(self._old, old_nodes), _key(self._new, new_nodes))
            if key not in seen and len(path) <= DEEPEST:
                seen.add(key)
                yield from self._at(old_nodes, new_nodes, path)

    def _at(self, old_nodes: list[Node], new_nodes: list[Node], path: tuple[Step, ...]) -> Iterator[Difference]:
        before, after = self._old.expand(old_nodes, mandatory=True), self._new.expand(new_nodes, mandatory=True)
        yield from self._values(before, after, old_nodes, new_nodes, path)
        yield from _limits(before, after, path)
        yield from _other_words(before, after, path)
        yield from self._members(before, after, old_nodes, new_nodes, path)
        old, new = self._old.items(old_nodes), self._new.items(new_nodes)
        if old or new:
            self._queue.append((old, new, (*path, ITEMS)))
        old, new = self._old.others(old_nodes), self._new.others(new_nodes)
        if any(isinstance(node, dict) for node in (*old, *new)):
            self._queue.append((old, new, (*path, OTHERS)))

    def _values(
        self, before: Schemas, after: Schemas, old_nodes: list[Node], new_nodes: list[Node], path: tuple[Step, ...]
    ) -> Iterator[Difference]:
        enums = (_enumerated(before), _enumerated(after))
        had, has = (None if enum is None else {msgspec.json.encode(v): _short(v) for v in enum} for enum in enums)
        if had is not None and has is not None:
            lost, gained = ([text for value, text in a.items() if value not in b] for a, b in ((had, has), (has, had)))
            if lost:
                yield Difference(path, f"enum lost {_some(lost)}", True, False)
            if gained:
                yield Difference(path, f"enum gained {_some(gained)}", False, True)
            return
        was, now = _types(self._old, old_nodes), _types(self._new, new_nodes)
        if was != now:
            numbers = now | ({"integer"} if "number" in now else set())
            numbered = was | ({"integer"} if "number" in was else set())
            reason = f"type {_either(was)} became {_either(now)}"
            yield Difference(path, reason, not was <= numbers, not now <= numbered)
        elif has is not None:
            yield Difference(path, f"was limited to {_some(has.values())}", True, False)
        if had is not None and has is None:
            yield Difference(path, f"is no longer limited to {_some(had.values())}", False, True)

    def _members(
        self, before: Schemas, after: Schemas, old_nodes: list[Node], new_nodes: list[Node], path: tuple[Step, ...]
    ) -> Iterator[Difference]:
        had, has = self._old.declared(old_nodes), self._new.declared(new_nodes)
        required_fields, needs = _required(before), _required(after)
        was_closed, is_closed = _closed(before), _closed(after)
        for name in {**had, **has}:
            here = (*path, name)
            if name not in has:
                kind = "required property" if name in required_fields else "property"
                yield Difference(here, f"{kind} {_short(name)} was removed", is_closed, True)
            elif name not in had:
                kind = "required" if name in needs else "optional"
                reason = f"{kind} property {_short(name)} was added"
                yield Difference(here, reason, True, was_closed, name in needs)
            else:
                self._queue.append((self._old.member(old_nodes, name), self._new.member(new_nodes, name), here))
        for name in sorted(needs - required_fields):
            if name in had or name not in has:
                yield Difference((*path, name), f"property {_short(name)} was made required", True, False, True)
        for name in sorted(required_fields - needs):
            if name in has or name not in had:
                yield Difference((*path, name), f"property {_short(name)} was made optional", False, True, True)
        if was_closed != is_closed and (had or has or is_closed):
            declared = "may no longer be there" if is_closed else "may be there now"
            yield Difference((*path, OTHERS), f"members that are not named {declared}", is_closed, was_closed)


def _key(document: SchemaDocument, nodes: list[Node]) -> tuple[int, ...]:
    """Return a key that identifies a recursive place: the ids of its schemas, references resolved."""
    return tuple(sorted(id(node) for node in document.expand(nodes) if set(node) != {"$ref"})) or (
        id(next(iter(nodes), None)),
    )


def _limits(before: Schemas, after: Schemas, path: tuple[Step, ...]) -> Iterator[Difference]:
    for words, pick in ((_AT_LEAST, max), (_AT_MOST, min)):
        for word in words:
            had, has = (
                pick((node[word] for node in nodes if _is_number(node.get(word))), default=None)
                for nodes in (before, after)
            )
            if had == has:
                continue
            if had is None:
                yield Difference(path, f"{word} {has} was added", True, False)
            elif has is None:
                yield Difference(path, f"{word} {had} was removed", False, True)
            else:
                up = has > had
                narrows = up == (pick is max)
                step = "raised" if up else "lowered"
                yield Difference(path, f"{word} was {step} from {had} to {has}", narrows, not narrows)


def _other_words(before: Schemas, after: Schemas, path: tuple[Step, ...]) -> Iterator[Difference]:
    """Yield the changes of keywords that are compared verbatim."""
    for word in _OTHER_WORDS:
        ignored = [False] if word == "uniqueItems" else []
        had, has = ([n[word] for n in nodes if word in n and n[word] not in ignored] for nodes in (before, after))
        if word in ("oneOf", "anyOf"):
            had, has = _alternatives(had), _alternatives(has)
        if _encoded(had) == _encoded(has):
            continue
        if not had:
            narrows = word != "anyOf" or not all(map(is_anything, has))
            yield Difference(path, f"{word} {_short_value(has)}was added", narrows, False)
        elif not has:
            yield Difference(path, f"{word} {_short_value(had)}was removed", False, True)
        else:
            became = f" from {_short_value(had)}to {_short_value(has)}".rstrip() if _short_value(had) else ""
            vague = word in ("oneOf", "anyOf")
            yield Difference(path, f"{word} changed{became}", True, True, vague=vague)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _enumerated(nodes: Schemas) -> list[Any] | None:
    for node in nodes:
        if isinstance(node.get("enum"), list):
            return list(node["enum"])
        if "const" in node:
            return [node["const"]]
    return None


def _types(document: SchemaDocument, nodes: Sequence[Node], known: dict[int, set[str]] | None = None) -> set[str]:
    """Return the types that values of a place may have, according to its keywords.

    Args:
        known: the types of each alternative found so far, so that recursive ones are visited once.
    """
    kinds = set(_TYPES) - {"integer"}
    known = {} if known is None else known
    if any(node is False for node in nodes):
        return set()
    for node in document.expand(nodes, mandatory=True):
        declared = _listed_types(node)
        for word in ("anyOf", "oneOf"):
            if isinstance(node.get(word), list):
                for part in node[word]:
                    if id(part) not in known:
                        known[id(part)] = set(kinds)  # while it is looked at: anything
                        known[id(part)] = _types(document, [part], known)
                some = set().union(*(known[id(part)] for part in node[word]))
                declared = some if declared is None else _both(declared, some)
        if declared is not None:
            kinds = _both(kinds, declared)
    return kinds


def _listed_types(node: dict[str, Any]) -> set[str] | None:
    declared = node.get("type")
    if isinstance(declared, (str, list)):
        return {declared} if isinstance(declared, str) else {name for name in declared if isinstance(name, str)}
    values = _enumerated([node])
    return None if values is None else {type_of(value) for value in values}


def _both(types: set[str], others: set[str]) -> set[str]:
    both = types & others
    return both | {"integer"} if {"integer", "number"} <= types | others and "number" not in both else both


def _required(schemas: Schemas) -> set[str]:
    return {name for node in schemas if isinstance(node.get("required"), list) for name in node["required"]}


def _closed(schemas: Schemas) -> bool:
    return any(False in (node.get("additionalProperties"), node.get("unevaluatedProperties")) for node in schemas)


def _alternatives(lists: list[Any]) -> list[Any]:
    """Return the alternatives that consist of more than a type, which is reported separately."""
    return [branch for some in lists if isinstance(some, list) for branch in some if not _is_type(branch)]


def _is_type(node: Node) -> bool:
    return isinstance(node, dict) and not set(node) - {"type", "title", "description"}


def _short_value(values: list[Any]) -> str:
    """Return the value of a keyword if it is short: a pattern, a format, a number."""
    if len(values) == 1 and isinstance(values[0], (str, int, float)) and not isinstance(values[0], bool):
        return f"{_short(values[0])} "
    return ""


def _encoded(values: list[Any]) -> list[bytes]:
    return sorted(msgspec.json.encode(value, order="sorted") for value in values)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return cut(f"'{text[1:-1]}'" if text.startswith('"') else text, 60)


def _some(texts: Collection[str]) -> str:
    return ", ".join(list(texts)[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")


def _either(kinds: set[str]) -> str:
    if kinds >= set(_TYPES) - {"integer"}:
        return "anything"
    return " or ".join(kind for kind in _TYPES if kind in kinds) or "nothing"
