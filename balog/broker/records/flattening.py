"""Flatten nested objects: ``{"address": {"city": "Bonn"}}`` becomes ``{"address__city": "Bonn"}``.

Which objects are opened is said by the stream's schema: those whose properties it names, and only where the value is
never anything but such an object or null. A null in such an object's place becomes a null for each of its properties,
so that a target forgets what it had. Before a SCHEMA has come each object is opened that has properties.
"""

from __future__ import annotations

import copy
from typing import Any

from msgspec import Raw, Struct

from balog.broker.records.config import Flatten
from balog.broker.records.json_members import Members, UnreadableError, read_members
from balog.broker.records.schemas import Node, inline, loosen, nullable, parts, types

_NULL = Raw(b"null")


class Opened(Struct, frozen=True):
    """A flattened object: its properties that are flattened, too, and the resulting full names."""

    plan: dict[str, Opened]
    names: list[str]


Plan = dict[str, Opened]


def flatten_record(record: Members, plan: Plan | None, options: Flatten) -> Members:
    """Flatten a record by a plan, or by its own shape without a plan.

    Raises:
        UnreadableError: two values have the same name then, or an object cannot be read.
    """
    flat: Members = {}
    if plan is None:
        _open_by_shape(record, "", options.separator, options.max_depth, flat)
    else:
        _open(record, "", options.separator, plan, flat)
    return flat


def _open(members: Members, prefix: str, separator: str, plan: Plan, flat: Members) -> None:
    for name, raw in members.items():
        opened = plan.get(name)
        first = bytes(raw)[:1] if opened is not None else b""
        if opened is not None and first == b"{":
            _open(read_members(raw), f"{prefix}{name}{separator}", separator, opened.plan, flat)
        elif opened is not None and first == b"n":
            for full in opened.names:
                _put(flat, full, _NULL)
        else:
            _put(flat, prefix + name, raw)


def _open_by_shape(members: Members, prefix: str, separator: str, depth: int, flat: Members) -> None:
    for name, raw in members.items():
        inner = read_members(raw) if depth and bytes(raw)[:1] == b"{" else None
        if inner:
            _open_by_shape(inner, f"{prefix}{name}{separator}", separator, depth - 1, flat)
        else:
            _put(flat, prefix + name, raw)


def _put(flat: Members, name: str, raw: Raw) -> None:
    if name in flat:
        raise UnreadableError("laid flat, two of its properties have the same name; choose another separator")
    flat[name] = raw


def flatten_schema(schema: Node, options: Flatten) -> Plan:
    """Flatten a schema in place, and return the plan for its records.

    Raises:
        KeyError: two properties would have the name that it holds.
    """
    flattening = _Flattening(schema, options)
    if not isinstance(schema.get("properties"), dict):
        return {}
    plan, _ = flattening.open(copy.deepcopy(schema), "", options.max_depth, is_nullable=False, is_required=True)
    if not plan:
        return plan
    loosen(schema, schema)
    for keyword in ("allOf", "anyOf", "oneOf", "required"):
        schema.pop(keyword, None)
    if flattening.is_open:
        schema.pop("additionalProperties", None)
        schema.pop("patternProperties", None)
    schema["properties"] = flattening.properties
    if flattening.required:
        schema["required"] = flattening.required
    return plan


class _Flattening:
    def __init__(self, root: Node, options: Flatten) -> None:
        self._root = root
        self._separator = options.separator
        self.properties: Node = {}
        self.required: list[str] = []
        self.is_open = False

    def open(
        self, node: Node, prefix: str, depth: int, *, is_nullable: bool, is_required: bool
    ) -> tuple[Plan, list[str]]:
        """Collect an object's properties under their full names; return its plan, and those names."""
        plan: Plan = {}
        names: list[str] = []
        demanded = parts(node, "required") if is_required else []
        for name, child in node["properties"].items():
            full = prefix + name
            inner = _object(child, self._root) if depth else None
            if inner is None:
                self._add(full, nullable(child) if is_nullable else child, name in demanded)
                names.append(full)
                continue
            part, may_be_null = inner
            self.is_open |= part.get("additionalProperties") is not False or "patternProperties" in part
            below = self.open(
                part,
                full + self._separator,
                depth - 1,
                is_nullable=is_nullable or may_be_null,
                is_required=name in demanded,
            )
            plan[name] = Opened(*below)
            names += below[1]
        return plan, names

    def _add(self, name: str, schema: Any, is_required: bool) -> None:
        if name in self.properties:
            raise KeyError(name)
        self.properties[name] = schema
        if is_required:
            self.required.append(name)


def _object(node: Any, root: Node) -> tuple[Node, bool] | None:
    """Return the schema of an object with named properties, and whether it is nullable; None for other values."""
    kinds = types(node, root)
    if kinds is None or "object" not in kinds or not kinds <= {"object", "null"}:
        return None
    node = dict(node)
    inline(node, root)
    may_be_null = "null" in kinds
    branches = [part for keyword in ("allOf", "anyOf", "oneOf") for part in parts(node, keyword)]
    if node.get("properties") and isinstance(node["properties"], dict):
        return None if branches else (node, may_be_null)
    objects = [part for part in branches if "object" in (types(part, root) or ())]
    inner = _object(objects[0], root) if len(objects) == 1 else None
    return None if inner is None else (inner[0], may_be_null)
