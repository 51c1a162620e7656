"""Rules and their results."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["passed", "failed", "skipped"]
Group = Literal["discovery", "selection", "output", "records", "state", "interruption", "failures", "observability"]

GROUPS: tuple[Group, ...] = get_args(Group)
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
        rule: see ``VerifyRule``. Severity and weight grow with the share of records that violate it.
        outcome: ``skipped`` if the rule could not be judged; the detail is the reason.
        detail: what was found and where, without values of records and without secrets.
        stream: the stream's name; "" for results without one.
        place: the file and line of the tap that causes a violation, as ``FILE:LINE``; "" if unknown.
    """

    rule: VerifyRule
    outcome: Outcome
    detail: str = ""
    stream: str = ""
    place: str = ""
