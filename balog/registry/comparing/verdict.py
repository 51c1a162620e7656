"""The result of comparing two versions of a type."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Mode = Literal["backward", "forward", "full", "backward_transitive", "forward_transitive", "full_transitive"]
"""Backward: readers of the new version can read events of the old one. Forward: the reverse."""

Layer = Literal["json", "wire"]

Bump = Literal["none", "patch", "minor", "major"]
"""The least increment of the version that a change requires."""


class CompatibilityFinding(Struct, frozen=True, kw_only=True):
    """One finding of a comparison.

    Attributes:
        layer: the layer of the rule.
        path: a JSONPath in the payload (``$.lines[*].price``), or the full name of a protobuf field.
        reason: the change, as a clause.
        breaks: the versions are incompatible in the requested mode.
        undecided: neither compatibility nor a break could be proved, which counts as a break.
    """

    layer: Layer
    path: str
    reason: str
    breaks: bool = True
    undecided: bool = False


class CompatibilityReport(Struct, frozen=True, kw_only=True):
    """The result of a comparison: compatible or not, the required version increment, and the findings."""

    compatible: bool
    bump: Bump
    findings: list[CompatibilityFinding] = []
