"""Streams whose records the source of another gives beside its own."""

from typing import Any

from balog.tap import Stream, Tap
from tests.tap.syncs import Watching, at_day, stopping, sync


class TestTwoStreamsOfOneSource:
    def _tap(self) -> Tap:
        tap = Tap("tap-cool")

        @tap.stream("contacts", replication_key="updated")
        def contacts(context: Any) -> Any:
            yield {"id": 1, "updated": at_day(1), "name": context.of("leads").bookmark}
            yield context.to("leads", {"id": 10, "updated": at_day(4)})
            context.emit([{"id": 11, "updated": at_day(3)}, {"id": 12, "updated": at_day(2)}], stream="leads")
            context.emit({"id": 2, "updated": at_day(2)})

        tap.add(Stream("leads", replication_key="updated", source_stream="contacts"))
        return tap

    def test_each_has_its_schema_records_and_bookmark(self) -> None:
        ran = sync(self._tap(), {"bookmarks": {"leads": {"updated": at_day(1)}}})

        assert ran.shape() == [
            *("SCHEMA contacts", "SCHEMA leads"),
            *("contacts 1", "leads 10", "leads 11", "leads 12", "contacts 2"),
        ]
        assert ran.records()[0]["name"] == at_day(1)
        assert ran.state["bookmarks"] == {
            "contacts": {"updated": at_day(2)},
            "leads": {"updated": at_day(4), "rollup": {"parents": {"contacts": at_day(2)}}},
        }

    def test_the_source_is_asked_for_the_other_one_alone(self) -> None:
        ran = sync(self._tap(), selected=["leads"])

        assert ran.shape() == ["SCHEMA leads", "leads 10", "leads 11", "leads 12"]
        assert ran.state["bookmarks"] == {
            "leads": {"updated": at_day(4), "rollup": {"parents": {"contacts": at_day(1)}}}
        }

    def test_what_is_not_selected_is_left_out(self) -> None:
        assert sync(self._tap(), selected=["contacts"]).shape() == ["SCHEMA contacts", "contacts 1", "contacts 2"]

    def test_neither_bookmark_moves_when_the_source_fails(self, tap: Tap) -> None:
        @tap.stream("contacts")
        def contacts(context: Any) -> Any:
            context.emit({"id": 10, "updated": at_day(4)}, stream="leads")
            raise ValueError("no")

        tap.add(Stream("leads", replication_key="updated", source_stream=contacts))

        ran = sync(tap)

        assert ran.ids("leads") == [10]
        assert "updated" not in ran.state["bookmarks"].get("leads", {})

    def test_a_record_for_a_stream_of_its_own_brings_its_schema_along(self, tap: Tap) -> None:
        tap.stream("one")(lambda context: context.emit({"id": 20}, stream="two"))
        tap.stream("two")(lambda: [{"id": 21}])

        assert sync(tap).shape() == ["SCHEMA one", "SCHEMA two", "two 20", "SCHEMA two", "two 21"]

    def test_a_record_for_a_stream_with_substreams_brings_their_schemas_along(self, tap: Tap) -> None:
        tap.stream("one")(lambda context: context.emit([{"id": 20}, {"id": 21}], stream="two"))
        tap.stream("two")(lambda: [{"id": 22}])
        tap.stream("three", parent="two")(lambda parent: [{"id": parent["id"] + 10}])
        tap.add(Stream("lines", source_stream="three"))
        tap.add(Stream("elsewhere", source_stream="two"))
        watching = Watching()

        ran = sync(tap, observer=watching)

        own = ["SCHEMA two", "SCHEMA three", "SCHEMA lines", "two 20", "three 30", "two 21", "three 31"]
        assert [each for each in ran.shape() if "elsewhere" not in each] == [
            *("SCHEMA one", *own),
            *("SCHEMA two", "SCHEMA three", "SCHEMA lines", "two 22", "three 32"),
        ]
        assert ran.shape().index("SCHEMA elsewhere") > ran.shape().index("three 31")
        named = [(each[0], each[1]) for each in watching.told]
        assert [name for what, name in named if what == "ended"][:4] == ["one", "two", "three", "lines"]
        assert sorted(name for what, name in named if what == "started") == sorted(
            name for what, name in named if what == "ended"
        )

    def test_a_substream_that_was_emitted_for_before_its_parent_starts_once(self, tap: Tap) -> None:
        tap.stream("one")(lambda context: [context.to("three", {"id": 1}), context.to("two", {"id": 2})])
        tap.stream("two", select=False)(lambda: iter(()))
        tap.stream("three", parent="two")(lambda parent: [{"id": parent["id"] + 10}])

        assert sync(tap).shape() == ["SCHEMA one", "SCHEMA three", "three 1", "three 12", "SCHEMA three"]

    def test_lists_may_hold_records_of_both(self, tap: Tap) -> None:
        tap.stream("orders")(lambda context: iter([[{"id": 1}, context.to("lines", {"id": 11})], [{"id": 2}]]))
        tap.add(Stream("lines", source_stream="orders"))

        assert sync(tap).shape()[2:] == ["orders 1", "lines 11", "orders 2"]

    def test_an_unknown_stream_is_a_fault(self, tap: Tap) -> None:
        tap.stream("one")(lambda context: context.emit({"id": 20}, stream="too"))

        assert sync(tap).failures == ["one: there is no stream 'too' to emit for; there are: one"]

    def test_what_it_writes_for_a_stream_with_a_source_leaves_that_ones_bookmark(self, tap: Tap) -> None:
        tap.stream("one")(lambda context: context.emit({"id": 20, "updated": at_day(9)}, stream="two"))

        @tap.stream("two", replication_key="updated", bookmark_strategy=tap.every_n(1))
        def two(context: Any) -> Any:
            yield from (
                {"id": day, "updated": at_day(day)} for day in (1, 2) if at_day(day) >= (context.bookmark or "")
            )

        ran = sync(tap)

        assert ran.ids("two") == [20, 1, 2]
        assert [state["bookmarks"].get("two") for state in ran.states] == [
            *(None, None, None),
            *({"updated": at_day(1)}, {"updated": at_day(2)}, {"updated": at_day(2)}, {"updated": at_day(2)}),
        ]


class TestPages:
    """Orders in pages of four, then all lines of that page."""

    def _tap(self, *, is_broken: bool = False, **settings: Any) -> Tap:
        tap = Tap("tap-graph")

        @tap.stream("orders", replication_key="updated", bookmark_strategy=tap.every_n(2), **settings)
        def orders(context: Any) -> Any:
            days = [day for day in range(1, 13) if at_day(day) >= (context.bookmark or "")]
            for page in (days[first : first + 4] for first in range(0, len(days), 4)):
                yield [{"id": day, "updated": at_day(day)} for day in page]
                if is_broken and page[0] > 4:
                    raise ConnectionError("gone away")
                yield [context.to("lines", {"id": 10 * day}) for day in page]

        tap.add(Stream("lines", source_stream="orders"))
        return tap

    LINES = tuple(range(10, 130, 10))

    def test_a_state_waits_for_what_belongs_to_the_page(self) -> None:
        ran = sync(self._tap())
        given: list[Any] = []
        for message in ran.messages:
            if message["type"] == "RECORD" and message["stream"] == "lines":
                given.append(message["record"]["id"])
            if message["type"] == "STATE":
                said = message["value"]["bookmarks"].get("orders", {}).get("updated")
                assert said is None or {10 * day for day in range(1, 13) if at_day(day) < said} <= set(given)
        assert len({str(state["bookmarks"]) for state in ran.states}) == 4

    def test_a_source_that_breaks_off_between_them_leaves_no_gap(self) -> None:
        first = sync(self._tap(is_broken=True))
        second = sync(self._tap(), first.state)

        assert first.state["bookmarks"]["orders"] == {"updated": at_day(4)}
        assert {*first.ids("lines"), *second.ids("lines")} == {*self.LINES}

    def test_nor_does_an_interruption(self) -> None:
        for at in range(1, 13):
            stop, hook = stopping(at)
            first = sync(self._tap(after=hook), stop=stop)
            second = sync(self._tap(), first.state)

            assert {*first.ids("lines"), *second.ids("lines")} == {*self.LINES}

    def test_one_that_is_newly_selected_gets_what_it_missed(self) -> None:
        first = sync(self._tap(), selected=["orders"])
        second = sync(self._tap(), first.state)
        third = sync(self._tap(), second.state)

        assert second.ids("lines") == [*self.LINES]
        assert third.ids("lines") == [120]

    def test_alone_it_gets_what_is_new(self) -> None:
        first = sync(self._tap(), selected=["lines"])
        second = sync(self._tap(), first.state, selected=["lines"])

        assert (first.ids(), second.ids()) == ([*self.LINES], [120])

    def test_a_checkpoint_says_that_all_came(self, tap: Tap) -> None:
        @tap.stream("orders", replication_key="updated")
        def orders(context: Any) -> Any:
            yield [{"id": 1, "updated": at_day(1)}]
            yield context.to("lines", {"id": 10})
            context.checkpoint()

        tap.add(Stream("lines", source_stream="orders"))

        assert sync(tap).states[1]["bookmarks"]["orders"] == {"updated": at_day(1)}


def test_what_a_substream_gives_has_its_bookmark_too(tap: Tap) -> None:
    accounts = tap.stream("accounts")(lambda: [{"id": 1}, {"id": 2}])

    @accounts.substream("orders")
    def orders(context: Any, parent: Any) -> Any:
        yield context.to("lines", {"id": 10 * parent["id"], "updated": at_day(parent["id"])})

    tap.add(Stream("lines", replication_key="updated", source_stream="orders"))

    ran = sync(tap)

    assert ran.ids("lines") == [10, 20]
    assert ran.state["bookmarks"]["lines"]["updated"] == at_day(2)
