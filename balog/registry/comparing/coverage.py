"""Decides whether a schema accepts every payload that another schema accepts: yes, no, or unknown.

jsonschema-rs decides with canonical forms. It cannot decide for some schemas, for example recursive ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from balog.registry.comparing.document import Node, SchemaDocument

Answer = Literal["yes", "no", "unknown"]


def covers(
    reader: SchemaDocument, writer: SchemaDocument, reads: Sequence[Node] = (), writes: Sequence[Node] = ()
) -> Answer:
    """Decide whether the reader accepts every value that the writer accepts.

    Args:
        reads, writes: the subschemas to compare; the roots if omitted.
    """
    new, old = reader.canonical(list(reads or [reader.root])), writer.canonical(list(writes or [writer.root]))
    if new is None or old is None:
        return "unknown"
    try:
        answer: Answer = new.covers(old).value
    except ValueError:  # of two drafts
        return "unknown"
    return answer
