import logging
import re
import threading

import pytest

import balog
from balog.log import configuration
from balog.log.stdlib import EventHandler
from balog.testing import Events, capture_events
from tests.documentation import docs_page

cached = balog.get_logger("cached").bind(one=1)
cached.is_enabled_for("INFO")

pytest_plugins = ["pytester"]


def fill() -> None:
    log = balog.get_logger("tap")
    log.debug("starting")
    log.info("done", payload={"cls_type": "app.job", "rows": 3, "tags": {"a": 1, "b": 2}}, channel="tap.users.done")
    log.bind(stream="orders").warning("slow sync of %s", "orders", seconds=7.5)


class TestCapture:
    def test_every_level_of_every_logger_is_caught_and_nothing_is_written(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with capture_events() as events:
            cached.debug("hi")
            fill()

        assert events.channels == ["cached", "tap", "tap.users.done", "tap"]
        assert [event.level for event in events] == ["DEBUG", "DEBUG", "INFO", "WARNING"]
        assert events.payloads[2]["rows"] == 3
        assert events[0].header.context["one"] == 1
        assert capfd.readouterr() == ("", "")

    def test_threads_and_the_standard_library_are_caught(self, events: Events) -> None:
        thread = threading.Thread(target=cached.info, args=("from a thread",))
        thread.start()
        thread.join()
        handler = EventHandler()
        log = logging.getLogger("some.library")
        log.addHandler(handler)
        try:
            log.error("from a library")
        finally:
            log.removeHandler(handler)

        events.assert_logged(channel="cached", message="from a thread")
        events.assert_logged(channel="some.library", level="ERROR", message="from a library")

    def test_what_goes_wrong_is_raised_unless_one_asks_for_less(self) -> None:
        with capture_events() as events, pytest.raises(TypeError):
            cached.info("x", payload={"x": object()})
        assert events == []
        with capture_events(strict=False) as events:
            cached.info("x", payload={"x": object()})
        assert events.one().payload["problem"]

    def test_secrets_are_taken_out_as_they_would_be(self, events: Events) -> None:
        cached.info("x", payload={"password": "s3cret"})

        assert events.one().payload == {"password": "[redacted]"}

    def test_the_inner_one_catches_and_all_is_as_it_was_afterwards(self) -> None:
        before = configuration.state.recorder
        with capture_events() as outer:
            cached.info("one")
            with capture_events() as inner:
                cached.info("two")
            cached.info("three")
            with pytest.raises(ValueError), capture_events():
                raise ValueError
            cached.info("four")

        assert [payload["message"] for payload in inner.payloads] == ["two"]
        assert [payload["message"] for payload in outer.payloads] == ["one", "three", "four"]
        assert configuration.state.recorder is before

    def test_after_an_inner_block_a_configuration_is_still_caught_by_the_outer_one(self) -> None:
        with capture_events() as outer:
            with capture_events() as inner:
                balog.configure("singer")
            balog.configure("singer")
            cached.info("one")

        assert ([payload["message"] for payload in outer.payloads], inner) == (["one"], [])

    def test_a_program_that_configures_itself_is_caught_with_what_it_configures(self) -> None:
        before = configuration.state.recorder
        with capture_events() as events:
            balog.configure(
                "singer",
                level="ERROR",
                redact=False,
                application="job",
                processors=[lambda logger, method, data: {**data, "seen": True}],
            )
            cached.info("x", password="p")

        assert events.one().header.context["application"] == "job"
        assert events.one().payload["fields"] == {"password": "p", "seen": True}
        assert configuration.state.recorder is before

    def test_the_outputs_from_before_are_still_open(self, capsys: pytest.CaptureFixture[str]) -> None:
        before = configuration.state.swap(None)
        try:
            balog.configure("stderr")
            with capture_events():
                balog.configure("singer")
                cached.info("caught")
            cached.info("written")
        finally:
            configuration.state.swap(before)

        assert [line for line in capsys.readouterr().err.splitlines() if "written" in line]


class TestFind:
    @pytest.fixture(autouse=True)
    def filled(self, events: Events) -> None:
        fill()

    @pytest.mark.parametrize(
        ("criteria", "indexes"),
        [
            ({}, [0, 1, 2]),
            ({"channel": "tap"}, [0, 2]),
            ({"channel": "tap.*"}, [1]),
            ({"level": "warn"}, [2]),
            ({"cls_type": "app.job"}, [1]),
            ({"cls_type": "log", "level": "DEBUG"}, [0]),
            ({"rows": 3}, [1]),
            ({"rows": 4}, []),
            ({"seconds": 7.5}, [2]),
            ({"message": "slow sync of orders"}, [2]),
            ({"message": re.compile("of ord")}, [2]),
            ({"payload": {"tags": {"a": 1}}}, [1]),
            ({"payload": {"tags": {"a": 2}}}, []),
            ({"context": {"stream": "orders"}}, [2]),
            ({"nothing": None}, []),
        ],
    )
    def test_all_criteria_hold(self, events: Events, criteria: dict[str, object], indexes: list[int]) -> None:
        assert events.find(**criteria) == [events[index] for index in indexes]

    def test_one_gives_the_one(self, events: Events) -> None:
        assert events.one(rows=3) is events[1]

    def test_a_level_that_is_none_is_a_mistake_of_the_test(self, events: Events) -> None:
        with pytest.raises(ValueError, match="no level 'loud'; there are DEBUG, INFO"):
            events.find(level="loud")

    def test_assert_logged_gives_what_it_found(self, events: Events) -> None:
        assert events.assert_logged(channel="tap", times=2) == [events[0], events[2]]

    def test_assert_none_looks_at_a_level_and_those_above(self, events: Events) -> None:
        events.assert_none()
        events.assert_none(level="INFO", channel="other*")
        with pytest.raises(AssertionError) as failed:
            events.assert_none(level="INFO", channel="tap")
        assert str(failed.value) == (
            "expected no event of INFO or above\n"
            "with\n"
            "    channel = 'tap'\n"
            "found 1:\n"
            '    WARNING tap {"cls_type":"log","version":"1.0.0","message":"slow sync of orders",'
            '"severity":"WARNING",'
            '"fields":{"seconds":7.5}}'
        )


class TestMessages:
    def test_what_was_logged_stands_beside_what_was_wanted(self, events: Events) -> None:
        fill()
        with pytest.raises(AssertionError) as failed:
            events.assert_logged(channel="tap.users.*", rows=4, cls_type="app.job", missing=1)

        lines = str(failed.value).splitlines()
        assert lines[:6] == [
            "expected an event with",
            "    channel = 'tap.users.*'",
            "    rows = 4",
            "    cls_type = 'app.job'",
            "    missing = 1",
            'near: INFO tap.users.done {"cls_type":"app.job","rows":3,"tags":{"a":1,"b":2}}',
        ]
        assert lines[6:12] == [
            "    channel = 'tap.users.*'",
            "  - rows = 4",
            "  + rows = 3",
            "    cls_type = 'app.job'",
            "  - missing = 1",
            "  + missing is not there",
        ]
        assert lines[-4] == "logged 3:"

    def test_nothing_logged_is_said(self, events: Events) -> None:
        with pytest.raises(AssertionError) as failed:
            events.one(channel="a")
        assert str(failed.value) == "expected one event with\n    channel = 'a'\nnothing was logged"

    def test_too_many_are_listed_up_to_twenty(self, events: Events) -> None:
        for number in range(25):
            cached.info("x", payload={"n": number, "text": "y" * 1000})
        with pytest.raises(AssertionError) as failed:
            events.one()

        lines = str(failed.value).splitlines()
        assert lines[1] == "found 25:"
        assert len(lines) == 23
        assert lines[-1] == "    … and 5 more"
        assert max(map(len, lines)) < 400


def test_the_plugin_costs_no_import_unless_the_fixture_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys
        def test_before():
            assert not [name for name in sys.modules if name.split(".")[0] in ("balog", "structlog")]
        def test_used(events):
            import balog
            balog.get_logger("a").info("hi")
            assert events.channels == ["a"]
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_sync_that_breaks_an_assertion_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        from balog.tap import Tap
        tap = Tap("tap-cool")

        @tap.stream("rows", replication_key="at", bookmark_strategy=tap.every_n(5), schema={})
        def rows():
            yield from ({"at": at} for at in ("b", "a"))

        def test_sync(tap_assertions):
            with pytest.raises(SystemExit):
                tap.run([])
    """)
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, errors=1)
    ran.stdout.fnmatch_lines(["*rows: at: 'a' comes after 'b'"])


@pytest.mark.parametrize(
    ("page", "passed"),
    [("testing", 2), ("test-handlers", 2), ("test-with-the-event-service", 1), ("testing-functions", 1)],
)
def test_what_a_page_shows_runs(pytester: pytest.Pytester, page: str, passed: int) -> None:
    text = docs_page(f"{page}.md").read_text(encoding="utf-8")
    for name, block in re.findall(r"^```python ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (pytester.path / (name or "test_block.py")).write_text(
            block if name else "def test_block():\n" + re.sub("^", "    ", block, flags=re.MULTILINE)
        )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=passed)
