from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from balog.tap.bookmarks import State, full_table


def table(
    state: State, said: list[int], *, can_resume: bool = False, clock: Callable[[], float] = lambda: 5.0
) -> AbstractContextManager[int]:
    def activate(version: int) -> bool:
        said.append(version)
        return True

    return full_table(state, "contacts", activate, can_resume=can_resume, clock=clock)


def entry(state: State) -> dict[str, object]:
    return state.entry("contacts")


def interrupted(state: State, *, can_resume: bool = False) -> list[int]:
    said: list[int] = []
    with pytest.raises(KeyError):
        with table(state, said, can_resume=can_resume):
            raise KeyError
    return said


def test_a_first_one_is_activated_at_its_start_and_at_its_end() -> None:
    said: list[int] = []
    with table(State(), said) as version:
        assert said == [version] == [5000]
    assert said == [5000, 5000]


def test_later_ones_are_activated_at_their_end_alone() -> None:
    state, said = State(), []  # type: ignore[var-annotated]
    with table(state, []):
        pass
    with table(state, said, clock=lambda: 6.0):
        assert said == []
    assert said == [6000]


def test_a_later_version_is_larger_than_the_active_one_also_when_the_clock_goes_back() -> None:
    state = State()
    with table(state, []):
        pass
    with table(state, [], clock=lambda: 1.0) as version:
        assert version == 5001


def test_the_active_version_stays_when_a_later_one_is_not_activated() -> None:
    state = State({"bookmarks": {"contacts": {"initial_full_table_complete": True, "active_version": 4}}})
    with full_table(state, "contacts", lambda version: False):
        pass
    assert entry(state)["active_version"] == 4


def test_after_an_interruption_there_is_a_new_version_also_when_the_clock_stands_still() -> None:
    state = State()
    interrupted(state)
    with table(state, []) as version:
        assert version == 5001


@pytest.mark.parametrize("version", ["old", -1, True, 1e300, 10**30])
def test_a_version_that_is_none_is_not_gone_on_with(version: Any) -> None:
    with table(State({"bookmarks": {"contacts": {"version": version}}}), [], can_resume=True) as found:
        assert found == 5000
