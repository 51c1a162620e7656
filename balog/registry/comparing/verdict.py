"""What a comparison of two schemas says."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

__all__ = ["Bump", "CompatibilityFinding", "CompatibilityReport", "Layer", "Mode"]

Mode = Literal["backward", "forward", "full", "backward_transitive", "forward_transitive", "full_transitive"]
"""Backward: who knows the new version can read what was written by the old one. Forward: the other way round."""

Layer = Literal["json", "wire", "table"]

Bump = Literal["none", "patch", "minor", "major"]
"""The least step of the version that a change asks for."""


class CompatibilityFinding(Struct, frozen=True, kw_only=True):
    """One thing that a comparison found.

    Attributes:
        layer: whose rule it is.
        path: where in a payload, as a JSONPath (``$.lines[*].price``), or a protobuf field's full name.
        reason: what, as a clause.
        breaks: whether it makes the versions incompatible in the mode that was asked for.
        undecided: it could not be proved either way, which counts as a break.
        example: a payload that one side takes and the other refuses, where there is one.
        refused_by: which side refuses the example; "" where nothing breaks.
        ddl: of the table layer, what would be done to the table.
    """

    layer: Layer
    path: str
    reason: str
    breaks: bool = True
    undecided: bool = False
    example: Any = None
    refused_by: Literal["old", "new", ""] = ""
    ddl: str = ""


class CompatibilityReport(Struct, frozen=True, kw_only=True):
    """Whether a new version may follow, why not, and the least version that it may have.

    ``defects`` has a line for each payload on which balog's two validators of JSON Schema disagree.
    """

    compatible: bool
    bump: Bump
    findings: list[CompatibilityFinding] = []
    defects: list[str] = []
