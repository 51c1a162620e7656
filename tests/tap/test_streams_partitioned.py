"""Streams that are synced for each item: an item has a bookmark of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Tap

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "account": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
    },
}


def row(account: str, number: int, day: int) -> dict[str, Any]:
    return {"id": number, "account": account, "at": f"2026-11-{day:02}T00:00:00Z"}


class Shop:
    """Orders of several accounts, and what was asked for."""

    def __init__(self) -> None:
        self.rows = {"a": [row("a", 1, 20), row("a", 2, 21)], "b": [row("b", 3, 5), row("b", 4, 6)]}
        self.asked: list[tuple[str, str]] = []
        self.broken = ""
        self.complaints = ""  # the run's stderr

    def accounts(self) -> list[Any]:
        return [{"id": name} for name in self.rows]

    def orders(self, account: str, since: str) -> Any:
        self.asked.append((account, since))
        yield [one for one in self.rows[account] if one["at"] >= since]
        if account == self.broken:
            raise ConnectionResetError


Run = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def run(shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(state: Any = None, each: Any = None, **options: Any) -> tuple[int, list[dict[str, Any]]]:
        tap = Tap("tap-shop", config_spec=["start_date"])

        settings = {"for_each": each or shop.accounts, "each_key": "id", "each_name": "accounts", **options}

        @tap.stream("orders", key_properties=["id"], replication_key="at", schema=SCHEMA, **settings)
        def orders(item: Any, context: Any) -> Any:
            yield from shop.orders(item["id"], context.bookmark)

        (tmp_path / "config.json").write_text('{"start_date": "2026-11-01T00:00:00Z"}')
        arguments = ["--config", str(tmp_path / "config.json")]
        if state is not None:
            (tmp_path / "state.json").write_text(json.dumps(state))
            arguments += ["--state", str(tmp_path / "state.json")]
        with pytest.raises(SystemExit) as ended:
            tap.run(arguments)
        out, shop.complaints = capsys.readouterr()
        return int(ended.value.code or 0), [json.loads(line) for line in out.splitlines()]

    return run


def states(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["value"]["bookmarks"].get("orders", {}) for message in messages if message["type"] == "STATE"]


def ids(messages: list[dict[str, Any]]) -> list[int]:
    return [message["record"]["id"] for message in messages if message["type"] == "RECORD"]


def last_state(messages: list[dict[str, Any]]) -> Any:
    return [message["value"] for message in messages if message["type"] == "STATE"][-1]


BOTH = {"a": {"at": "2026-11-21T00:00:00Z"}, "b": {"at": "2026-11-06T00:00:00Z"}}


def test_each_has_a_bookmark_of_its_own(run: Run, shop: Shop) -> None:
    code, messages = run()
    assert (code, ids(messages)) == (0, [1, 2, 3, 4])
    assert states(messages)[-1] == {"at": "2026-11-21T00:00:00Z", "accounts": BOTH}
    assert {"accounts": {"a": BOTH["a"]}} in states(messages)  # after the first, before the second
    shop.asked.clear()
    code, messages = run(last_state(messages))
    assert shop.asked == [("a", "2026-11-21T00:00:00Z"), ("b", "2026-11-06T00:00:00Z")]
    assert ids(messages) == [2, 4]


def test_a_new_one_begins_at_the_start_date(run: Run, shop: Shop) -> None:
    _, messages = run()
    shop.rows["c"] = [row("c", 5, 2)]
    _, messages = run(last_state(messages))
    assert ids(messages) == [2, 4, 5]
    assert states(messages)[-1]["accounts"] == {**BOTH, "c": {"at": "2026-11-02T00:00:00Z"}}


def test_one_that_fails_goes_on_at_its_old_bookmark(run: Run, shop: Shop) -> None:
    shop.broken = "b"
    code, messages = run()
    assert code == 1
    assert states(messages)[-1] == {"accounts": {"a": BOTH["a"]}}
    shop.broken = ""
    shop.asked.clear()
    code, messages = run(last_state(messages))
    assert code == 0
    assert shop.asked == [("a", "2026-11-21T00:00:00Z"), ("b", "2026-11-01T00:00:00Z")]


def test_one_that_no_longer_exists_keeps_its_bookmark(run: Run, shop: Shop) -> None:
    _, messages = run()
    del shop.rows["b"]
    _, messages = run(last_state(messages))
    assert states(messages)[-1]["accounts"] == BOTH


def test_the_lookback_is_for_the_question_only(run: Run, shop: Shop) -> None:
    _, messages = run()
    shop.asked.clear()
    _, messages = run(last_state(messages), lookback=86400)
    assert shop.asked == [("a", "2026-11-20T00:00:00Z"), ("b", "2026-11-05T00:00:00Z")]
    assert states(messages)[-1]["accounts"] == BOTH


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([{"id": "a"}, {"id": "a"}], "the source returns 'a' twice"),
        ([{"name": "a"}], "no identity under 'id'"),
        ([{"id": True}], "no identity"),
    ],
)
def test_items_that_cannot_be_told_apart(run: Run, shop: Shop, items: list[Any], said: str) -> None:
    code, _ = run(each=lambda: items)
    assert code == 1
    assert said in shop.complaints


def test_a_bookmark_of_another_kind_is_refused(run: Run, shop: Shop) -> None:
    code, messages = run({"bookmarks": {"orders": {"accounts": {"a": {"at": 5}}}}})
    assert code == 1
    assert ids(messages) == []
    assert "accounts: the bookmark of 'a' in the state: expected a time" in shop.complaints
