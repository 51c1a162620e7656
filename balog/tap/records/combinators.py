"""Schemas of several parts: which of them a value fits, and what is wrong where it fits none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.records.coercion import NOTHING
from balog.tap.records.mismatch import MismatchError
from balog.tap.records.plain import simplify

__all__ = ["fitting_any", "fitting_none", "fitting_one", "fitting_when"]

Fit = Callable[[Any], Any]
"""Gives a value as it fits; raises MismatchError."""


def fitting_any(strict: list[Fit], loose: list[Fit]) -> Fit:
    """Make a value fit the first that it fits as it is; else the first that it fits with less; else by coercing.

    Args:
        strict: the parts, of which none coerces.
        loose: the same, coercing; none where nothing may be.
    """

    def make(value: Any) -> Any:
        first, faults = NOTHING, []
        for fit in strict:
            try:
                made = fit(value)
            except MismatchError as fault:
                faults.append(fault)
                continue
            if made is value:
                return value
            if first is NOTHING:
                first = made
        if first is not NOTHING:
            return first
        for fit in loose:
            try:
                return fit(value)
            except MismatchError:
                continue
        raise _nearest(faults)

    return make


def fitting_one(make_any: Fit, tests: list[Fit]) -> Fit:
    """Like ``fitting_any``, but what comes out must fit just one of the tests."""

    def make(value: Any) -> Any:
        made = make_any(value)
        if sum(_fits(test, made) for test in tests) > 1:
            raise MismatchError("fits more than one of oneOf")
        return made

    return make


def fitting_none(test: Fit) -> Fit:
    """Refuse what fits."""

    def make(value: Any) -> Any:
        value = simplify(value)
        if _fits(test, value):
            raise MismatchError("is what the schema's not forbids")
        return value

    return make


def fitting_when(test: Fit, then: Fit, other: Fit) -> Fit:
    """Make what fits the test fit the one, all else the other."""
    return lambda value: (then if _fits(test, value) else other)(value)


def _fits(test: Callable[[Any], Any], value: Any) -> bool:
    try:
        test(value)
    except MismatchError:
        return False
    return True


def _nearest(faults: list[MismatchError]) -> MismatchError:
    """Return the fault that says the most: the one deepest in the value, else what all of them want here."""
    deepest = max(faults, key=lambda fault: len(fault.steps))
    if deepest.steps or len(faults) == 1:
        return deepest
    return MismatchError("; or ".join(dict.fromkeys(fault.reason for fault in faults)))
