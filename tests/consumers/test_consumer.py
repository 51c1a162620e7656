"""What a consumer wants, and how it is declared."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.consumers import Consumer, consumer_config
from balog.event import Event, decode, encode


def handler(settings: object, event: object) -> str:
    return "handled"


def event(cls_type: object = "metrics", schema: str = "0.1.0") -> dict[str, object]:
    return {
        "schema": schema,
        "header": {"id": "LGa", "channel": "c", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO"},
        "payload": {"cls_type": cls_type},
    }


class TestMatchEvent:
    def test_without_conditions_everything_matches(self) -> None:
        consumer = Consumer(handler, "t")
        assert consumer.match_event(event())
        assert consumer.match_event({"schema": "odd", "payload": {}})

    @pytest.mark.parametrize(
        ("wanted", "cls_type", "matches"),
        [
            ("metrics", "metrics", True),
            ("metrics", "metric", False),
            ("metrics", None, False),
            ("metrics", ["metrics"], False),
            (("log", "run"), "run", True),
            (("log", "run"), "metric", False),
            (["log", "run"], "log", True),
        ],
    )
    def test_the_type_is_one_of_those_wanted(self, wanted: object, cls_type: object, matches: bool) -> None:
        assert Consumer(handler, "t", cls_type=wanted).match_event(event(cls_type)) is matches

    @pytest.mark.parametrize(
        ("wanted", "schema", "matches"),
        [
            ("<1.0", "0.0.1", True),
            ("<1.0", "0.1.0", True),
            ("<1.0", "1.0.0", False),
            (("<1.0",), "0.0.1", True),
            ((">=1.0.1", "<2"), "1.0.1", True),
            ((">=1.0.1", "<2"), "1.0.0", False),
            ((">=1.0.1", "<2"), "2.0.0", False),
            (">=1.0.1,<2", "1.5.0", True),
            ("==1.2.3", "1.2.3", True),
            ("==1.2.3", "1.2.4", False),
            (">=0.9", "0.10.0", True),
            ("<1.0", "not a version", False),
        ],
    )
    def test_all_version_conditions_hold_on_the_schema(self, wanted: object, schema: str, matches: bool) -> None:
        assert Consumer(handler, "t", version=wanted).match_event(event(schema=schema)) is matches

    def test_type_and_version_must_both_match(self) -> None:
        consumer = Consumer(handler, "t", cls_type="metrics", version="<1.0")
        assert consumer.match_event(event("metrics", "0.0.1"))
        assert not consumer.match_event(event("log", "0.0.1"))
        assert not consumer.match_event(event("metrics", "1.0.0"))

    @pytest.mark.parametrize("broken", [{}, {"schema": None}, {"schema": 1, "payload": None}, {"payload": [1]}])
    def test_a_dict_that_is_no_event_does_not_match_conditions(self, broken: dict[str, object]) -> None:
        assert not Consumer(handler, "t", cls_type="metrics").match_event(broken)
        assert not Consumer(handler, "t", version="<1.0").match_event(broken)

    @given(
        st.sampled_from(["metrics", "log", "", None, "métrics"]),
        st.sampled_from(["0.0.1", "0.1.0", "1.0.0", "0.4.2"]),
        st.sampled_from([None, "metrics", ("log", "metrics")]),
        st.sampled_from([None, "<1.0", (">=1.0.1", "<2")]),
    )
    def test_an_event_and_its_dict_match_alike(
        self, cls_type: object, schema: str, wanted: object, version: object
    ) -> None:
        document = event(cls_type, schema)
        consumer = Consumer(handler, "t", wanted, version)
        assert consumer.match_event(decode(encode_dict(document))) is consumer.match_event(document)


def encode_dict(document: dict[str, object]) -> bytes:
    import msgspec

    return msgspec.json.encode(document)


class TestConsumerConfig:
    def test_the_function_stays_what_it_was(self) -> None:
        def plain(settings: object, event: object) -> str:
            return "handled"

        decorated = consumer_config("t", "metrics", "<1.0", "name")(plain)
        assert decorated is plain
        assert decorated({}, {}) == "handled"

    @pytest.mark.parametrize("version", ["", "<<1", "1.x.y", ">=", ("<1", "nonsense"), 1, ("<1", 2), ()])
    def test_a_bad_condition_is_refused_at_once_with_the_function_and_the_condition(self, version: object) -> None:
        with pytest.raises(ConfigError, match=r"test_consumer\.handler: version ") as caught:
            consumer_config("t", version=version)(handler)
        bad = version[-1] if isinstance(version, tuple) and version and isinstance(version[-1], str) else version
        assert repr(bad) in str(caught.value)

    @pytest.mark.parametrize("cls_type", ["", (), 3, ("log", None), ("log", "")])
    def test_a_bad_type_is_refused_at_once(self, cls_type: object) -> None:
        with pytest.raises(ConfigError, match=r"test_consumer\.handler: cls_type "):
            consumer_config("t", cls_type=cls_type)(handler)

    @pytest.mark.parametrize("topic", ["", None, 3])
    def test_a_bad_topic_is_refused_at_once(self, topic: object) -> None:
        with pytest.raises(ConfigError, match=r"test_consumer\.handler: topic "):
            consumer_config(topic)(handler)


class TestName:
    def test_it_is_module_and_function_unless_given(self) -> None:
        assert Consumer(handler, "t").name.endswith("test_consumer.handler")
        assert Consumer(handler, "t", name="mine").name == "mine"

    def test_a_callable_without_a_name_has_its_types(self) -> None:
        assert Consumer(functools.partial(handler, {}), "t").name == "functools.partial"

    def test_an_event_object_is_matched(self) -> None:
        made = Event.new("c", {"cls_type": "metrics"})
        assert Consumer(handler, "t", "metrics").match_event(made)
        assert Consumer(handler, "t", "metrics").match_event(decode(encode(made)))
