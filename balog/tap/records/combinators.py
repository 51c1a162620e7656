"""Schemas with ``anyOf``, ``oneOf``, ``not`` and ``if``: functions that make values fit one of the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.plain import simplify
from balog.tap.records.values import NOTHING

Fit = Callable[[Any], Any]
"""Returns a value that fits, or raises MismatchError."""


def fitting_any(strict: list[Fit], loose: list[Fit]) -> Fit:
    """Return a function that makes a value fit one of several schemas.

    It prefers the first schema that the value fits unchanged, then one that it fits with fewer properties, then one
    that it fits after coercion.

    Args:
        strict: the schemas without coercion.
        loose: the same schemas with coercion; empty if coercion is off.
    """

    def make(value: Any) -> Any:
        first, mismatches = NOTHING, []
        for fit in strict:
            try:
                made = fit(value)
            except MismatchError as mismatch:
                mismatches.append(mismatch)
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
        raise _nearest(mismatches)

    return make


def fitting_one(make_any: Fit, tests: list[Fit]) -> Fit:
    """Return a function like ``fitting_any`` whose result must fit exactly one of the tests."""

    def make(value: Any) -> Any:
        made = make_any(value)
        if sum(_fits(test, made) for test in tests) > 1:
            raise MismatchError("fits more than one of oneOf")
        return made

    return make


def fitting_none(test: Fit) -> Fit:
    """Return a function that rejects values that fit."""

    def make(value: Any) -> Any:
        value = simplify(value)
        if _fits(test, value):
            raise MismatchError("is what the schema's not forbids")
        return value

    return make


def fitting_when(test: Fit, then: Fit, other: Fit) -> Fit:
    """Return a function that applies ``then`` to values that fit the test, and ``other`` to all others."""
    return lambda value: (then if _fits(test, value) else other)(value)


def _fits(test: Callable[[Any], Any], value: Any) -> bool:
    try:
        test(value)
    except MismatchError:
        return False
    return True


def _nearest(mismatches: list[MismatchError]) -> MismatchError:
    """Return the deepest mismatch, else one mismatch with the reasons of all."""
    deepest = max(mismatches, key=lambda mismatch: len(mismatch.steps))
    if deepest.steps or len(mismatches) == 1:
        return deepest
    return MismatchError("; or ".join(dict.fromkeys(mismatch.reason for mismatch in mismatches)))
