"""Streams of children: one state that is right at any moment, and parents that are asked for what a child lacks."""

from collections.abc import Callable
from typing import Any

import pytest

from balog.tap.bookmarks import EveryN, Progress, State
from balog.tap.errors import SyncError

TIMES = {"properties": {"at": {"type": "string", "format": "date-time"}}}
NUMBERS = {"properties": {"id": {"type": "integer"}}}


def at(second: int) -> str:
    return f"2026-11-20T00:00:{second:02}Z"


def seconds(progress: Progress) -> int | None:
    return None if progress.bookmark is None else int(progress.bookmark[17:19])


class Family:
    """Accounts, their orders, and the lines of those, as one sync of a source sees them."""

    def __init__(self, state: State, names: str = "accounts orders lines", **settings: Any) -> None:
        self.state = state
        self.members: dict[str, Progress] = {}
        parent = None
        for name in names.split():
            own = settings.pop(name, {})
            parent = self.members[name] = Progress(
                state, name, **{"key": "at", "schema": TIMES, "strategy": EveryN(1), "parent": parent, **own}
            )

    def __getattr__(self, name: str) -> Progress:
        return self.members[name]

    def account(self, second: int, *orders: tuple[int, list[int]] | Callable[[], None]) -> None:
        """One account, with orders, each with lines."""
        is_due = self.accounts.see({"at": at(second)})
        for order in orders:
            if callable(order):
                order()
                continue
            self.orders.see({"at": at(order[0])})
            for line in order[1]:
                self.lines.see({"at": at(line)})
            self.orders.done()
        self.accounts.done()
        if is_due:
            self.accounts.checkpoint()

    def bookmarks(self) -> dict[str, int]:
        said = self.state.as_json()["bookmarks"]
        return {name: int(entry["at"][17:19]) for name, entry in said.items() if "at" in entry}


class TestWhole:
    def test_each_ends_at_its_own_largest_value_over_all_parents(self) -> None:
        family = Family(State())
        family.account(10, (7, [3, 8]), (6, [1]))
        family.account(20, (5, [2]))
        family.accounts.finish()
        assert family.bookmarks() == {"accounts": 20, "orders": 7, "lines": 8}

    def test_a_parent_without_a_key_is_asked_for_all(self) -> None:
        state = State({"bookmarks": {"orders": {"at": at(5)}}})
        family = Family(state, "accounts orders lines", accounts={"key": None})
        assert (family.accounts.bookmark, seconds(family.orders)) == (None, None)  # the lines are new
        family.accounts.see({})
        family.orders.see({"at": at(8)})
        family.lines.see({"at": at(9)})
        family.accounts.checkpoint()
        assert family.bookmarks() == {"orders": 5}
        family.accounts.finish()
        assert family.bookmarks() == {"orders": 8, "lines": 9}


class TestMiddle:
    def test_only_the_top_moves_and_children_keep_how_far_they_are(self) -> None:
        family = Family(State())
        family.account(10, (7, [8]))
        assert family.bookmarks() == {"accounts": 10}
        assert family.state.as_json()["bookmarks"]["lines"] == {
            "rollup": {"parents": {"accounts": at(10)}, "highest": at(8)}
        }

    def test_an_interrupted_run_goes_on_and_ends_where_one_would_have(self) -> None:
        first = Family(State())
        first.account(10, (7, [30]))
        first.account(20, (5, [2]))
        second = Family(State(first.state.as_json()))
        assert seconds(second.accounts) == 20
        assert (second.orders.bookmark, second.lines.bookmark) == (None, None)
        second.account(20, (5, [2]))
        second.account(25, (6, [1]))
        second.accounts.finish()
        assert second.bookmarks() == {"accounts": 25, "orders": 7, "lines": 30}
        assert "highest" not in second.state.as_json()["bookmarks"]["lines"]["rollup"]

    def test_records_out_of_order_take_back_what_children_said_too(self) -> None:
        state = State()
        Family(state).account(5, (1, [1]))
        before = state.as_json()
        family = Family(state)
        family.account(10, (7, [8]))
        family.account(8, (7, [8]))
        assert family.state.as_json() == before


class TestWhatChildrenLack:
    def whole(self, names: str = "accounts orders lines") -> dict[str, Any]:
        family = Family(State(), names)
        family.accounts.see({"at": at(10)})
        if "orders" in names:
            family.orders.see({"at": at(7)})
        if "lines" in names:
            family.lines.see({"at": at(8)})
        family.accounts.done()
        family.accounts.finish()
        return family.state.as_json()

    def test_parents_are_asked_from_their_own_bookmark_when_children_lack_nothing(self) -> None:
        family = Family(State(self.whole()))
        assert [seconds(one) for one in family.members.values()] == [10, 7, 8]

    def test_a_new_child_has_all_above_it_asked_from_the_beginning(self) -> None:
        family = Family(State(self.whole("accounts orders")))
        assert [seconds(one) for one in family.members.values()] == [None, None, None]

    def test_a_new_child_is_not_asked_again_when_it_had_no_rows(self) -> None:
        family = Family(State(self.whole("accounts orders")))
        family.account(10, (7, []))
        family.accounts.finish()
        again = Family(State(family.state.as_json()))
        assert [seconds(one) for one in again.members.values()] == [10, 7, None]

    def test_a_new_child_that_was_interrupted_goes_on(self) -> None:
        family = Family(State(self.whole("accounts orders")))
        family.account(4, (2, [2]))
        again = Family(State(family.state.as_json()))
        assert [seconds(one) for one in again.members.values()] == [4, None, None]

    def test_a_parent_that_is_not_selected_keeps_its_bookmark_and_serves_its_children(self) -> None:
        family = Family(State(), accounts={"is_selected": False})
        family.account(10, (7, [8]))
        family.accounts.finish()
        assert family.bookmarks() == {"orders": 7, "lines": 8}
        unselected = Family(State(family.state.as_json()), accounts={"is_selected": False})
        assert seconds(unselected.accounts) == 10
        assert Family(State(family.state.as_json())).accounts.bookmark is None

    def test_records_of_an_unselected_parent_without_a_time_only_cost_what_could_be_spared(self) -> None:
        family = Family(State(), accounts={"is_selected": False})
        family.account(10, (7, [8]))
        family.accounts.see({"at": "soon"})
        family.accounts.checkpoint()
        family.accounts.finish()
        assert family.bookmarks() == {"orders": 7, "lines": 8}

    def test_the_lookback_of_a_child_is_asked_of_its_parents_too(self) -> None:
        family = Family(State(self.whole()), orders={"lookback": 3})
        assert [seconds(one) for one in family.members.values()] == [7, 4, 8]

    def test_a_state_of_another_toolkit_rolls_up_by_the_childrens_bookmarks(self) -> None:
        given = {"accounts": {"at": at(20)}, "orders": {"at": at(9)}, "lines": {"at": at(5)}}
        family = Family(State({"bookmarks": given}))
        assert [seconds(one) for one in family.members.values()] == [5, 5, 5]

    def test_ids_of_children_and_times_of_parents_are_not_compared(self) -> None:
        given = {"accounts": {"at": at(20)}, "orders": {"id": 9}}
        numbered = {"key": "id", "schema": NUMBERS}
        family = Family(State({"bookmarks": given}), "accounts orders", orders=numbered)
        assert (seconds(family.accounts), family.orders.bookmark) == (20, 9)


class TestFailures:
    def test_a_child_that_fails_holds_those_above_where_they_were(self) -> None:
        family = Family(State())
        family.account(10, (7, [8]))
        family.account(20, lambda: family.lines.fail())
        family.account(30, (9, []))
        family.accounts.finish()
        assert family.bookmarks() == {"accounts": 10}
        again = Family(State(family.state.as_json()))
        assert [seconds(one) for one in again.members.values()] == [10, None, None]
        again.account(10, (7, [8]))
        again.account(20, (4, [40]))
        again.account(30, (9, [1]))
        again.accounts.finish()
        assert again.bookmarks() == {"accounts": 30, "orders": 9, "lines": 40}

    def test_siblings_of_what_failed_are_whole(self) -> None:
        state = State()
        family = Family(state, "accounts orders")
        notes = Progress(state, "notes", key="at", schema=TIMES, parent=family.accounts)
        family.account(10, (7, []))
        family.account(20, lambda: family.orders.fail())
        notes.see({"at": at(30)})
        family.accounts.finish()
        assert family.bookmarks() == {"accounts": 10, "notes": 30}
        assert state.as_json()["bookmarks"]["notes"]["rollup"] == {"parents": {"accounts": at(20)}}

    @pytest.mark.parametrize(
        ("mark", "wanted"), [(5, "expected a time, not int"), ("soon", "expected a time in RFC 3339 format")]
    )
    def test_a_mark_of_another_kind_is_told_with_its_place(self, mark: Any, wanted: str) -> None:
        orders = {"rollup": {"parents": {"accounts": mark}}}
        family = Family(State({"bookmarks": {"accounts": {"at": at(1)}, "orders": orders}}), "accounts orders")
        with pytest.raises(SyncError) as caught:
            _ = family.accounts.bookmark
        assert str(caught.value) == f"orders: its rollup in the state, parents.accounts: {wanted}"
