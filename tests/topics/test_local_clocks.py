"""What a local topic keeps, and when it delivers again, while the machine's time is set forward and back."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from balog.common.errors import ConfigError
from balog.testing.contracts.topic_fixtures import ids, messages
from balog.topics import local_folder, open_topics
from balog.topics.base import uptime
from balog.topics.local import LocalTopic, LocalTopics
from balog.topics.local.tables import LeaseClock
from tests.topics.retention import prune

DAY = 86400.0


class Machine:
    """A wall clock that can be set, and an uptime that cannot."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.up = 5000.0

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def open(self, path: Path, retention: float | None = None) -> LocalTopics:
        return LocalTopics(path, retention, clock=lambda: self.wall, uptime=lambda: self.up)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def topic(tmp_path: Path, machine: Machine) -> Iterator[LocalTopic]:
    with machine.open(tmp_path / "topics") as home:
        yield home.topic("orders")


class TestWhatIsKept:
    def test_a_clock_set_forward_deletes_nothing_that_a_group_has_not_handled(
        self, topic: LocalTopic, machine: Machine
    ) -> None:
        topic.publish(messages("handled", "in flight", "delayed", "never received"))
        handled, _, delayed = topic.receive("g", 3)
        topic.ack("g", [handled])
        topic.release("g", [delayed], 10.0)
        machine.wall += 15 * DAY
        topic.publish(messages("new"))
        assert [message.id for message in topic.peek()] == ["in flight", "delayed", "never received", "new"]
        machine.pass_time(60.0)
        assert sorted(ids(topic.receive("g"))) == ["delayed", "in flight", "never received", "new"]

    def test_a_message_is_kept_until_the_slowest_group_has_handled_it(
        self, topic: LocalTopic, machine: Machine
    ) -> None:
        topic.publish(messages("a", "b"))
        topic.ack("fast", topic.receive("fast"))
        topic.ack("slow", topic.receive("slow", 1))
        machine.pass_time(15 * DAY)
        assert prune(topic) == 1
        assert ids(topic.receive("slow")) == ["b"]

    def test_without_a_group_every_message_is_kept(self, topic: LocalTopic, machine: Machine) -> None:
        topic.publish(messages("a"))
        machine.pass_time(400 * DAY)
        assert prune(topic) == 0
        assert ids(topic.receive("g")) == ["a"]

    def test_dead_letters_and_redriven_ones_are_kept(self, topic: LocalTopic, machine: Machine) -> None:
        topic.publish(messages("a", "b"))
        topic.dead_letter("g", topic.receive("g"), "why")
        topic.redrive("g", lambda letter: letter.body if letter.id == "a" else None)
        machine.pass_time(400 * DAY)
        prune(topic)
        assert ids(topic.receive("g")) == ["a"]
        assert [letter.id for letter in topic.dead_letters("g")] == ["b"]

    def test_a_retention_in_the_url_deletes_by_age_alone(self, tmp_path: Path, machine: Machine) -> None:
        with machine.open(tmp_path / "topics", retention=2 * DAY) as home:
            home.topic("orders").publish(messages("a"))
            machine.pass_time(3 * DAY)
            assert prune(home.topic("orders")) == 1


class TestRetentionInTheUrl:
    @pytest.mark.parametrize(("text", "seconds"), [("14d", 14 * DAY), ("1.5h", 5400.0), ("90m", 5400.0), ("30s", 30.0)])
    def test_it_is_a_number_and_a_unit(self, tmp_path: Path, text: str, seconds: float) -> None:
        with open_topics(f"local:{tmp_path}/t?retention={text}") as home:
            assert isinstance(home, LocalTopics)
            assert home.path == tmp_path / "t"
            assert home.url == f"local:{tmp_path}/t"
            assert home._retention == seconds
        assert local_folder(f"local:{tmp_path}/t?retention={text}") == tmp_path / "t"

    @pytest.mark.parametrize("text", ["", "14", "d", "-1d", "0d", "1w", "1d ", "1e3d"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigError, match="such as 14d"):
            open_topics(f"local:topics?retention={text}")


class TestLeases:
    def test_a_clock_set_back_holds_no_lease_and_no_delay_longer(self, topic: LocalTopic, machine: Machine) -> None:
        topic.publish(messages("a", "b"))
        leased, delayed = topic.receive("g", lease=30.0)
        topic.release("g", [delayed], 10.0)
        machine.wall -= 5 * 3600
        machine.pass_time(11.0)
        assert ids(topic.receive("g")) == ["b"]
        machine.pass_time(20.0)
        assert leased.id in ids(topic.receive("g"))

    def test_a_clock_set_forward_ends_no_lease_and_no_delay_early(self, topic: LocalTopic, machine: Machine) -> None:
        topic.publish(messages("a", "b"))
        leased, delayed = topic.receive("g", lease=30.0)
        topic.release("g", [delayed], 10.0)
        machine.wall += 5 * 3600
        assert topic.receive("g") == []
        assert topic.group_state("g").in_flight == 1
        assert topic.ack("g", [leased]) == 1

    def test_a_restart_of_the_machine_ends_leases_and_keeps_delays(self, tmp_path: Path, machine: Machine) -> None:
        topics = tmp_path / "topics"
        with machine.open(topics) as home:
            topic = home.topic("orders")
            topic.publish(messages("a", "b"))
            topic.release("g", topic.receive("g", lease=3000.0)[1:], 100.0)
        machine.up, machine.wall = 1.0, machine.wall + 50
        with machine.open(topics) as home:
            topic = home.topic("orders")
            topic._lease_clock._boot = "another start"
            assert topic.group_state("g").in_flight == 0
            assert ids(topic.receive("g", lease=3000.0)) == ["a"]
            assert topic.receive("g") == []
            machine.pass_time(51.0)
            assert ids(topic.receive("g")) == ["b"]

    def test_without_a_boot_id_leases_go_by_the_wall_clock(self, tmp_path: Path, machine: Machine) -> None:
        with machine.open(tmp_path / "topics") as home:
            topic = home.topic("orders")
            topic._lease_clock = LeaseClock(lambda: machine.wall, lambda: machine.up, boot=lambda: "")
            topic.publish(messages("a"))
            topic.receive("g", lease=30.0)
            machine.wall += 31
            assert ids(topic.receive("g")) == ["a"]

    def test_uptime_is_the_same_in_another_process(self) -> None:
        before = uptime()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            there = pool.apply(uptime)
        assert before <= there <= uptime()
