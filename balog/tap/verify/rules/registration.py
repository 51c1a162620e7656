"""Declaration of rules: functions that yield the violations of a tap's runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import NamedTuple, TypeVar

import msgspec

from balog.tap.verify.results import Group, RuleResult, Severity, VerifyRule
from balog.tap.verify.runs import Skip
from balog.tap.verify.trials import Trials

_MAX_PROBLEMS = 25
_GRAVE_WEIGHT = 8
_GRAVE_SHARE = 0.1


class RuleSource:
    """The origins of rules."""

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


class Violation(NamedTuple):
    """A violation of a rule.

    From a share of a tenth on, a violation is an error whose weight grows with the share.

    Attributes:
        detail: what was found, as a clause.
        stream: the stream's name; "" for violations without one.
        records: the number of records that violate the rule, and ``of`` that of all; 0 if it is not about records.
        is_grave: whether it is an error, whatever its share.
        severity: another severity than the rule's.
        place: the file and line of the tap that causes it, as ``FILE:LINE``; "" if unknown.
    """

    detail: str
    stream: str = ""
    records: int = 0
    of: int = 0
    is_grave: bool = False
    severity: Severity | None = None
    place: str = ""

    def weigh(self, rule: VerifyRule) -> VerifyRule:
        """Return the rule with the severity and weight of this violation."""
        share = min(1.0, self.records / self.of) if self.of else 0.0
        if self.is_grave or share >= _GRAVE_SHARE:
            weight = round(max(rule.weight, _GRAVE_WEIGHT) * (1 + share))
            return msgspec.structs.replace(rule, severity="error", weight=weight)
        return msgspec.structs.replace(rule, severity=self.severity) if self.severity else rule


Look = Callable[[Trials], Iterable[Violation]]


class Check(NamedTuple):
    """A rule and its function.

    Attributes:
        is_last: it judges all runs, so it comes after the other rules.
    """

    rule: VerifyRule
    look: Look
    is_last: bool = False

    def findings(self, trials: Trials) -> Iterator[RuleResult]:
        """Yield one result if the rule passes or cannot be judged, else one for each of at most 25 violations."""
        count = 0
        try:
            for problem in self.look(trials):
                count += 1
                if count > _MAX_PROBLEMS:
                    yield RuleResult(rule=self.rule, outcome="failed", detail="and more of this kind")
                    return
                yield RuleResult(
                    rule=problem.weigh(self.rule),
                    outcome="failed",
                    detail=problem.detail,
                    stream=problem.stream,
                    place=problem.place,
                )
        except Skip as why:
            if not count:
                yield RuleResult(rule=self.rule, outcome="skipped", detail=str(why))
            return
        if not count:
            yield RuleResult(rule=self.rule, outcome="passed")


CHECKS: dict[str, Check] = {}
"""The rules by id, in order of declaration."""


def check(
    group: Group, severity: Severity, weight: int, source: str, *, is_last: bool = False
) -> Callable[[Look], Look]:
    """Declare a rule by its function.

    The function's name is the rule's id. The docstring's first line is the title, and the rest is the remedy. See
    ``VerifyRule``.
    """

    def declare(look: Look) -> Look:
        name = look.__name__.replace("_", "-")
        title, _, remedy = (inspect.getdoc(look) or "").partition("\n\n")
        rule = VerifyRule(
            id=name, group=group, title=title, severity=severity, weight=weight, source=source,
            remedy=" ".join(remedy.split()),
        )  # fmt: skip
        CHECKS[name] = Check(rule, look, is_last)
        return look

    return declare


Subject = TypeVar("Subject")
Judge = Callable[[Subject], Iterable["str | Violation"]]


def check_each(
    subjects: Callable[[Trials], Iterable[tuple[str, Subject]]],
    group: Group,
    severity: Severity,
    weight: int,
    source: str,
) -> Callable[[Judge[Subject]], Judge[Subject]]:
    """Declare a rule of single streams by its function, which yields violations of one, or their texts. See ``check``.

    Args:
        subjects: returns the streams, the entries of the catalog, or another subject, by the name of the stream.
    """

    def declare(judge: Judge[Subject]) -> Judge[Subject]:
        @check(group, severity, weight, source)
        @wraps(judge)
        def look(trials: Trials) -> Iterator[Violation]:
            for name, subject in subjects(trials):
                for problem in judge(subject):
                    yield problem._replace(stream=name) if isinstance(problem, Violation) else Violation(problem, name)

        return judge

    return declare
