"""What a tap says of its streams by name."""

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from balog.tap import Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import choose
from balog.tap.errors import TapError
from balog.tap.schema import generated, schema_of
from balog.tap.syncing import Sync
from tests.tap.syncs import SCHEMA, Messages, Ran, sync


def _schemas(tap: Tap) -> dict[str, Any]:
    return {name: schema_of(stream.schema, lambda: "client", name) for name, stream in tap.link().items()}


class TestSchema:
    def test_of_a_stream_that_is_declared_later(self, tap: Tap) -> None:
        tap.schema("contacts", SCHEMA)
        tap.stream("contacts")(lambda: ())

        assert _schemas(tap) == {"contacts": SCHEMA}

    def test_by_a_function_of_the_client(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())

        def describe(client: Any, stream: str) -> dict[str, Any]:
            return {"type": "object", "title": f"{client()} {stream}", "properties": {}}

        tap.schema("contacts", describe)

        assert _schemas(tap)["contacts"]["title"] == "client contacts"

    def test_of_all_streams_asked_once(self, tap: Tap) -> None:
        asked = []
        tap.stream("contacts", "leads")(lambda: ())
        tap.stream("own", schema={"type": "object", "title": "own"})(lambda: ())

        def describe(client: Any) -> dict[str, Any]:
            asked.append(client)
            return {name: {"type": "object", "title": name} for name in ("contacts", "leads")}

        tap.schema(source=generated(describe))

        assert [schema["title"] for schema in _schemas(tap).values()] == ["contacts", "leads", "own"]
        assert asked == ["client"]

    def test_of_all_streams_is_not_replaced_by_a_function_without_a_name(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())
        tap.schema(source=SCHEMA)
        tap.bookmark("")(lambda record: None)

        assert tap.link()["contacts"].schema is SCHEMA

    def test_a_stream_without_one_is_told_at_the_start(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())

        with pytest.raises(TapError, match=r"stream 'contacts' \(.*:\d+\): has no schema; call tap\.schema\('c"):
            tap.link()

    def test_of_a_stream_that_there_is_not(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())
        tap.schema("contact", SCHEMA)

        with pytest.raises(TapError, match=r"no stream 'contact' \(.*test_tap_declared.*\); did you mean 'contacts'"):
            tap.link()


class TestHooks:
    def test_a_bookmark_of_its_own(self, tap: Tap) -> None:
        tap.stream("contacts", replication_key="updated")(
            lambda: [{"id": 1, "updated": None, "created": "2026-01-02T00:00:00Z"}]
        )

        @tap.bookmark("contacts")
        def later(record: dict[str, Any], state: dict[str, Any]) -> Any:
            return record["updated"] or record["created"]

        assert sync(tap).state["bookmarks"]["contacts"] == {"updated": "2026-01-02T00:00:00Z"}

    @pytest.mark.parametrize("strategy", ["end_of_sync", Tap.every_n(3)])
    @pytest.mark.parametrize(
        ("values", "last"),
        [
            ([1, 2, 3, 10], 10),
            ([1.5, 2, Decimal("10.25"), Decimal("10.5")], Decimal("10.5")),
            (["a", "b", "c", "d"], "d"),
            (
                ["2026-01-01T12:00:00+14:00", "2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00-01:00"],
                "2026-01-01T00:00:00-01:00",
            ),
            ([datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3, 4)], "2026-01-04T00:00:00Z"),
        ],
    )
    def test_a_bookmark_function_makes_its_stream_incremental(
        self, strategy: Any, values: list[Any], last: Any
    ) -> None:
        """Given the shape of the planning document, then what the function returns is the bookmark."""
        began: list[Any] = []

        def run(state: Any = None) -> Any:
            tap = Tap("tap-cool")

            @tap.sync("contacts", bookmark_strategy=strategy)
            def contacts(context: Any) -> Any:
                began.append(context.bookmark)
                yield from ({"id": id, "meta": {"modified": value}} for id, value in enumerate(values))

            @tap.bookmark("contacts")
            def modified(record: dict[str, Any]) -> Any:
                return record["meta"]["modified"]

            return sync(tap, state)

        first = run()
        assert (first.code, first.ids()) == (0, [0, 1, 2, 3])
        assert first.state["bookmarks"] == {"contacts": {"bookmark": last}}
        assert [message["bookmark_properties"] for message in first.messages if message["type"] == "SCHEMA"] == [[]]
        is_within = any("bookmark" in state["bookmarks"].get("contacts", {}) for state in first.states[:-2])
        assert is_within == (strategy != "end_of_sync")
        run(first.state)
        assert began == [None, last]

    def test_a_bookmark_function_reads_the_record_of_the_source(self, tap: Tap) -> None:
        """Given that all it reads is deselected or renamed, then it still has it; a lookback applies."""
        began: list[Any] = []
        schema = {"type": "object", "properties": {"id": {"type": "integer"}, "meta": {"type": "object"}}}

        @tap.stream("contacts", lookback=3600, after=lambda record: {"id": record["id"]}, schema=schema)
        def contacts(context: Any) -> Any:
            began.append(context.bookmark)
            yield [{"id": id, "meta": {"modified": f"2026-01-0{id}T00:00:00Z"}} for id in (1, 2)]

        tap.bookmark("contacts")(lambda record: record["meta"]["modified"])
        catalog, _ = choose(list(tap.link().values()), None, lambda stream: stream.schema)
        catalog.entries["contacts"].metadata[("properties", "meta")]["selected"] = False
        made = Messages()
        assert Sync(tap, {}, catalog, State(), made).run() == 0
        ran = Ran(0, made.all, [])
        assert ran.records() == [{"id": 1}, {"id": 2}]
        assert ran.state["bookmarks"] == {"contacts": {"bookmark": "2026-01-02T00:00:00Z"}}
        assert Sync(tap, {}, catalog, State(ran.state), Messages()).run() == 0
        assert began == [None, "2026-01-01T23:00:00Z"]

    def test_a_bookmark_function_and_for_each_exclude_each_other(self, tap: Tap) -> None:
        tap.stream("contacts", for_each=list, replication_key="updated", schema={})(lambda item: ())
        tap.bookmark("contacts")(lambda record: 1)
        with pytest.raises(TapError, match="for_each= and bookmark_of= exclude each other"):
            tap.link()

    def test_a_bookmark_asks_for_record_and_state_alone(self) -> None:
        with pytest.raises(TapError, match="parameter 'row'; it may ask for record, state"):
            Tap("tap-cool").bookmark("contacts")(lambda row: None)


@pytest.mark.parametrize("name", ["schema", "bookmark", "after"])
def test_a_decorator_without_parentheses_says_where_it_is(name: str) -> None:
    with pytest.raises(TapError, match=r"\(.*test_tap_declared\.py:\d+\): expected a stream's name, and parentheses"):
        getattr(Tap("tap-cool"), name)(lambda record: record)
