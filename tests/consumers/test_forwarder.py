"""Sinks as consumers: what of their trouble is an event's fault, and what is waited out."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.consumers import sink_adapter as module
from balog.consumers.forwarder import Forwarder, SinkConsumer
from balog.consumers.outcomes import PartialFailure, Reject, Retry
from balog.event import Event
from balog.sinks import Batching, Delivery, Retrying, SinkError
from balog.sinks.prometheus import PrometheusSinkConfig, Textfile
from balog.sinks.topic import TopicSinkConfig
from balog.sinks.webhook import WebhookSinkConfig

Write = Callable[[Sequence[Delivery]], None]


class Scripted:
    """A sink's config and the sink: it does what the functions say, and keeps what it took."""

    where = None

    def __init__(self, write: Write = lambda batch: None, name: str = "scripted here", **options: Any) -> None:
        self.name = name
        self.batch = options.pop("batch", Batching())
        self.retry = options.pop("retry", Retrying(first=30.0, longest=60.0))
        self.will_write = write
        self.openings: list[Exception | None] = list(options.pop("openings", []))
        self.opened = self.closed = 0
        self.writes: list[list[str]] = []
        self.taken: list[str] = []

    def build(self) -> "Scripted":
        return self

    def open(self) -> None:
        if self.openings and (error := self.openings.pop(0)) is not None:
            raise error
        self.opened += 1

    def write(self, batch: Sequence[Delivery]) -> None:
        self.writes.append([one.event.header.id for one in batch])
        self.will_write(batch)
        self.taken += [one.event.header.id for one in batch]

    def close(self) -> None:
        self.closed += 1


def events(count: int, **payload: Any) -> list[Event]:
    return [Event.new("a.b", {"n": number, **payload}) for number in range(count)]


def consumer(config: Any, said: "list[str] | None" = None) -> SinkConsumer:
    return SinkConsumer(config, "events", config.name, [].append if said is None else said.append)


def failures(sink: SinkConsumer, batch: Sequence[Event]) -> dict[int, BaseException]:
    """Give what a batch's events failed with, by their places in it."""
    with pytest.raises((PartialFailure, Reject, Retry)) as caught:
        sink.take({}, batch)
    if not isinstance(caught.value, PartialFailure):
        return dict.fromkeys(range(len(batch)), caught.value)
    places = {event.header.id: place for place, event in enumerate(batch)}
    return {places[name]: error for name, error in caught.value.failed.items() if isinstance(error, BaseException)}


def refuse(*bad: int) -> Write:
    """Refuse a batch whole when one of these is in it, as most servers do."""

    def write(batch: Sequence[Delivery]) -> None:
        if any(one.event.payload["n"] in bad for one in batch):
            raise SinkError("400: not like this", retryable=False)

    return write


class TestTaking:
    @given(bad=st.sets(st.integers(0, 99), max_size=40))
    def test_refused_events_are_rejected_and_all_others_delivered(self, bad: set[int]) -> None:
        config = Scripted(refuse(*bad))
        batch = events(100)
        sink = consumer(config)
        if bad:
            found = failures(sink, batch)
            assert {place for place, error in found.items() if isinstance(error, Reject)} == bad
            assert found.keys() == bad
        else:
            sink.take({}, batch)
        assert sorted(config.taken) == sorted(event.header.id for place, event in enumerate(batch) if place not in bad)
        assert (sink.adapter.stats.delivered, sink.adapter.stats.dead) == (100 - len(bad), len(bad))

    def test_what_the_sink_rejects_by_itself_is_not_tried_again(self) -> None:
        def write(batch: Sequence[Delivery]) -> None:
            raise SinkError("one of them", retryable=False, rejected={1: "no measure"}, remaining=())

        config = Scripted(write)
        found = failures(consumer(config), events(3))
        assert {place: str(error) for place, error in found.items()} == {1: "no measure"}
        assert len(config.writes) == 1

    def test_a_mistake_in_the_sink_is_told_with_its_type_and_rejects(self) -> None:
        config = Scripted(lambda batch: 1 / 0)  # type: ignore[return-value]
        (error,) = failures(consumer(config), events(1)).values()
        assert isinstance(error, Reject)
        assert str(error) == "ZeroDivisionError: division by zero"

    def test_large_events_go_in_parts_of_about_so_many_bytes(self) -> None:
        config = Scripted(batch=Batching(bytes=10_000))
        consumer(config).take({}, events(10, text="x" * 3000))
        assert [len(part) for part in config.writes] == [3, 3, 3, 1]
        config.writes.clear()
        consumer(config).take({}, events(3, text="x" * 20_000))
        assert [len(part) for part in config.writes] == [1, 1, 1]


class TestTroubleOfTheOtherSide:
    @pytest.fixture(autouse=True)
    def longest_delays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("random.random", lambda: 1.0)

    def test_is_a_retry_after_the_sink_s_backoff_and_grows(self) -> None:
        config = Scripted(lambda batch: down(), retry=Retrying(first=0.02, longest=0.06))
        sink = consumer(config)
        batch = events(2)
        waits = []
        for _ in range(4):
            found = failures(sink, batch)
            assert all(isinstance(error, Retry) for error in found.values())
            assert len(found) == 2
            waits.append(found[0].after)  # type: ignore[attr-defined]
            time.sleep(waits[-1])
        assert waits == pytest.approx([0.02, 0.04, 0.06, 0.06], rel=0.1)

    def test_only_what_was_not_taken_comes_again(self) -> None:
        def write(batch: Sequence[Delivery]) -> None:
            raise SinkError("half way", rejected={0: "odd"}, remaining=[2, 3])

        sink = consumer(Scripted(write))
        found = failures(sink, events(4))
        assert {place: type(error) for place, error in found.items()} == {0: Reject, 2: Retry, 3: Retry}
        assert (sink.adapter.stats.delivered, sink.adapter.stats.dead, sink.adapter.stats.retries) == (1, 1, 1)

    def test_parts_that_were_not_begun_come_again_too(self) -> None:
        config = Scripted(lambda batch: down() if len(config.writes) == 2 else None, batch=Batching(bytes=1024))
        found = failures(consumer(config), events(4, text="x" * 2000))
        assert sorted(found) == [1, 2, 3]
        assert len(config.writes) == 2

    def test_is_told_once_until_it_takes_events_again(self) -> None:
        said: list[str] = []
        config = Scripted(lambda batch: down(), retry=Retrying(first=0.001, longest=0.001))
        sink = consumer(config, said)
        for _ in range(3):
            failures(sink, events(1))
            time.sleep(0.002)
        config.will_write = lambda batch: None
        sink.take({}, events(1))
        assert said == [
            "scripted here: no answer; trying again, its events stay in the topic",
            "scripted here: takes events again",
        ]


def down(retry_after: "float | None" = None) -> None:
    raise SinkError("no answer", retry_after=retry_after)


class TestOpening:
    def test_its_events_wait_meanwhile(self) -> None:
        config = Scripted(openings=[SinkError("not yet")])
        with forwarding(config) as made:
            with pytest.raises(Retry, match="not yet"):
                made.sinks[0].take({}, events(1))
        assert (config.opened, config.writes) == (0, [])

    def test_what_no_further_try_can_help_ends_it_and_closes_the_others(self) -> None:
        first, second = Scripted(name="a 1"), Scripted(name="b 2", openings=[SinkError("never", retryable=False)])
        with pytest.raises(SinkError, match="never"):
            forwarding(first, second).__enter__()
        assert (first.opened, first.closed) == (1, 1)

    def test_closing_does_not_wait_for_a_sink_that_hangs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
        begun, go_on = threading.Event(), threading.Event()
        config = Scripted(lambda batch: (begun.set(), go_on.wait(60))[0])
        with forwarding(config) as made:
            thread = threading.Thread(target=made.sinks[0].take, args=({}, events(1)))
            thread.start()
            begun.wait(60)
        assert config.closed == 0
        go_on.set()
        thread.join()

    def test_a_closed_sink_gets_nothing_more(self) -> None:
        config = Scripted()
        sink = consumer(config)
        sink.adapter.open()
        sink.close()
        sink.close()
        found = failures(sink, events(1))
        assert isinstance(found[0], Retry)
        assert (config.writes, config.closed) == ([], 1)


def forwarding(*configs: Any, url: str = "local:there", topic: str = "events") -> Forwarder:
    return Forwarder(configs, url, topic, lambda line: None)


class TestConsumers:
    def test_a_sink_s_options_are_the_consumer_s(self) -> None:
        (sink,) = forwarding(
            TopicSinkConfig(
                url="local:x",
                topic="b",
                where="level >= 'ERROR'",
                batch=Batching(events=7, age=0.5),
                retry=Retrying(first=2, longest=3),
            )
        ).hub.consumers
        assert (sink.name, sink.topic, sink.concurrency) == ("topic local:x#b", "events", 1)
        assert tuple(sink.batch or ()) == (7, 0.5)
        assert tuple(sink.backoff or ()) == (2, 3)
        assert [sink.match_event(Event.new("a", {}, level=level)) for level in ("INFO", "ERROR")] == [False, True]

    def test_sinks_of_one_name_are_told_apart_by_what_they_are_not_where_they_stand(self) -> None:
        hooks = [WebhookSinkConfig(url="https://h.example/a", where=where) for where in ("level = 'ERROR'", None)]
        files = [PrometheusSinkConfig(textfile=Textfile(path=path)) for path in ("/a.prom", "/b.prom")]
        topics = [TopicSinkConfig(url=url, topic="t") for url in ("local:a", "local:b")]
        names = [sink.name for sink in forwarding(hooks[0], *files, *topics).sinks]
        again = [sink.name for sink in forwarding(*topics[::-1], *files, hooks[0]).sinks]
        assert len(set(names)) == len(names)
        assert set(names) == set(again)

    @pytest.mark.parametrize(
        ("configs", "place", "says"),
        [
            ([], "$.sinks", "no sinks"),
            ([TopicSinkConfig(url="local:there", topic="events")], "$.sinks[0]", "round without end"),
            (
                [
                    TopicSinkConfig(url="local:a", topic="b"),
                    TopicSinkConfig(url="local:a", topic="b", where="nope = 1"),
                ],
                "$.sinks[1]",
                "is there twice",
            ),
            ([TopicSinkConfig(url="local:a", topic="b", where="nope = 1")], "$.sinks[0].where", "nope"),
            ([PrometheusSinkConfig(textfile=Textfile(path="/a.txt"))], "$.sinks[0].textfile.path", ".prom"),
        ],
    )
    def test_what_cannot_be_is_refused_with_its_place(self, configs: list[Any], place: str, says: str) -> None:
        with pytest.raises(ConfigError, match=says) as refused:
            forwarding(*configs)
        assert refused.value.path == place

    @pytest.mark.parametrize("url", ["there/", "./there", "there/../there", "{}/there", "link", "there?retention=3d"])
    def test_the_topic_is_recognized_by_any_path_to_its_folder(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to("there")
        sink = TopicSinkConfig(url=f"local:{url.format(tmp_path)}", topic="events")
        with pytest.raises(ConfigError, match="round without end"):
            forwarding(sink)
        forwarding(TopicSinkConfig(url="local:elsewhere", topic="events"))

    def test_a_bad_url_of_a_topic_of_the_same_name_is_refused_with_its_place(self) -> None:
        with pytest.raises(ConfigError, match="retention=soon") as refused:
            forwarding(TopicSinkConfig(url="local:there?retention=soon", topic="events"))
        assert refused.value.path.startswith("$.sinks[0]")
