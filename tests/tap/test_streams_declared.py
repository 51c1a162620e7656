"""Streams as they are declared: by functions, by classes, under several names, below others."""

from typing import Any

import pytest

from balog.tap import Stream, Tap
from balog.tap.errors import TapError
from balog.tap.schema import generated, schema_of
from balog.tap.schema.types import integer, obj, string
from balog.tap.streams import link
from tests.tap.syncs import SCHEMA, sync


def _shout(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "at": record["at"].upper()}


class TestByFunction:
    def test_a_function_becomes_a_stream_and_can_be_called_as_before(self, tap: Tap) -> None:
        @tap.stream("contacts", key_properties=["id"])
        def contacts(client: Any) -> list[dict[str, int]]:
            return [{"id": client}]

        assert isinstance(contacts, Stream)
        assert contacts("a client") == [{"id": "a client"}]
        assert tap.streams == {"contacts": contacts}

    def test_a_stream_without_a_name_has_that_of_its_function(self, tap: Tap) -> None:
        @tap.stream()
        def contacts() -> None: ...

        assert list(tap.streams) == ["contacts"]

    def test_a_function_gets_what_it_asks_for_and_nothing_else(self, tap: Tap) -> None:
        made = []
        tap.client(lambda config: made.append(config))

        @tap.stream("names")
        def names(config: Any, page: int = 3) -> list[dict[str, Any]]:
            return [{"id": config["id"] + page}]

        assert sync(tap, config={"id": 4}).ids() == [7]
        assert made == []

    def test_several_names_make_a_stream_of_each(self, tap: Tap) -> None:
        @tap.stream("leads", "deals")
        def rows(context: Any) -> Any:
            yield {"id": 1, "name": context.stream}

        assert [record["name"] for record in sync(tap).records()] == ["leads", "deals"]

    def test_it_may_give_nothing(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: None)

        assert (sync(tap).code, sync(tap).ids()) == (0, [])

    @pytest.mark.parametrize("given", [{"id": 1}, "id", b"id"])
    def test_a_single_record_in_the_place_of_records_is_a_fault(self, given: Any, tap: Tap) -> None:
        tap.stream("contacts")(lambda: given)

        ran = sync(tap)

        assert ran.code == 1
        assert f"returned a {type(given).__name__}: expected records" in ran.failures[0]


class TestByClass:
    def test_a_class_says_settings_in_its_body(self, tap: Tap) -> None:
        @tap.stream("contacts")
        class Contacts(Stream):
            key_properties = ("id",)  # type: ignore[assignment]
            replication_key = "updated"

            def records(self, client: Any) -> Any:
                yield {"id": 1, "updated": "2026-01-01T00:00:00Z"}

        ran = sync(tap)

        assert ran.messages[1]["key_properties"] == ["id"]
        assert ran.state == {"bookmarks": {"contacts": {"updated": "2026-01-01T00:00:00Z"}}}
        assert isinstance(Contacts, type)

    def test_a_class_is_made_once_a_name(self, tap: Tap) -> None:
        @tap.stream("leads", "deals", key_properties=["id"])
        class Rows(Stream):
            pages = 2

            def records(self, context: Any) -> Any:
                for page in range(self.pages):
                    yield {"id": page, "name": f"{self.name} {context.stream}"}

        assert [record["name"] for record in sync(tap).records()] == ["leads leads"] * 2 + ["deals deals"] * 2

    def test_a_method_is_a_setting_with_its_self(self, tap: Tap) -> None:
        @tap.stream("contacts")
        class Contacts(Stream):
            prefix = "Dr "

            def records(self) -> Any:
                yield {"id": 1, "name": "Who"}

            def after(self, record: Any) -> Any:
                return {**record, "name": self.prefix + record["name"]}

        assert sync(tap).records() == [{"id": 1, "name": "Dr Who"}]

    def test_a_function_that_a_body_is_given_is_a_value(self, tap: Tap) -> None:
        @tap.stream("contacts", "leads")
        class Contacts(Stream):
            key_properties = ("id",)
            replication_key = "id"
            schema = generated(lambda: dict.fromkeys(("contacts", "leads"), obj({"id": integer(), "at": string()})))
            bookmark_strategy = lambda record, count: record["id"] == 2  # noqa: E731
            after = _shout

            def records(self) -> Any:
                yield from ({"id": 1, "at": "a"}, {"id": 2, "at": "b"}, {"id": 3, "at": "c"})

        for stream in tap.streams.values():
            stream.schema = schema_of(stream.schema, lambda: None, stream.name)
        ran = sync(tap)

        assert [record["at"] for record in ran.records()] == ["A", "B", "C"] * 2
        assert {"bookmarks": {"contacts": {"id": 2}}, "currently_syncing": "contacts"} in ran.states

    def test_another_class_is_refused(self, tap: Tap) -> None:
        with pytest.raises(TapError, match=r"class Empty \(.*test_streams_declared\.py:\d+\): expected a subclass"):

            @tap.stream("empty")
            class Empty: ...


class TestWhatCannotBe:
    """Each is told at its declaration, with the line of it."""

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"key_propertys": ["id"]}, "there is no setting 'key_propertys'; did you mean 'key_properties'?"),
            ({"key_properties": "id"}, "key_properties='id': expected a list of different names"),
            ({"key_properties": ["id", "id"]}, "expected a list of different names"),
            ({"replication_key": 3}, "replication_key=3: expected a text"),
            ({"replication_method": "LOG"}, "expected FULL_TABLE or INCREMENTAL or LOG_BASED"),
            ({"replication_method": "INCREMENTAL"}, "needs a replication_key"),
            ({"lookback": -1}, "lookback=-1: expected seconds"),
            ({"lookback": True}, "lookback=True"),
            ({"policy": "ignore"}, "expected coerce or fail or quarantine"),
            ({"bookmark_strategy": "every_100"}, "expected end_of_stream, tap.every_n"),
            (
                {"bookmark_strategy": lambda record: True},
                "expected a function of record and count: too many positional",
            ),
            ({"is_sorted": False, "bookmark_strategy": Tap.every_n(3)}, "is_sorted=False requires"),
            ({"metadata": {"id": {}}}, "expected a dict of dicts by breadcrumb"),
            ({"parent": "a", "source_stream": "b"}, "has a parent and a source_stream"),
            (
                {"metadata": None},
                "metadata=None: expected a dict of dicts by",
            ),
        ],
    )
    def test_settings(self, settings: dict[str, Any], reason: str, tap: Tap) -> None:
        with pytest.raises(TapError) as caught:
            tap.stream("contacts", **settings)(lambda: ())

        assert reason in str(caught.value)
        assert str(caught.value).startswith("stream 'contacts' (")
        assert "test_streams_declared.py:" in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "other"),
        [
            ({"lookback": 60}, "replication_key="),
            ({"is_sorted": False}, "replication_key="),
            ({"created_key": "created"}, "replication_key="),
            ({"each_key": "id", "replication_key": "updated"}, "for_each= and replication_key="),
            ({"each_key": "id", "for_each": list}, "for_each= and replication_key="),
            ({"each_name": "shops", "for_each": list}, "for_each= and replication_key="),
            ({"bookmark_of": lambda record: 1, "replication_method": "FULL_TABLE"}, "replication_method='INCREMENTAL'"),
        ],
    )
    def test_settings_without_effect(self, settings: dict[str, Any], other: str, tap: Tap) -> None:
        """It is an error when the tap starts; with what it needs, it is none."""
        tap.stream("contacts", **settings)(lambda: ())
        name = next(iter(settings))
        with pytest.raises(TapError, match=rf"^stream 'contacts' \(.*\): {name}= does nothing without {other}$"):
            tap.link()

    def test_settings_with_their_defaults_have_no_effect_and_are_allowed(self, tap: Tap) -> None:
        tap.stream("contacts", lookback=0, is_sorted=True, created_key=None, schema=SCHEMA)(lambda: ())
        tap.link()

    def test_a_created_key_that_the_schema_lacks(self, tap: Tap) -> None:
        tap.stream("contacts", replication_key="updated", created_key="nope", schema=SCHEMA)(lambda: ())
        with pytest.raises(TapError, match="'nope' must be in its schema, because they are keys"):
            sync(tap)

    def test_two_streams_of_one_name(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())

        with pytest.raises(TapError, match=r"there is a stream of this name already \(.*test_streams_declared\.py:\d+"):
            tap.stream("contacts")(lambda: ())

    def test_a_parameter_that_there_is_not(self, tap: Tap) -> None:
        with pytest.raises(TapError, match="parameter 'cilent'; it may ask for client, config, context; did you mean"):
            tap.stream("contacts")(lambda cilent: ())

    def test_a_parent_is_for_substreams_alone(self, tap: Tap) -> None:
        with pytest.raises(TapError, match="parameter 'parent'"):
            tap.stream("contacts")(lambda parent: ())

    def test_a_decorator_without_parentheses(self, tap: Tap) -> None:
        with pytest.raises(TapError, match="expected names, and parentheses"):

            @tap.stream  # type: ignore[arg-type]
            def contacts() -> None: ...

    def test_something_that_is_no_function(self, tap: Tap) -> None:
        with pytest.raises(TapError, match="expected a function or a class"):
            tap.stream("contacts")([{"id": 1}])


class TestLinking:
    def test_an_unknown_parent_is_told(self, tap: Tap) -> None:
        tap.stream("contacts")(lambda: ())
        tap.stream("notes", parent="contact")(lambda parent: ())

        with pytest.raises(TapError, match="parent='contact': there is no such stream; did you mean 'contacts'"):
            tap.link()

    def test_a_parent_may_be_declared_later(self, tap: Tap) -> None:
        tap.stream("notes", parent="contacts", schema=SCHEMA)(lambda parent: ())
        contacts = tap.stream("contacts", schema=SCHEMA)(lambda: ())

        tap.link()

        assert [child.name for child in contacts.children] == ["notes"]

    def test_a_circle_is_refused(self, tap: Tap) -> None:
        tap.stream("one", parent="two")(lambda: ())
        tap.stream("two", parent="one")(lambda: ())

        with pytest.raises(TapError, match=r"'one' .* depends on itself through"):
            tap.link()

    def test_a_stream_without_a_function_must_be_given_by_one(self, tap: Tap) -> None:
        tap.add(Stream("leads"))

        with pytest.raises(TapError, match="has no function that yields records; set source_stream="):
            tap.link()

    def test_a_parent_of_another_tap_is_unknown(self) -> None:
        other = Stream("contacts")
        stream = Stream("notes", parent=other)

        with pytest.raises(TapError, match="parent='contacts': there is no such stream"):
            link({"notes": stream})
