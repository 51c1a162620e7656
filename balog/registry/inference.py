"""Infers a draft schema from samples. Review a draft before you register it.

Every sample is valid against the draft. The draft asserts only what the samples show:

- a member is required if every object has it; additional members are allowed;
- a number is an integer if no sample has a fraction or an exponent; null is a separate type;
- a string has a format (date-time, date, uuid, ipv4, ipv6, email, web address) if every sample has it;
- a string is an enum if there are at most 10 distinct values, in at least 20 samples, each 4 times on average;
- an object is a map of any values if it has many members, and few of them occur in each sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from balog.common.errors import EventError
from balog.registry.json_schema import JsonValidator
from balog.registry.subschemas import type_of

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_MOST_VALUES = 10
_LEAST_SAMPLES = 20
_LEAST_REPEATED = 4
_LONGEST_VALUE = 40
_MAP_MEMBERS = 50
_MOST_MEMBERS = 2000
_DEEPEST = 60
_FORMATS = ("date-time", "date", "uuid", "ipv4", "ipv6", "email", "uri")


class Inference:
    """Collects payloads of one type and drafts their schema.

    Args:
        formats: a predicate for each format to detect. None detects all formats with jsonschema-rs.
    """

    def __init__(self, formats: Mapping[str, Callable[[str], bool]] | None = None) -> None:
        if formats is None:
            formats = {name: JsonValidator({"format": name}).is_valid for name in _FORMATS}
        self._formats = formats
        self._root = _Place()
        self.count = 0

    def add(self, payload: bytes) -> None:
        """Add a payload.

        Raises:
            EventError: the payload is not a JSON object.
        """
        try:
            document = msgspec.json.decode(payload, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise EventError(f"expected a JSON object: {error}") from None
        self._root.add(document, self._formats, 0)
        self.count += 1

    def draft(self) -> dict[str, Any]:
        """Return the draft without a type's name and version."""
        return self._root.schema()

    def schema(self, type: str) -> dict[str, Any]:
        """Return the draft schema of a type."""
        return _as_type(self.draft(), type, f"A draft from {self.count} sample{'s' * (self.count != 1)}.")


class _Place:
    """The values at one path of the samples."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.values: Counter[str] | None = Counter()
        self.formats: set[str] | None = None
        self.members: dict[str, _Place] = {}
        self.present: Counter[str] = Counter()
        self.items: _Place | None = None
        self.is_open = self.is_map = False

    def add(self, value: Any, formats: Mapping[str, Callable[[str], bool]], depth: int) -> None:
        if depth > _DEEPEST:
            self.is_open = True
        if self.is_open:
            return
        kind = type_of(value)
        self.kinds[kind] += 1
        if kind == "string":
            self._add_text(value, formats)
        elif kind == "array":
            self.items = self.items or _Place()
            for item in value:
                self.items.add(item, formats, depth + 1)
        elif kind == "object":
            for name, inner in value.items():
                if name in self.members or len(self.members) < _MOST_MEMBERS:
                    self.present[name] += 1
                    self.members.setdefault(name, _Place()).add(inner, formats, depth + 1)
                else:
                    self.is_map = True

    def _add_text(self, text: str, formats: Mapping[str, Callable[[str], bool]]) -> None:
        if self.values is not None:
            self.values[text] += 1
            if len(self.values) > _MOST_VALUES or len(text) > _LONGEST_VALUE:
                self.values = None
        candidates = formats if self.formats is None else self.formats
        if candidates:
            self.formats = {name for name in candidates if _may_be(text, name) and formats[name](text)}

    def schema(self) -> dict[str, Any]:
        if self.is_open:
            return {}
        kinds = [
            kind for kind in ("null", "boolean", "integer", "number", "string", "array", "object") if self.kinds[kind]
        ]
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        if not kinds:
            return {}
        schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
        if "string" in kinds:
            schema.update(self._text())
        if "array" in kinds and self.items is not None and (items := self.items.schema()):
            schema["items"] = items
        if "object" in kinds:
            schema.update(self._object())
        return schema

    def _text(self) -> dict[str, Any]:
        for name in _FORMATS:
            if self.formats and name in self.formats:
                return {"format": name}
        total = self.kinds["string"]
        if (
            self.values
            and set(self.kinds) == {"string"}
            and total >= max(_LEAST_SAMPLES, _LEAST_REPEATED * len(self.values))
        ):
            return {"enum": sorted(self.values)}
        return {}

    def _object(self) -> dict[str, Any]:
        total = self.kinds["object"]
        if self.is_map or (len(self.members) > _MAP_MEMBERS and self.present.total() < total * len(self.members) / 2):
            return {}
        required = [name for name in self.members if self.present[name] == total]
        keywords: dict[str, Any] = {}
        if required:
            keywords["required"] = required
        if self.members:
            keywords["properties"] = {name: member.schema() for name, member in self.members.items()}
        return keywords


def _may_be(text: str, format: str) -> bool:
    """Return False for values that match a format by accident: ``state:done`` is a valid URI."""
    return format != "uri" or text.startswith(("http://", "https://"))


def _as_type(document: dict[str, Any], type: str, description: str) -> dict[str, Any]:
    """Add ``cls_type`` and ``version`` to the schema of an object."""
    own = {"cls_type": {"const": type}, "version": {"type": "string"}}
    properties = {name: inner for name, inner in document.get("properties", {}).items() if name not in own}
    required = [name for name in document.get("required", []) if name not in own]
    rest = {name: value for name, value in document.items() if name not in ("type", "required", "properties")}
    return {
        "$schema": _DRAFT,
        "title": type,
        "description": description,
        "type": "object",
        "required": ["cls_type", *required],
        "properties": {**own, **properties},
        **rest,
    }
