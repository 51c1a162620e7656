"""The transformation of a stream's records to its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import balog
from balog.tap.catalog import CatalogEntry
from balog.tap.catalog.entry import PropertySelection
from balog.tap.errors import RecordError
from balog.tap.json_schema.keywords import listed
from balog.tap.json_schema.mismatch import MismatchError, step, type_name
from balog.tap.records.compiler import Compiler
from balog.tap.records.plain import simplify
from balog.tap.records.record_quarantine import RecordQuarantine
from balog.tap.records.times import EpochUnit
from balog.tap.records.validation import needs_validation

Policy = Literal["fail", "quarantine", "coerce"]
"""The treatment of a record that breaks its schema: ``fail`` ends the stream; ``quarantine`` moves the record to the
quarantine and continues; ``coerce`` converts values to the schema's types without loss, and quarantines the rest."""

_MAX_NOTED = 50


class Transformer:
    """Makes the records of one stream fit its schema. Create it once per stream and call it for each record.

    With every policy, a record without a key property breaks the schema. Properties that are not selected are left out,
    in nested objects, too. So are properties that the schema does not declare, unless it has ``additionalProperties``
    or no properties at all; each is reported once, with a WARNING. Python types become JSON types, see
    ``plain.simplify``.

    With ``coerce``, strings of numbers become numbers with all their digits; ``true``, ``false``, 1 and 0 become
    booleans; usual forms of times become RFC 3339 in UTC; other values become strings. An empty string, and a number
    that is not finite, becomes null if null is allowed and nothing else fits. Of ``anyOf``, the first schema that the
    value fits unchanged applies, else the first that it can be coerced to. The result is validated by jsonschema-rs.

    Args:
        entry: schema and selection.
        policy: see ``Policy``.
        after: called with a copy of each resulting record. Returns the record to write, which must fit the schema,
            too, or None to leave the record out.
        epoch: the unit of integers where the schema expects a ``date-time``: ``"seconds"`` or ``"milliseconds"``
            since 1970.
        quarantine: receives the rejected records. Without a quarantine, a rejected record raises ``RecordError`` as
            with ``fail``.
        log: a logger with the stream bound.

    Attributes:
        schema: the schema of the results: that of the entry without deselected properties.
        left_out: number of records that ``after`` left out.
        quarantined: number of quarantined records.
        removed: the first paths that were left out because the schema does not have them.

    Raises:
        TapError: a reference of the schema has no target in it.
    """

    def __init__(
        self,
        entry: CatalogEntry,
        policy: Policy = "coerce",
        after: Callable[[dict[str, Any]], Any] | None = None,
        *,
        epoch: EpochUnit | None = None,
        quarantine: RecordQuarantine | None = None,
        log: Any = None,
    ) -> None:
        self.entry = entry
        self.policy = policy
        self.left_out = 0
        self.quarantined = 0
        self._after = after
        self._log = log if log is not None else balog.get_logger("balog.tap.records")
        self._quarantine = quarantine
        self.removed: list[str] = []
        selection = PropertySelection(entry)
        compiler = Compiler(entry.schema, selection.is_selected, epoch, self._note)
        schema = _with_keys(entry)
        node = compiler.compile(schema, coerces=policy == "coerce")
        fit = node.by_type.get(dict, node.make)
        self._fit = fit
        if needs_validation(schema):
            validator = compiler.validator(schema)
            if fault := validator.fault():
                self._log.warning(f"{entry.stream}: only types are checked, because the schema is not valid: {fault}")
            else:
                self._fit = lambda record: validator.check(fit(record))
        self.schema = selection.schema

    def __call__(self, record: Any) -> dict[str, Any] | None:
        """Return a record as it is written; None if it was left out or quarantined. The given record is not changed.

        Args:
            record: a dict, a mapping, or an object with fields: a dataclass, a Struct, a model.

        Raises:
            RecordError: the record breaks the schema and the policy is ``fail``, or too many records do.
        """
        try:
            fitted_record = self._fit(record if type(record) is dict else _record(record))
            if self._after is None:
                return fitted_record  # type: ignore[no-any-return]
            changed = self._after(fitted_record.copy() if fitted_record is record else fitted_record)
            if changed is None:
                self.left_out += 1
                return None
            return self._fit(_record(changed))  # type: ignore[no-any-return]
        except MismatchError as mismatch:
            self.refuse(record, RecordError(self.entry.stream, mismatch.reason, mismatch.path))
            return None
        except RecursionError:
            self.refuse(record, RecordError(self.entry.stream, "is nested too deep"))
            return None

    def page(self, records: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the records of a page that are written; see ``__call__``."""
        fitted_records = map(self, records)
        return [record for record in fitted_records if record is not None]

    def refuse(self, record: Any, error: RecordError) -> None:
        """Apply the policy to a record that breaks its schema or cannot be written.

        Raises:
            RecordError: the given error with ``fail`` or without a quarantine; another if the quarantine is full or
                cannot be written.
        """
        if self.policy == "fail" or self._quarantine is None:
            raise error
        self._quarantine.put(error, record)
        self.quarantined += 1

    def _note(self, where: str, name: str) -> None:
        path = f"{where}{step(name)}"
        if path in self.removed or len(self.removed) >= _MAX_NOTED:
            return
        self.removed.append(path)
        more = "; further ones are not reported" if len(self.removed) == _MAX_NOTED else ""
        self._log.warning(
            f"{self.entry.stream}: {path} is left out: the schema does not have it, nor additionalProperties{more}"
        )


def _with_keys(entry: CatalogEntry) -> dict[str, Any]:
    """Return the schema with the key properties required: without them a target cannot identify rows."""
    required = listed(entry.schema, "required")
    keys = (key for key in dict.fromkeys(entry.key_properties) if key not in required)
    return {**entry.schema, "required": [*required, *keys]}


def _record(record: Any) -> dict[str, Any]:
    fields = record if isinstance(record, dict) else simplify(record)
    if isinstance(fields, dict):
        return fields
    raise MismatchError(f"expected a record, which is an object, got {type_name(record)}")
