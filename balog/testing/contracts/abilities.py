"""Tests that hold only for some backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def needs(ability: str, value: bool = True) -> Callable[[Test], Test]:
    """Keep a test only in classes whose attribute ``ability`` has this value."""

    def mark(test: Test) -> Test:
        test.needs = (ability, value)  # type: ignore[attr-defined]
        return test

    return mark


class AbilityTests:
    """Base of the contracts: removes tests of abilities that a subclass lacks, because a skip would need a reason."""

    def __init_subclass__(cls) -> None:
        marked = {name for base in cls.__mro__ for name, test in vars(base).items() if hasattr(test, "needs")}
        for name in sorted(marked - set(vars(cls))):  # workers of pytest-xdist must agree on the order
            test = next(vars(base)[name] for base in cls.__mro__ if vars(base).get(name) is not None)
            ability, value = getattr(test, "needs", ("", None))
            if ability:
                setattr(cls, name, test if getattr(cls, ability) == value else None)
