"""Streams that are synced for each item: an item has a bookmark of its own."""

from collections.abc import Callable
from typing import Any

import pytest

from balog.tap import Tap
from tests.tap.syncs import Ran, sync

Run = Callable[..., Ran]
BOTH = {"a": {"updated": "2026-11-21T00:00:00Z"}, "b": {"updated": "2026-11-06T00:00:00Z"}}


def row(account: str, number: int, day: int) -> dict[str, Any]:
    return {"id": number, "name": account, "updated": f"2026-11-{day:02}T00:00:00Z"}


class Shop:
    """Orders of several accounts, and what was asked for in the last run."""

    def __init__(self) -> None:
        self.rows = {"a": [row("a", 1, 20), row("a", 2, 21)], "b": [row("b", 3, 5), row("b", 4, 6)]}
        self.asked: list[tuple[str, str]] = []
        self.broken = ""

    def accounts(self) -> list[Any]:
        return [{"id": name} for name in self.rows]

    def orders(self, account: str, since: str) -> Any:
        self.asked.append((account, since))
        yield [one for one in self.rows[account] if one["updated"] >= since]
        if account == self.broken:
            raise ConnectionResetError


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def run(shop: Shop) -> Run:
    def run(state: Any = None, each: Any = None, **options: Any) -> Ran:
        tap = Tap("tap-shop")
        settings = {"for_each": each or shop.accounts, "each_key": "id", "each_name": "accounts", **options}

        @tap.stream("orders", key_properties=["id"], replication_key="updated", **settings)
        def orders(item: Any, context: Any) -> Any:
            yield from shop.orders(item["id"], context.bookmark)

        shop.asked.clear()
        return sync(tap, state, config={"start_date": "2026-11-01T00:00:00Z"})

    return run


def states(ran: Ran) -> list[Any]:
    return [state["bookmarks"].get("orders", {}) for state in ran.states]


def test_each_has_a_bookmark_of_its_own(run: Run, shop: Shop) -> None:
    first = run()
    assert (first.code, first.ids()) == (0, [1, 2, 3, 4])
    assert states(first)[-1] == {"updated": "2026-11-21T00:00:00Z", "accounts": BOTH}
    assert {"accounts": {"a": BOTH["a"]}} in states(first)  # after the first, before the second
    assert run(first.state).ids() == [2, 4]
    assert shop.asked == [("a", "2026-11-21T00:00:00Z"), ("b", "2026-11-06T00:00:00Z")]


def test_a_new_one_begins_at_the_start_date(run: Run, shop: Shop) -> None:
    first = run()
    shop.rows["c"] = [row("c", 5, 2)]
    second = run(first.state)
    assert second.ids() == [2, 4, 5]
    assert states(second)[-1]["accounts"] == {**BOTH, "c": {"updated": "2026-11-02T00:00:00Z"}}


@pytest.mark.parametrize("name", ["orders", "shops"])
def test_they_are_under_the_stream_s_name_or_their_own_whatever_the_function_is_called(
    run: Run, shop: Shop, name: str
) -> None:
    each_name = None if name == "orders" else name
    first = run(each_name=each_name)
    assert first.state["bookmarks"]["orders"] == {name: BOTH, "updated": "2026-11-21T00:00:00Z"}
    assert run(first.state, each=lambda: shop.accounts(), each_name=each_name).ids() == [2, 4]


def test_one_that_fails_goes_on_at_its_old_bookmark(run: Run, shop: Shop) -> None:
    shop.broken = "b"
    first = run()
    assert first.code == 1
    assert states(first)[-1] == {"accounts": {"a": BOTH["a"]}}
    shop.broken = ""
    assert run(first.state).code == 0
    assert shop.asked == [("a", "2026-11-21T00:00:00Z"), ("b", "2026-11-01T00:00:00Z")]


def test_one_that_no_longer_exists_keeps_its_bookmark(run: Run, shop: Shop) -> None:
    first = run()
    del shop.rows["b"]
    assert states(run(first.state))[-1]["accounts"] == BOTH


def test_the_lookback_is_for_the_question_only(run: Run, shop: Shop) -> None:
    second = run(run().state, lookback=86400)
    assert shop.asked == [("a", "2026-11-20T00:00:00Z"), ("b", "2026-11-05T00:00:00Z")]
    assert states(second)[-1]["accounts"] == BOTH


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([{"id": "a"}, {"id": "a"}], "the source returns 'a' twice"),
        ([{"name": "a"}], "no identity under 'id'"),
        ([{"id": True}], "no identity"),
    ],
)
def test_items_that_cannot_be_told_apart(run: Run, items: list[Any], said: str) -> None:
    [failure] = run(each=lambda: items).failures
    assert said in failure


def test_a_bookmark_of_another_kind_is_refused(run: Run) -> None:
    ran = run({"bookmarks": {"orders": {"accounts": {"a": {"updated": 5}}}}})
    assert (ran.code, ran.ids()) == (1, [])
    assert "accounts: the bookmark of 'a' in the state: expected a time" in ran.failures[0]
