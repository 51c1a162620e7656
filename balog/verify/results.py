"""Rules and their results."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["passed", "failed", "skipped"]
Group = Literal["discovery", "selection", "output", "records", "state", "interruption", "failures", "observability"]

GROUPS: tuple[Group, ...] = (
    *("discovery", "selection", "output", "records"),
    *("state", "interruption", "failures", "observability"),
)
"""The groups, in the order of a report."""

FORMER_NAMES = {
    "stopping": "interruption",
    "failing": "failures",
    "telling": "observability",
    "about-is-told": "about-is-printed",
    "bookmark-properties-are-said": "bookmark-properties-are-declared",
    "currently-syncing-is-said": "currently-syncing-is-written",
    "failure-is-said-at-a-level": "failure-is-logged-at-a-level",
    "inclusion-is-said": "inclusion-is-declared",
    "replication-is-said": "replication-is-declared",
    "version-is-told": "version-is-printed",
}
"""Former names of groups and rules, which options still accept, and the names that replaced them."""


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
