import os

import pytest

from balog.common.errors import ConfigError, MessageError, MissingExtraError, TopicError
from balog.event import Event
from balog.sinks import SinkError
from balog.sinks.topic import TopicSinkConfig
from tests.stand_ins.batches import deliver, numbered


def build(folder):
    return TopicSinkConfig(url=f"local:{folder}", topic="events").build()


def test_a_probe_makes_nothing_and_delivers_nothing(tmp_path):
    sink = build(tmp_path / "not" / "yet")
    sink.open()
    sink.probe()
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_a_probe_of_a_topic_that_is_there_reads_it(tmp_path):
    sink = build(tmp_path)
    sink.write(numbered(1))
    sink.probe()
    sink.close()
    (file,) = tmp_path.glob("*.sqlite")
    file.write_bytes(b"no database at all, but a long enough text" * 200)
    broken = build(tmp_path)
    with pytest.raises(SinkError, match=r"events\.sqlite"):
        broken.probe()
    broken.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="no topic can be made there"):
        build(tmp_path / "file" / "topics").probe()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(SinkError, match="give another url"):
        build(tmp_path / "topics").probe()


class Home:
    """A home elsewhere, with one topic that keeps what it was given, or raises what it was told to."""

    def __init__(self, error=None):
        self.error, self.published = error, []

    def topic(self, name):
        return self

    def exists(self):
        if self.error:
            raise self.error
        return False

    def publish(self, messages):
        if self.error:
            raise self.error
        self.published += messages

    def close(self):
        """Nothing is open."""


@pytest.fixture
def elsewhere(monkeypatch):
    """Give a function that makes any URL lead to such a home."""

    def lead(error=None):
        home = Home(error)
        monkeypatch.setattr("balog.topics.open_topics", lambda url: home)
        return home

    return lead


def write(config, *events):
    sink = config.build()
    sink.open()
    sink.write(deliver(*events))
    sink.close()


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ({}, ["LGrun", None]),
        ({"key": None}, [None, None]),
        ({"key": "payload.user"}, ["7", None]),
        ({"key": "channel || '/' || CAST(payload.user AS STRING)"}, ["a.b/7", None]),
    ],
)
def test_the_key_is_the_run_or_what_an_expression_gives(elsewhere, key, expected):
    home = elsewhere()
    events = [Event.new("a.b", {"user": 7}, context={"run_id": "LGrun"}), Event.new("a.b", {})]
    write(TopicSinkConfig(url="kafka:there:9092", topic="events", **key), *events)
    assert [message.key for message in home.published] == expected
    assert [message.id for message in home.published] == [event.header.id for event in events]


def test_a_key_that_is_no_expression_is_refused_with_its_place(elsewhere):
    elsewhere()
    with pytest.raises(ConfigError, match="nope") as refused:
        TopicSinkConfig(url="kafka:there:9092", topic="events", key="nope").build()
    assert refused.value.path == "key"


def denied():
    error = TopicError("queue events: access denied")
    error.retryable = False
    return error


@pytest.mark.parametrize("error", [TopicError("no answer"), denied()], ids=["away", "denied"])
def test_what_is_wrong_with_the_home_is_no_fault_of_the_events(elsewhere, error):
    elsewhere(error)
    config = TopicSinkConfig(url="sqs:eu-west-1", topic="events")
    with pytest.raises(SinkError, match=str(error)) as caught:
        write(config, Event.new("a.b", {}))
    assert caught.value.retryable
    with pytest.raises(SinkError, match=str(error)):
        config.build().probe()


def test_an_event_that_the_home_can_never_take_is_refused(elsewhere):
    elsewhere(MessageError("message LG1 has 300000 bytes and the queue takes 262144"))
    with pytest.raises(SinkError, match="300000 bytes") as caught:
        write(TopicSinkConfig(url="sqs:eu-west-1", topic="events"), Event.new("a.b", {}))
    assert not caught.value.retryable


def test_a_probe_elsewhere_asks_whether_the_topic_is_there_and_makes_nothing(elsewhere):
    home = elsewhere()
    TopicSinkConfig(url="sqs:eu-west-1", topic="events").build().probe()
    assert home.published == []


def test_a_home_whose_packages_are_missing_is_told_before_an_event_comes(monkeypatch):
    monkeypatch.setattr("balog.topics.sqs.backend.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\[aws\]'"):
        TopicSinkConfig(url="sqs:eu-west-1", topic="events").build()
