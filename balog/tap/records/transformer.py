"""One stream's records, made to fit its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import balog
from balog.tap.catalog import CatalogEntry
from balog.tap.catalog.selection import PropertySelection
from balog.tap.errors import RecordError
from balog.tap.records.compiler import Compiler
from balog.tap.records.mismatch import MismatchError, named, step
from balog.tap.records.plain import simplify
from balog.tap.records.quarantine import RecordQuarantine
from balog.tap.records.times import EpochUnit

__all__ = ["Policy", "Transformer"]

Policy = Literal["fail", "quarantine", "coerce"]
"""What happens to a record that breaks its schema: ``fail`` ends the stream at it; ``quarantine`` sets it aside and
goes on; ``coerce`` makes of each value what the schema wants where that loses nothing, and quarantines what is left."""

_MAX_NOTED = 50


class Transformer:
    """Compiled once for a stream; called for each record.

    What a policy does not change: a record without a key property breaks the schema, whatever that says. Properties
    that were not selected are left out, in nested objects too. So are those that the schema does not have, unless it
    says ``additionalProperties`` or has no properties at all; each is told of once, with a WARNING that names it.
    Values that only Python has become JSON's, see ``plain.simplify``.

    With ``coerce`` besides: texts of numbers become numbers with all of their digits, ``true``, ``false``, 1 and 0
    booleans, the usual forms of times RFC 3339 in UTC, other values texts; an empty text, and a number that is not
    finite, becomes null where null may be and nothing else fits. Of ``anyOf`` the first that fits as it is counts, else
    the first that can be coerced. What is looked at beyond types is in ``limits``.

    Args:
        entry: schema and selection.
        policy: see ``Policy``.
        after: called with a copy of each record that came out; gives the record that is written, or None to leave it
            out. What it gives has to fit the schema too.
        epoch: what integers are where the schema wants a ``date-time``: ``"seconds"`` or ``"milliseconds"`` since 1970.
        quarantine: where records go that are set aside; without one, such a record is a ``RecordError`` as with
            ``fail``.
        log: a logger with the stream bound.

    Attributes:
        schema: the schema of what comes out: that of the entry without what was not selected.
        left_out: records that the hook left out so far.
        quarantined: records set aside so far.

    Raises:
        TapError: the schema refers to what is not in it.
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
        self._noted: set[str] = set()
        selection = PropertySelection(entry)
        compiler = Compiler(entry.schema, selection.is_selected, epoch, self._note)
        node = compiler.compile(_with_keys(entry), coerces=policy == "coerce")
        self._fit = node.by_type.get(dict, node.make)
        self.schema = selection.schema

    def __call__(self, record: Any) -> dict[str, Any] | None:
        """Return a record as it is written; None if it was left out or quarantined. The given record is not changed.

        Args:
            record: a dict, a mapping, or an object with fields: a dataclass, a Struct, a model.

        Raises:
            RecordError: it breaks the schema, and the policy is ``fail``; or too many do.
        """
        try:
            made = self._fit(record if type(record) is dict else _record(record))
            if self._after is None:
                return made  # type: ignore[no-any-return]
            changed = self._after(made.copy() if made is record else made)
            if changed is None:
                self.left_out += 1
                return None
            return self._fit(_record(changed))  # type: ignore[no-any-return]
        except MismatchError as fault:
            self.refuse(record, RecordError(self.entry.stream, fault.reason, fault.path))
            return None
        except RecursionError:
            self.refuse(record, RecordError(self.entry.stream, "is nested too deep"))
            return None

    def page(self, records: Iterable[Any]) -> list[dict[str, Any]]:
        """Return those of a page's records that are written; see ``__call__``."""
        made = map(self, records)
        return [record for record in made if record is not None]

    def refuse(self, record: Any, error: RecordError) -> None:
        """Do with a record what the policy says; also for one that could not be written for another reason.

        Raises:
            RecordError: the given one, with ``fail`` or without a quarantine; another when there are too many, or it
                can't be kept.
        """
        if self.policy == "fail" or self._quarantine is None:
            raise error
        self._quarantine.put(error, record)
        self.quarantined += 1

    def _note(self, where: str, name: str) -> None:
        place = f"{where}{step(name)}"
        if place in self._noted or len(self._noted) >= _MAX_NOTED:
            return
        self._noted.add(place)
        more = "; no more of them are told of" if len(self._noted) == _MAX_NOTED else ""
        self._log.warning(
            f"{self.entry.stream}: {place} is left out: the schema does not have it, nor additionalProperties{more}"
        )


def _with_keys(entry: CatalogEntry) -> dict[str, Any]:
    """Return the schema with the key properties required: without them a target knows no row."""
    required = entry.schema.get("required")
    return {**entry.schema, "required": [*(required if isinstance(required, list) else ()), *entry.key_properties]}


def _record(record: Any) -> dict[str, Any]:
    found = record if isinstance(record, dict) else simplify(record)
    if isinstance(found, dict):
        return found
    raise MismatchError(f"want a record, which is an object, got {named(record)}")
