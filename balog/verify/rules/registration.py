"""How a rule is declared: a function over the runs that gives what is wrong."""

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
SDK_TARGETS = "Meltano SDK, its targets"
TARGETS = "Singer's targets, which refuse such a record"
CURRENTLY_SYNCING = "Singer, singer-python's currently_syncing"
PRACTICE = "practice of those who review taps"

_MOST_PROBLEMS = 25
_GRAVE_WEIGHT = 8


class Violation(NamedTuple):
    """What is wrong, as a clause, and of which stream.

    Attributes:
        is_grave: it is an error of at least weight 8, whatever the rule's own severity and weight are.
    """

    detail: str
    stream: str = ""
    is_grave: bool = False


Look = Callable[[Trials], Iterable[Violation]]


class Check(NamedTuple):
    """A rule, and how it is looked at."""

    rule: VerifyRule
    look: Look

    @property
    def _grave(self) -> VerifyRule:
        return msgspec.structs.replace(self.rule, severity="error", weight=max(self.rule.weight, _GRAVE_WEIGHT))

    def findings(self, trials: Trials) -> Iterator[RuleResult]:
        """Yield one finding when the rule is kept or cannot be judged, else one for each of at most 25 problems."""
        found = 0
        try:
            for problem in self.look(trials):
                found += 1
                if found > _MOST_PROBLEMS:
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
"""By id, in the order of their declaration."""


def check(name: str, group: Group, severity: Severity, weight: int, source: str, remedy: str) -> Callable[[Look], Look]:
    """Declare a rule by the function that looks; the first line of its docstring is the title. See ``VerifyRule``."""

    def declare(look: Look) -> Look:
        title = (inspect.getdoc(look) or "").splitlines()[0]
        rule = VerifyRule(
            id=name, group=group, title=title, severity=severity, weight=weight, source=source, remedy=remedy
        )
        CHECKS[name] = Check(rule, look)
        return look

    return declare
