"""What ``@consumer_config`` takes: conditions on events, and how they are wanted."""

import functools
from fnmatch import fnmatchcase

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.consumers import Consumer, consumer_config
from balog.consumers.consumer import Backoff, BatchOptions
from balog.consumers.routing import ConsumerRouter
from balog.event import LEVELS, Event, decode, encode


def handler(settings: object, event: object) -> None: ...


async def waiting(settings: object, event: object) -> None: ...


def document(channel: str = "tap_a.sync.done", level: str | None = "INFO", schema: str = "0.1.0", **payload: object):
    header = {"id": "LGa", "channel": channel, "timestamp": "2026-11-20T07:46:12Z"}
    if level is not None:
        header["level"] = level
    return {"schema": schema, "header": header, "payload": payload}


def wants(event: dict, **conditions: object) -> bool:
    """Whether a consumer wants an event, as which it says the same of the Event and of the dict."""
    consumer = Consumer(handler, "t", **conditions)
    found = consumer.match_event(event)
    assert consumer.match_event(decode(msgspec.json.encode(event))) is found
    return found


class TestPayloadVersion:
    @pytest.mark.parametrize(
        ("wanted", "version", "matches"),
        [
            ("<2", "1.4.0", True),
            ("<2", "2.0.0", False),
            ((">=1.1", "<2"), "1.0.9", False),
            ((">=1.1", "<2"), "1.1.0", True),
            ("==1.0.0", "one", False),
            ("==1.0.0", 1, True),  # parts that are missing count as 0
            (">=1", 1, True),
            (">=1", "1", True),
            (">=1", "1.0", True),
            (">=1", 1.0, True),
            ("<1.0", "0.99", True),
            ("<1.0", 0.99, True),
            ("<1.0", "1", False),
            ("==2.1.0-rc.1", "2.1-rc.1", True),
            *(("<1", "1.0.0-rc.1", False), (">=1", "1.0.0-rc.1", False), (">=1", "2.0.0-rc.1", True)),
            *(("<1.0.0-", "1.0.0-rc.1", True), ("<1.0.0-", "1.0.0", False), (">=1.0.0-rc.1", "1.0.0-rc.1", True)),
            *(("==1", "1.9.3", True), ("==1", "2.0.0", False), ("==1.2", "1.2.9", True), ("==1.2", "1.3.0", False)),
            (">=0", True, False),
            (">=0", [1], False),
            (">=0", {}, False),
            (">=0", 10**30, False),
            (">=0", "1.2.3.4", False),
            (">=0", "", False),
            (">=0", "1.", False),
            (">=0", "٣", False),
            (">=0", None, False),
        ],
    )
    def test_all_conditions_hold_on_the_payload_s_version(self, wanted: object, version: object, matches: bool) -> None:
        assert wants(document(version=version), payload_version=wanted) is matches

    def test_a_router_finds_events_by_versions_of_two_parts_and_by_numbers(self) -> None:
        consumers = [Consumer(handler, "t", name=name, payload_version=name) for name in ("<1.0", ">=1")]
        router = ConsumerRouter(consumers)
        found = {
            version: [one.name for one in router.wanting(decode(msgspec.json.encode(document(version=version))))]
            for version in ("0.99", 0.99, "1", "1.0", 2, "none")
        }
        assert found == {"0.99": ["<1.0"], 0.99: ["<1.0"], "1": [">=1"], "1.0": [">=1"], 2: [">=1"], "none": []}

    def test_a_payload_without_a_version_meets_none(self) -> None:
        assert not wants(document(cls_type="log"), payload_version=">=0")

    def test_it_is_not_the_facility_layer_s(self) -> None:
        event = document(version="2.0.0", schema="0.1.0")
        assert wants(event, payload_version=">=2", version="<2")
        assert not wants(event, payload_version="<2")


class TestChannel:
    @pytest.mark.parametrize(
        ("glob", "matches"),
        [
            ("tap_a.sync.done", True),
            ("tap_a.*", True),
            ("tap_*.done", True),
            ("TAP_A.*", False),
            ("tap_a", False),
            ("tap_[ab].sync.d?ne", True),
            (("x", "*.done"), True),
            (["x", "y"], False),
            ("tap_a.sync.don(e)", False),
        ],
    )
    def test_one_glob_matches_the_whole_channel_case_and_all(self, glob: object, matches: bool) -> None:
        assert wants(document(), channel=glob) is matches

    @settings(deadline=None)
    @given(st.text("ab.*?[]!", max_size=8).filter(bool), st.text("ab.\n", min_size=1, max_size=8))
    def test_globs_are_those_of_fnmatch(self, glob: str, channel: str) -> None:
        assert Consumer(handler, "t", channel=glob).match_event(document(channel)) is fnmatchcase(channel, glob)


class TestLevel:
    @pytest.mark.parametrize("floor", LEVELS)
    @pytest.mark.parametrize("level", LEVELS)
    def test_it_takes_this_level_and_above(self, floor: str, level: str) -> None:
        assert wants(document(level=level), level=floor) is (LEVELS[level] >= LEVELS[floor])

    def test_an_event_without_one_counts_as_info(self) -> None:
        old = document(level=None, schema="0.0.1")
        assert wants(old, level="info")
        assert not wants(old, level="warn")


class TestWhere:
    def test_the_expression_is_true(self) -> None:
        assert wants(document(rows=5), where="payload.rows > 4 AND channel LIKE 'tap_a.%'")
        assert not wants(document(rows=4), where="payload.rows > 4")
        assert not wants(document(), where="payload.rows > 4")

    def test_conditions_hold_together(self) -> None:
        assert wants(document(cls_type="a", rows=5), cls_type="a", where="payload.rows = 5", channel="tap*")
        assert not wants(document(cls_type="b", rows=5), cls_type="a", where="payload.rows = 5", channel="tap*")

    @pytest.mark.parametrize("broken", [{}, {"payload": {"rows": 5}}, {"payload": {"rows": object()}}, {"schema": 1}])
    def test_a_dict_that_is_no_event_meets_none(self, broken: dict) -> None:
        assert not Consumer(handler, "t", where="payload.rows = 5").match_event(broken)

    def test_the_payload_is_decoded_only_when_asked_for(self) -> None:
        event = decode(msgspec.json.encode(document(cls_type="a", rows=5)))
        for consumer in (Consumer(handler, "t", "a", channel="tap*", level="INFO", where="level >= 'INFO'"),):
            assert consumer.match_event(event)
        assert "payload" not in vars(event)


class TestKey:
    @pytest.mark.parametrize(
        ("expression", "key"),
        [
            ("payload.stream", "users"),
            ("payload.number", "3"),
            ("payload.ok", "true"),
            ("payload.missing", None),
            ("context.run", None),
            ("COALESCE(payload.missing, channel)", "tap_a.sync.done"),
            ("timestamp", "2026-11-20T07:46:12+00:00"),
            ("'one'", "one"),
        ],
    )
    def test_it_is_the_expression_s_value_as_a_text(self, expression: str, key: str | None) -> None:
        event = decode(msgspec.json.encode(document(stream="users", number=3, ok=True)))
        assert Consumer(handler, "t", ordered_by=expression).key_of(event) == key

    def test_without_an_expression_there_is_none(self) -> None:
        assert Consumer(handler, "t").key_of(Event.new("c", {})) is None


class TestHow:
    def test_nothing_is_asked_for_unless_said(self) -> None:
        consumer = Consumer(handler, "t")
        asked = [consumer.batch, consumer.retries, consumer.backoff, consumer.timeout, consumer.concurrency]
        assert asked == [None] * 5
        assert not consumer.is_async

    def test_a_batch_is_a_size_or_a_size_and_seconds(self) -> None:
        assert Consumer(handler, "t", batch=100).batch == BatchOptions(100, 1.0)
        assert Consumer(handler, "t", batch=(100, 0.5)).batch == BatchOptions(size=100, wait=0.5)

    def test_a_backoff_is_the_first_or_the_first_and_the_longest(self) -> None:
        assert Consumer(handler, "t", backoff=2).backoff == Backoff(2.0, 60.0)
        assert Consumer(handler, "t", backoff=90).backoff == Backoff(90.0, 90.0)
        assert Consumer(handler, "t", backoff=(0.5, 10)).backoff == Backoff(first=0.5, longest=10.0)

    def test_a_coroutine_function_is_told_below_partials_and_in_objects(self) -> None:
        class Called:
            async def __call__(self, settings: object, event: object) -> None: ...

        for func in (waiting, functools.partial(waiting, {}), Called(), Called().__call__):
            assert Consumer(func, "t").is_async
        for func in (handler, functools.partial(handler, {}), print):
            assert not Consumer(func, "t").is_async

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("payload_version", "nonsense"),
            ("payload_version", ()),
            ("channel", ""),
            ("channel", 3),
            ("channel", ["a"] * 101),
            ("level", "LOUD"),
            ("level", 20),
            ("where", "payload.rows >"),
            ("where", "payload.rows + 1"),
            ("where", ""),
            ("where", 1),
            ("ordered_by", "stream"),
            ("ordered_by", ""),
            ("batch", 0),
            ("batch", 1.5),
            ("batch", True),
            ("batch", (1, 2, 3)),
            ("batch", (1, 0)),
            ("batch", (1, "soon")),
            ("batch", 10_001),
            ("retries", -1),
            ("retries", 1.0),
            ("backoff", 0),
            ("backoff", (2, 1)),
            ("backoff", float("nan")),
            ("backoff", float("inf")),
            ("timeout", 0),
            ("timeout", True),
            ("timeout", 50_000),
            ("concurrency", 0),
            ("concurrency", "2"),
            ("name", 3),
            ("name", "two\nlines"),
            ("no_such_argument", 1),
        ],
    )
    def test_what_cannot_be_is_refused_in_one_line_with_function_and_argument(
        self, argument: str, value: object
    ) -> None:
        with pytest.raises(ConfigError, match=rf"test_conditions\.handler: .*{argument}") as caught:
            consumer_config("t", **{argument: value})(handler)
        assert "\n" not in str(caught.value)

    def test_a_generator_is_refused_since_calling_it_runs_nothing(self) -> None:
        def generator(settings: object, event: object):
            yield

        async def async_generator(settings: object, event: object):
            yield

        for func in (generator, async_generator, functools.partial(generator, {})):
            with pytest.raises(ConfigError, match="yield"):
                consumer_config("t")(func)

    def test_what_is_no_function_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="expected a function"):
            Consumer("handler", "t")


class TestConsumerCls:
    def test_a_subclass_stands_in_with_its_own_arguments(self, make_package) -> None:
        from balog.consumers import ConsumerHub

        make_package(
            "team",
            a="""
            from balog.consumers import Consumer, consumer_config

            class Own(Consumer):
                def __init__(self, *args, loudness, **options):
                    super().__init__(*args, **options)
                    self.loudness = loudness

            @consumer_config("t", "log", consumer_cls=Own, loudness=3, level="ERROR")
            def handle(settings, event): ...
            """,
        )
        hub = ConsumerHub()
        hub.scan("team")
        (consumer,) = hub.consumers
        assert (type(consumer).__name__, consumer.loudness, consumer.name) == ("Own", 3, "team.a.handle")
        assert consumer.cls_type == ("log",)

    @pytest.mark.parametrize("other", [dict, "Consumer", None])
    def test_anything_else_is_refused(self, other: object) -> None:
        with pytest.raises(ConfigError, match=r"test_conditions\.handler: consumer_cls "):
            consumer_config("t", consumer_cls=other)(handler)


class TestMatchEvent:
    def test_without_conditions_everything_matches(self) -> None:
        consumer = Consumer(handler, "t")
        assert consumer.match_event(document())
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
        assert wants(document(cls_type=cls_type), cls_type=wanted) is matches

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
        assert Consumer(handler, "t", version=wanted).match_event(document(schema=schema)) is matches

    def test_type_and_version_must_both_match(self) -> None:
        both = {"cls_type": "metrics", "version": "<1.0"}
        assert wants(document(cls_type="metrics", schema="0.0.1"), **both)
        assert not wants(document(cls_type="log", schema="0.0.1"), **both)
        assert not wants(document(cls_type="metrics", schema="1.0.0"), **both)

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
        wants(document(cls_type=cls_type, schema=schema), cls_type=wanted, version=version)


class TestConsumerConfig:
    def test_the_function_stays_what_it_was(self) -> None:
        def plain(settings: object, event: object) -> str:
            return "handled"

        decorated = consumer_config("t", "metrics", "<1.0", "name")(plain)
        assert decorated is plain
        assert decorated({}, {}) == "handled"

    @pytest.mark.parametrize("version", ["", "<<1", "1.x.y", ">=", ("<1", "nonsense"), 1, ("<1", 2), ()])
    def test_a_bad_condition_is_refused_at_once_with_the_function_and_the_condition(self, version: object) -> None:
        with pytest.raises(ConfigError, match=r"test_conditions\.handler: version ") as caught:
            consumer_config("t", version=version)(handler)
        bad = version[-1] if isinstance(version, tuple) and version and isinstance(version[-1], str) else version
        assert repr(bad) in str(caught.value)

    @pytest.mark.parametrize("cls_type", ["", (), 3, ("log", None), ("log", "")])
    def test_a_bad_type_is_refused_at_once(self, cls_type: object) -> None:
        with pytest.raises(ConfigError, match=r"test_conditions\.handler: cls_type "):
            consumer_config("t", cls_type=cls_type)(handler)

    @pytest.mark.parametrize("topic", ["", None, 3])
    def test_a_bad_topic_is_refused_at_once(self, topic: object) -> None:
        with pytest.raises(ConfigError, match=r"test_conditions\.handler: topic "):
            consumer_config(topic)(handler)


class TestName:
    def test_it_is_module_and_function_unless_given(self) -> None:
        assert Consumer(handler, "t").name.endswith("test_conditions.handler")
        assert Consumer(handler, "t", name="mine").name == "mine"

    def test_a_callable_without_a_name_has_its_types(self) -> None:
        assert Consumer(functools.partial(handler, {}), "t").name == "functools.partial"

    def test_an_event_object_is_matched(self) -> None:
        made = Event.new("c", {"cls_type": "metrics"})
        assert Consumer(handler, "t", "metrics").match_event(made)
        assert Consumer(handler, "t", "metrics").match_event(decode(encode(made)))
