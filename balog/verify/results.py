"""A rule, and what it found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["GROUPS", "Group", "Outcome", "RuleResult", "Severity", "VerifyRule"]

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["passed", "failed", "skipped"]
Group = Literal["discovery", "selection", "output", "records", "state", "stopping", "failing", "telling"]

GROUPS: tuple[Group, ...] = (
    *("discovery", "selection", "output", "records"),
    *("state", "stopping", "failing", "telling"),
)
"""In the order of a report."""


class VerifyRule(Struct, frozen=True, kw_only=True):
    """One practice.

    Attributes:
        id: as it is named in reports, ``records-match-schema``.
        group: what it is about.
        title: what a tap should do, as a sentence.
        severity: ``error`` where a target loses or refuses data, ``warning`` where an operator suffers, ``advice``
            else.
        weight: its part of the score.
        source: where the rule comes from: a page of the Singer specification, or who practises it.
        remedy: what the tap's author does about it, as a sentence.
    """

    id: str
    group: Group
    title: str
    severity: Severity
    weight: int
    source: str
    remedy: str


class RuleResult(Struct, frozen=True, kw_only=True):
    """What one rule says of one tap.

    Attributes:
        rule: see ``VerifyRule``; its severity and weight are higher than the rule's own where what was seen is grave.
        outcome: ``skipped`` where the run had nothing to look at; the detail says why.
        detail: what was seen, and where: the stream, the line of stdout. No value of a record, and no secret.
        stream: "" where it is of none.
    """

    rule: VerifyRule
    outcome: Outcome
    detail: str = ""
    stream: str = ""
