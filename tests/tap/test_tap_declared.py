"""What a tap says of its streams by name."""

from typing import Any

import pytest

from balog.tap import Tap
from balog.tap.catalog import discover
from balog.tap.errors import TapError
from balog.tap.schema import schema_of
from tests.tap.syncs import SCHEMA, sync


def _schemas(tap: Tap) -> dict[str, Any]:
    return {name: schema_of(stream.schema, lambda: "client", name) for name, stream in tap.link().items()}


class TestSchema:
    def test_of_a_stream_that_is_declared_later(self) -> None:
        tap = Tap("tap-cool")
        tap.schema("contacts", SCHEMA)
        tap.stream("contacts")(lambda: ())

        assert _schemas(tap) == {"contacts": SCHEMA}

    def test_by_a_function_of_the_client(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts")(lambda: ())

        @tap.schema("contacts")
        def describe(client: Any, stream: str) -> dict[str, Any]:
            return {"type": "object", "title": f"{client} {stream}", "properties": {}}

        assert _schemas(tap)["contacts"]["title"] == "client contacts"

    def test_of_all_streams_asked_once(self) -> None:
        tap = Tap("tap-cool")
        asked = []
        tap.stream("contacts", "leads")(lambda: ())
        tap.stream("own", schema={"type": "object", "title": "own"})(lambda: ())

        @tap.schema()
        def describe(client: Any) -> dict[str, Any]:
            asked.append(client)
            return {name: {"type": "object", "title": name} for name in ("contacts", "leads")}

        assert [schema["title"] for schema in _schemas(tap).values()] == ["contacts", "leads", "own"]
        assert asked == ["client"]

    def test_a_stream_without_one_is_told_at_the_start(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts")(lambda: ())

        with pytest.raises(TapError, match=r"stream 'contacts' \(.*:\d+\): has no schema; call tap\.schema\('c"):
            tap.link()

    def test_of_a_stream_that_there_is_not(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts")(lambda: ())
        tap.schema("contact", SCHEMA)

        with pytest.raises(TapError, match=r"no stream 'contact' \(.*test_tap_declared.*\); did you mean 'contacts'"):
            tap.link()


class TestMetadata:
    def test_a_visitor_sees_each_node_with_its_name_path_and_level(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts", "leads", key_properties=["id"], schema=SCHEMA)(lambda: ())
        seen = []

        @tap.metadata("contacts")
        def say(node: Any, schema: Any) -> None:
            seen.append((node.name, node.path, node.level))
            if node.name == "name":
                node.set("tap-cool.hint", "a text")

        catalog = discover(list(tap.link().values()), lambda stream: SCHEMA, tap.visitors)

        assert seen[:2] == [("contacts", (), 0), ("id", ("properties", "id"), 1)]
        assert catalog.entries["contacts"].metadata["properties", "name"]["tap-cool.hint"] == "a text"
        assert "tap-cool.hint" not in catalog.entries["leads"].metadata["properties", "name"]


class TestHooks:
    def test_after_changes_records_and_leaves_them_out(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts")(lambda: [{"id": 1}, {"id": 2}])

        @tap.after("contacts")
        def shout(record: dict[str, Any]) -> Any:
            return {**record, "name": "!"} if record["id"] == 2 else None

        assert sync(tap).records() == [{"id": 2, "name": "!"}]

    def test_a_bookmark_of_its_own(self) -> None:
        tap = Tap("tap-cool")
        tap.stream("contacts", replication_key="updated")(
            lambda: [{"id": 1, "updated": None, "created": "2026-01-02T00:00:00Z"}]
        )

        @tap.bookmark("contacts")
        def later(record: dict[str, Any], state: dict[str, Any]) -> Any:
            return record["updated"] or record["created"]

        assert sync(tap).state["bookmarks"]["contacts"] == {"updated": "2026-01-02T00:00:00Z"}

    def test_a_bookmark_asks_for_record_and_state_alone(self) -> None:
        with pytest.raises(TapError, match="parameter 'row'; it may ask for record, state"):
            Tap("tap-cool").bookmark("contacts")(lambda row: None)

    def test_declaring_gives_back_the_function(self) -> None:
        tap = Tap("tap-cool")

        def function(record: Any) -> Any: ...

        assert tap.after("contacts")(function) is function
        assert tap.bookmark("contacts")(function) is function


@pytest.mark.parametrize("name", ["schema", "metadata", "bookmark", "after"])
def test_a_decorator_without_parentheses_says_where_it_is(name: str) -> None:
    with pytest.raises(TapError, match=r"\(.*test_tap_declared\.py:\d+\): want a stream's name, and parentheses"):
        getattr(Tap("tap-cool"), name)(lambda record: record)
