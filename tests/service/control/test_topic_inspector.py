"""Topics looked at in the background: what they hold, how fast, for whom."""

import os
from pathlib import Path

import pytest

from balog.common.errors import TopicError
from balog.service.control import inspector as module
from balog.service.control.inspector import TopicInspector
from balog.topics import Message, open_topics
from tests.service.serving import publish


@pytest.fixture
def home(tmp_path):
    with open_topics(f"local:{tmp_path / 'topics'}") as opened:
        yield opened


@pytest.fixture
def inspector(home, clock):
    made = TopicInspector(home, clock)
    yield made
    made.close()


def publish_orders(home, topic, count, version="1.0.0"):
    publish(home, topic, *({"cls_type": "order", "version": version, "n": n} for n in range(count)))


def test_a_topic_is_told_with_its_groups(home, inspector, until):
    publish_orders(home, "orders", 30)
    publish_orders(home, "orders", 10, version="1.1.0")
    topic = home.topic("orders")
    received = topic.receive("filter.big", 10)
    topic.ack("filter.big", received[:4])
    topic.dead_letter("filter.big", received[4:5], "no")
    view = until(lambda: next((one for one in inspector.topics() if one.messages == 40), None))

    assert view.bytes > 40 * 50
    (group,) = view.groups
    assert (group.name, group.lag, group.in_flight, group.dead) == ("filter.big", 30, 5, 1)
    assert view.rate is None


def test_rates_are_measured_between_two_looks(home, inspector, clock, until):
    publish_orders(home, "orders", 30)
    topic = home.topic("orders")
    topic.ack("g", topic.receive("g", 10))
    until(inspector.topics)
    publish_orders(home, "orders", 20)
    topic.ack("g", topic.receive("g", 15))
    clock.now += 10.0
    view = until(lambda: next((one for one in inspector.topics() if one.messages == 50), None))

    assert view.rate == pytest.approx(2.0)
    assert view.groups[0].rate == pytest.approx(1.5)
    assert view.age == 0.0


def test_a_topic_that_can_not_be_read_hides_no_other(home, inspector, until, tmp_path):
    publish_orders(home, "good", 3)
    home.close()
    (file,) = (path for path in (tmp_path / "topics").iterdir() if path.stem == "good" and "-" not in path.suffix)
    file.with_stem("bad").write_bytes(b"no database at all" * 500)
    bad, good = until(
        lambda: (views := inspector.topics()) and all(one.error or one.messages for one in views) and views
    )

    assert "bad" in bad.error
    assert (good.messages, good.error) == (3, "")


def fail(*_):
    raise TopicError("no answer: sasl.password=hunter2pw")


def test_the_error_of_a_topic_has_no_secret(home, inspector, until, monkeypatch):
    publish_orders(home, "t", 1)
    monkeypatch.setattr(type(home.topic("t")), "describe", fail)
    until(lambda: [one.error for one in inspector.topics()] == ["no answer: sasl.password=[redacted]"])


def test_a_home_that_can_not_be_listed_is_told_without_secrets(home, inspector, until, monkeypatch):
    monkeypatch.setattr(home, "names", fail)
    inspector.topics()
    until(lambda: inspector.error == "no answer: sasl.password=[redacted]")
    assert inspector.topics() == []


def test_a_topic_that_takes_long_is_looked_at_less_often(home, clock, until, monkeypatch):
    """Given a look that takes 3 s, then the next one is 60 s later, and the age says how old the numbers are."""
    publish_orders(home, "orders", 5)
    topic = home.topic("orders")
    describe, looks = topic.describe, []

    def slow():
        looks.append(clock.now)
        clock.now += 3.0
        return describe()

    monkeypatch.setattr(topic, "describe", slow)
    inspector = TopicInspector(home, clock)
    until(inspector.topics)
    until(lambda: looks)
    until(lambda: not inspector._thread.is_alive())
    clock.now += 55.0
    assert inspector.topics()
    assert not inspector._thread.is_alive()
    assert len(looks) == 1
    assert inspector.topics()[0].age >= 55.0
    clock.now += 10.0
    until(lambda: inspector.topics() and len(looks) == 2)
    inspector.close()


def test_a_home_of_many_topics_takes_few_files(home, inspector, until, monkeypatch):
    """Given more topics than may stay open, then the others are closed after each look, and told all the same."""
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    for number in range(12):
        with home.topic(f"t{number:02}") as topic:
            topic.publish([Message("a", b"{}")])
    until(lambda: [view.messages for view in inspector.topics()] == [1] * 12)
    inspector.close()

    files = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if exists(number)]
    assert {Path(file).name for file in files if str(home.path) in file and file.endswith(".sqlite")} == {
        "t00.sqlite",
        "t01.sqlite",
        "t02.sqlite",
    }


def exists(number):
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_a_queue_is_described_and_never_received_from(home, inspector, until, monkeypatch):
    publish_orders(home, "orders", 5)
    topic = home.topic("orders")
    monkeypatch.setattr(type(topic), "keeps_groups", False)

    def peek(*_, **__):
        raise AssertionError("a look into a queue counts as a delivery")

    monkeypatch.setattr(topic, "peek", peek)
    assert until(lambda: any(one.messages == 5 for one in inspector.topics()))
