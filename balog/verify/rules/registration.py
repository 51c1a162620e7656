"""Declaration of rules: functions that yield the violations of a tap's runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from balog.verify.results import Group, RuleResult, Severity, VerifyRule
from balog.verify.trials import Skip, Trials

__all__ = [
    "BEST_PRACTICES",
    "CHECKS",
    "CONFIG_AND_STATE",
    "CURRENTLY_SYNCING",
    "DISCOVERY_MODE",
    "METRICS",
    "PRACTICE",
    "SDK_TARGETS",
    "SDK_TESTS",
    "SPEC",
    "SYNC_MODE",
    "TARGETS",
    "Check",
    "Violation",
    "check",
]

SPEC = "Singer, docs/SPEC.md"
DISCOVERY_MODE = "Singer, docs/DISCOVERY_MODE.md"
SYNC_MODE = "Singer, docs/SYNC_MODE.md"
CONFIG_AND_STATE = "Singer, docs/CONFIG_AND_STATE.md"
BEST_PRACTICES = "Singer, docs/BEST_PRACTICES.md"
METRICS = "Singer, docs/SYNC_MODE.md, Metric Messages"
SDK_TESTS = "Meltano SDK, standard tap tests"
SDK_TARGETS = "Meltano SDK, targets"
TARGETS = "Singer's targets, which reject such a record"
CURRENTLY_SYNCING = "Singer, singer-python's currently_syncing"
PRACTICE = "practice of tap reviewers"

_MAX_PROBLEMS = 25
_GRAVE_WEIGHT = 8


class Violation(NamedTuple):
    """A violation of a rule.

    Attributes:
        detail: what was found, as a clause.
        stream: the stream's name; "" for violations without one.
        is_grave: whether it counts as an error of weight 8 or more, whatever the rule's own severity and weight.
    """

    detail: str
    stream: str = ""
    is_grave: bool = False


Look = Callable[[Trials], Iterable[Violation]]


class Check(NamedTuple):
    """A rule and its function."""

    rule: VerifyRule
    look: Look

    @property
    def _grave(self) -> VerifyRule:
        return msgspec.structs.replace(self.rule, severity="error", weight=max(self.rule.weight, _GRAVE_WEIGHT))

    def findings(self, trials: Trials) -> Iterator[RuleResult]:
        """Yield one result if the rule passes or cannot be judged, else one for each of at most 25 violations."""
        found = 0
        try:
            for problem in self.look(trials):
                found += 1
                if found > _MAX_PROBLEMS:
                    yield RuleResult(rule=self.rule, outcome="failed", detail="and more of this kind")
                    return
                rule = self._grave if problem.is_grave else self.rule
                yield RuleResult(rule=rule, outcome="failed", detail=problem.detail, stream=problem.stream)
        except Skip as why:
            if not found:
                yield RuleResult(rule=self.rule, outcome="skipped", detail=str(why))
            return
        if not found:
            yield RuleResult(rule=self.rule, outcome="passed")


CHECKS: dict[str, Check] = {}
"""The rules by id, in order of declaration."""


def check(name: str, group: Group, severity: Severity, weight: int, source: str, remedy: str) -> Callable[[Look], Look]:
    """Declare a rule by its function, whose docstring begins with the title. See ``VerifyRule``."""

    def declare(look: Look) -> Look:
        title = (inspect.getdoc(look) or "").splitlines()[0]
        rule = VerifyRule(
            id=name, group=group, title=title, severity=severity, weight=weight, source=source, remedy=remedy
        )
        CHECKS[name] = Check(rule, look)
        return look

    return declare
