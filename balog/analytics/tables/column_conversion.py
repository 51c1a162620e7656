"""Converts payloads to the typed columns of their table, in workers and as Arrow, without losing a value.

Each payload is decoded directly into objects with a slot for each column, which checks its types. A payload that does
not fit is converted value by value (see ``placement``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Annotated, Any, Literal, Union

import msgspec
import pyarrow as pa
from msgspec import Meta
from pyspark.sql import types as t

from balog.analytics.reading.parser import inexact_lines
from balog.analytics.reading.spark_types import arrow_type
from balog.analytics.tables.placement import (
    EXACT,
    WHOLE,
    assign_values,
    columns_by_field,
    is_empty,
    raw_number,
    read_number,
)
from balog.analytics.tables.table_schema import RECOVERED, payload_fields

_TOGETHER = 256
"""Payloads to decode in one call; if one does not fit, all of them are decoded one by one."""

_UNFIT = (msgspec.MsgspecError, RecursionError, UnicodeError)
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_NOTHING = msgspec.defstruct("Nothing", [], forbid_unknown_fields=True)
_VOID: Any = Union[_NOTHING, list[None], None]  # noqa: UP007
_SURE_TIMESTAMP = (
    r"^[12]\d{3}-(0[1-9]|1[0-2])-([01][1-9]|10|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
    r"(Z|[+-](0\d|1[0-4]):[0-5]\d)\Z"
)
"""Matches timestamps that Arrow certainly parses, because every month has such a day."""

_MOST_LEARNED = 200
"""The number of fields without a column that are known to be empty."""


class Columns:
    """Converts payloads to the columns of a payload type's table.

    Args:
        schema: the table's schema.
        cls_type: the payload type; the field ``cls_type`` with this value needs no column.
    """

    def __init__(self, schema: t.StructType, cls_type: str) -> None:
        self._fields = payload_fields(schema)
        self._columns_by_field = columns_by_field(schema, self._fields)
        self._cls_type = cls_type
        self._void: dict[str, Any] = {"cls_type": cls_type}
        self._model = _Model(self._columns_by_field, self._void)

    def values_without_column(self, texts: Sequence[bytes]) -> Iterator[dict[str, Any]]:
        """Yield the values of each payload that have no column; payloads without such values are skipped."""
        for _, some, rows in self._pieces(texts):
            for text, row in zip(some, rows):
                if row is None and (rest := self._convert(text)[1]):
                    yield rest

    def _pieces(self, texts: Sequence[bytes]) -> Iterator[tuple[_Model, Sequence[bytes], list[Any]]]:
        """Yield payloads in groups, with their objects and the model of those.

        Only its own model can read an object: others have the fields in other slots.
        """
        for start in range(0, len(texts), _TOGETHER):
            some = texts[start : start + _TOGETHER]
            model = self._model
            yield model, some, model.decode(some)

    def _convert(self, text: bytes) -> tuple[dict[str, Any], dict[str, Any] | None]:
        try:
            payload = _PLAIN.decode(text)
            if not isinstance(payload, dict):
                return {}, None
            if payload.get("cls_type") == self._cls_type and "cls_type" not in self._columns_by_field:
                del payload["cls_type"]
            taken, rest = assign_values(payload, self._columns_by_field)
            self._learn(payload)
        except _UNFIT:
            return {}, None
        return taken, rest

    def _learn(self, payload: dict[str, Any]) -> None:
        """Remember empty fields, which many programs write each time, for the next group."""
        known = {*self._columns_by_field, *self._void}
        new = {name for name, value in payload.items() if name not in known and is_empty(value)}
        if new and len(self._void) < _MOST_LEARNED:
            self._void |= dict.fromkeys(new)
            self._model = _Model(self._columns_by_field, self._void)

    def arrays(self, texts: Sequence[bytes]) -> dict[str, pa.Array]:
        """Return the columns of payloads by name, including ``payload_recovered``."""
        read: list[tuple[_Model, list[Any]]] = []  # runs of rows of one model
        slow: dict[int, tuple[dict[str, Any], str | None]] = {}
        count = 0
        for model, some, rows in self._pieces(texts):
            for number, (text, row) in enumerate(zip(some, rows), count):
                if row is None:
                    taken, rest = self._convert(text)
                    kept = text if rest is None else _EXACT_JSON.encode(rest) if rest else None
                    slow[number] = taken, None if kept is None else kept.decode(errors="replace")
            count += len(rows)
            if read and read[-1][0] is model:
                read[-1][1].extend(rows)
            else:
                read.append((model, rows))
        parts = [model.arrays(rows) for model, rows in read] or [self._model.arrays([])]
        columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
        columns[RECOVERED] = pa.nulls(count, pa.string())
        if slow:
            order = [-1] * count
            for number, index in enumerate(slow):
                order[index] = count + number
            takes = pa.array([index if other < 0 else other for index, other in enumerate(order)])
            for column in self._fields:
                kind = arrow_type(column.dataType)
                patch = pa.array([taken.get(column.name) for taken, _ in slow.values()], kind)
                columns[column.name] = pa.concat_arrays([columns[column.name], patch]).take(takes)
            kept_texts = pa.array([kept for _, kept in slow.values()], pa.string())
            columns[RECOVERED] = pa.concat_arrays([columns[RECOVERED], kept_texts]).take(takes)
        return columns


_PLAIN = msgspec.json.Decoder(float_hook=read_number)
_EXACT_JSON = msgspec.json.Encoder(enc_hook=raw_number)


class _Model:
    """A msgspec type for objects with certain fields, and the conversion of such objects to columns.

    msgspec does not support field names that JSON escapes; payloads with such a field are converted value by value.
    """

    def __init__(self, columns: dict[str, list[t.StructField]], void: dict[str, Any] | None = None) -> None:
        self._slots: list[tuple[str, list[_Slot]]] = []
        hints: dict[str, Any] = {}
        for field, several in columns.items():
            taken: set[str] = set()
            slots = [_Slot(column, taken) for column in several]
            hints[field] = _either(*(slot.hint for slot in slots if slot.hint is not None), None)
            self._slots.append((field, slots))
        hints = {**dict.fromkeys(void or {}, _VOID), **hints}
        if void and void.get("cls_type") is not None:
            hints["cls_type"] = Literal[void["cls_type"]]
        names = {f"f{number}": field for number, field in enumerate(hints) if _ESCAPED.search(field) is None}
        self._attributes = {field: name for name, field in names.items()}
        fields = [(name, hints[field], None) for name, field in names.items()]
        self.type: Any = msgspec.defstruct("Fields", fields, rename=names, forbid_unknown_fields=True, gc=False)
        self._empty = self.type()
        self._one = msgspec.json.Decoder(self.type).decode
        self._many = msgspec.json.Decoder(list[self.type]).decode  # type: ignore[name-defined]

    def decode(self, texts: Sequence[bytes]) -> list[Any]:
        """Return an object for each payload, or None for one that does not fit."""
        joined = b"[" + b",\n".join(texts) + b"]"
        inexact = set(inexact_lines(joined))
        if inexact:
            if joined.count(b"\n") >= len(texts):  # some texts have several lines
                inexact = {number for number, text in enumerate(texts) if inexact_lines(text)}
            return [None if number in inexact else self._single(text) for number, text in enumerate(texts)]
        try:
            objects = self._many(joined)
        except _UNFIT:
            objects = []
        return objects if len(objects) == len(texts) else list(map(self._single, texts))

    def _single(self, text: bytes) -> Any:
        try:
            return self._one(text)
        except _UNFIT:
            return None

    def arrays(self, rows: Sequence[Any]) -> dict[str, pa.Array]:
        """Return the columns of rows; None is a row of nulls."""
        rows = [self._empty if row is None else row for row in rows]
        columns = {}
        for field, slots in self._slots:
            attribute = self._attributes.get(field)
            values = [None] * len(rows) if attribute is None else list(map(attrgetter(attribute), rows))
            for slot in slots:
                mine = (
                    values if len(slots) == 1 else [value if type(value) in slot.python else None for value in values]
                )
                columns[slot.column.name] = slot.array(mine)
        return columns


class _Slot:
    """One column of a field: ``hint`` is the msgspec type of its values, None if they are converted by value."""

    def __init__(self, column: t.StructField, taken: set[str]) -> None:
        self.column = column
        self.hint: Any = None
        self.python: tuple[type, ...] = ()
        self._inner: _Slot | _Model | None = None
        kind = column.dataType
        if type(kind) in WHOLE and not taken & {"int", "float"}:
            bound = 1 << WHOLE[type(kind)]
            self._take(taken, Annotated[int, Meta(ge=-bound, le=bound - 1)], int)
        elif isinstance(kind, t.DoubleType) and "float" not in taken:
            whole = () if "int" in taken else (Annotated[int, Meta(ge=-EXACT, le=EXACT)],)
            self._take(taken, _either(float, *whole), float, *(int for _ in whole))
        elif isinstance(kind, t.BooleanType) and "bool" not in taken:
            self._take(taken, bool, bool)
        elif isinstance(kind, t.StringType) and "str" not in taken:
            # If a number column has precedence, a text that may be a number has to be converted by value.
            self._take(taken, Annotated[str, Meta(pattern="^(?![-0-9])")] if taken & {"int", "float"} else str, str)
        elif isinstance(kind, t.TimestampType) and "str" not in taken:
            self._take(taken, Annotated[str, Meta(pattern=_SURE_TIMESTAMP)], str)
        elif isinstance(kind, t.StructType) and "object" not in taken:
            self._inner = _Model(columns_by_field(kind))
            self._take(taken, self._inner.type, self._inner.type)
        elif isinstance(kind, t.ArrayType) and "list" not in taken:
            self._inner = _Slot(t.StructField("element", kind.elementType), set())
            self._take(taken, list[_either(self._inner.hint, None)], list)  # type: ignore[misc]

    def _take(self, taken: set[str], hint: Any, *python: type) -> None:
        self.hint, self.python = hint, python
        names = {dict: "object", int: "int", float: "float", bool: "bool", str: "str", list: "list"}
        taken |= {names.get(kind, "object") for kind in python}

    def array(self, values: list[Any]) -> pa.Array:
        """Return values of the types in ``python``, or None, as an Arrow array of the column's type."""
        kind = arrow_type(self.column.dataType)
        if isinstance(self._inner, _Model):
            children = self._inner.arrays(values)
            fields = [kind.field(number) for number in range(kind.num_fields)]
            nulls = pa.array([value is None for value in values], pa.bool_())
            return pa.StructArray.from_arrays([children[field.name] for field in fields], fields=fields, mask=nulls)
        if isinstance(self._inner, _Slot):
            ends = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
            nulls = pa.array([value is None for value in values], pa.bool_())
            items = [item for value in values if value is not None for item in value]
            return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), self._inner.array(items), kind, mask=nulls)
        if isinstance(self.column.dataType, t.TimestampType):
            return pa.array(values, pa.string()).cast(kind)
        return pa.array(values, kind)


def _either(*kinds: Any) -> Any:
    return Union[kinds]  # noqa: UP007
