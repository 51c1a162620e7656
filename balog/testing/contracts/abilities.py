"""Tests that hold only for some backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


_NEEDS: dict[object, tuple[str, bool]] = {}
"""The ability that each marked test needs, and its value."""


def needs(ability: str, value: bool = True) -> Callable[[Test], Test]:
    """Keep a test only in classes whose attribute ``ability`` has this value."""

    def mark(test: Test) -> Test:
        _NEEDS[test] = ability, value
        return test

    return mark


class AbilityTests:
    """Base of the contracts: removes tests of abilities that a subclass lacks, because a skip would need a reason."""

    def __init_subclass__(cls) -> None:
        marked = {
            name for base in cls.__mro__ for name, test in vars(base).items() if callable(test) and test in _NEEDS
        }
        for name in sorted(marked - set(vars(cls))):  # workers of pytest-xdist must agree on the order
            test = next(vars(base)[name] for base in cls.__mro__ if vars(base).get(name) is not None)
            if test in _NEEDS:
                ability, value = _NEEDS[test]
                setattr(cls, name, test if getattr(cls, ability) == value else None)
