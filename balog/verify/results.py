"""Rules and their results."""

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
"""The groups, in the order of a report."""


class VerifyRule(Struct, frozen=True, kw_only=True):
    """A practice that taps should follow.

    Attributes:
        id: the name in reports, such as ``records-match-schema``.
        group: the subject.
        title: what a tap should do, as a sentence.
        severity: ``error`` if targets lose or reject data, ``warning`` if operators suffer, else ``advice``.
        weight: the part of the score.
        source: the origin of the rule: a page of the Singer specification, or a common practice.
        remedy: what the tap's author should do, as a sentence.
    """

    id: str
    group: Group
    title: str
    severity: Severity
    weight: int
    source: str
    remedy: str


class RuleResult(Struct, frozen=True, kw_only=True):
    """A result of one rule.

    Attributes:
        rule: see ``VerifyRule``. Severity and weight are raised for grave violations.
        outcome: ``skipped`` if the rule could not be judged; the detail is the reason.
        detail: what was found and where, without values of records and without secrets.
        stream: the stream's name; "" for results without one.
    """

    rule: VerifyRule
    outcome: Outcome
    detail: str = ""
    stream: str = ""
