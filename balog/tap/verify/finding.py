"""A rule, and what it found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["Finding", "Outcome", "Rule", "Severity"]

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["passed", "failed", "skipped"]


class Rule(Struct, frozen=True, kw_only=True):
    """One practice.

    Attributes:
        id: as it is named in reports, ``records-match-schema``.
        title: what a tap should do, as a sentence.
        severity: ``error`` where a target loses or refuses data, ``warning`` where an operator suffers, else ``advice``.
        weight: its part of the score.
        source: where the rule comes from: a page of the Singer specification, or who practises it.
    """

    id: str
    title: str
    severity: Severity
    weight: int
    source: str


class Finding(Struct, frozen=True, kw_only=True):
    """What one rule says of one tap.

    Attributes:
        rule: see ``Rule``.
        outcome: ``skipped`` where the run had nothing to look at; the detail says why.
        detail: what was seen, and where: the stream, the line of stdout.
        stream: "" where it is of none.
    """

    rule: Rule
    outcome: Outcome
    detail: str = ""
    stream: str = ""
