"""Local topics and those in memory against a model in plain Python, step by step, over any sequence of calls."""

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from balog.common.errors import TopicError
from balog.topics import Message, Received
from balog.topics.local import LocalTopics
from balog.topics.local.tables import DELAYED_SHARE

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
GROUPS = ("one", "two")
groups = st.sampled_from(GROUPS)


@dataclass
class Lease:
    ready_at: float
    attempts: int
    receipt: str
    is_put_off: bool = False


@dataclass
class Redriven:
    id: str
    body: bytes


@dataclass
class Group:
    """Leases by place: an id for a message, a number for a dead letter that was redriven (the oldest comes first)."""

    cursor: int = 0
    asked: int = 0
    leases: dict[str | int, Lease] = field(default_factory=dict)
    redriven: dict[int, Redriven] = field(default_factory=dict)
    dead: dict[int, tuple[str, bytes]] = field(default_factory=dict)


def place_id(group: Group, place: str | int) -> str:
    return group.redriven[place].id if isinstance(place, int) else place


class Model:
    """What a topic should do. New messages pass most of those that were put off by a delay."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.groups = {name: Group() for name in GROUPS}
        self.dead_letters = 0

    def next(self, group: Group, limit: int, now: float, share: int) -> list[tuple[str | int, int]]:
        ready = [place for place, lease in group.leases.items() if lease.ready_at <= now]
        redriven = sorted(place for place in ready if isinstance(place, int))
        again = sorted((place for place in ready if isinstance(place, str)), key=self.ids.index)
        fresh = self.ids[group.cursor :]
        put_off = [place for place in again if group.leases[place].is_put_off]
        put_off.sort(key=lambda place: group.leases[place].ready_at)
        again = [place for place in again if place not in put_off] + put_off[:share]
        fresh = [*fresh, *put_off[share:]]
        places = [*redriven, *again, *fresh][:limit]
        return [(place, group.leases[place].attempts + 1 if place in group.leases else 1) for place in places]

    def place(self, group: Group, message: Received) -> str | int | None:
        """Give where a message is that is held by this receipt."""
        return next((place for place, lease in group.leases.items() if lease.receipt == message.receipt), None)

    def drop(self, group: Group, place: str | int) -> None:
        del group.leases[place]
        if isinstance(place, int):
            del group.redriven[place]


class LocalTopicMachine(RuleBasedStateMachine):
    received = Bundle("received")

    @initialize()
    def open(self) -> None:
        self.now = 1_800_000_000.0
        self.path = tempfile.mkdtemp(dir=MEMORY)  # what a disk keeps is asked elsewhere
        self.home = LocalTopics(self.path, clock=lambda: self.now, uptime=lambda: self.now)
        self.topic = self.home.topic("t")
        self.model = Model()
        self.topic.publish([Message("0", b"0")])
        self.model.ids.append("0")

    @rule(numbers=st.lists(st.integers(0, 30), max_size=6))
    def publish(self, numbers: list[int]) -> None:
        new = [str(number) for number in dict.fromkeys(numbers) if str(number) not in self.model.ids]
        assert self.topic.publish([Message(str(number), b"%d" % number) for number in numbers]) == len(new)
        self.model.ids += new

    @rule(target=received, group=groups, limit=st.integers(1, 5), lease=st.integers(1, 50))
    def receive(self, group: str, limit: int, lease: int) -> object:
        model = self.model.groups[group]
        share, rest = divmod(model.asked + limit, DELAYED_SHARE)
        expected = self.model.next(model, limit, self.now, share)
        if expected:
            model.asked = rest
        got = self.topic.receive(group, limit, lease=lease)
        assert [message.id for message in got] == [place_id(model, place) for place, _ in expected]
        for message, (place, attempts) in zip(got, expected):
            wanted = model.redriven[place] if isinstance(place, int) else Redriven(place, place.encode())
            assert (message.id, message.body, message.attempts) == (wanted.id, wanted.body, attempts)
            model.leases[place] = Lease(self.now + lease, message.attempts, message.receipt)
            if isinstance(place, str):
                model.cursor = max(model.cursor, self.model.ids.index(place) + 1)
        return multiple(*((group, message) for message in got))

    @rule(held=consumes(received))
    def ack(self, held: tuple[str, Received]) -> None:
        group, message = held
        place = self.model.place(self.model.groups[group], message)
        assert self.topic.ack(group, [message]) == (place is not None)
        if place is not None:
            self.model.drop(self.model.groups[group], place)

    @rule(held=received, delay=st.integers(0, 50), attempted=st.booleans())
    def release(self, held: tuple[str, Received], delay: int, attempted: bool) -> None:
        group, message = held
        model = self.model.groups[group]
        place = self.model.place(model, message)
        assert self.topic.release(group, [message], delay, attempted=attempted) == (place is not None)
        if place is not None:
            attempts = model.leases[place].attempts - (not attempted)
            model.leases[place] = Lease(self.now + delay, attempts, "", is_put_off=delay > 0)

    @rule(held=received, lease=st.integers(1, 50))
    def extend(self, held: tuple[str, Received], lease: int) -> None:
        group, message = held
        model = self.model.groups[group]
        place = self.model.place(model, message)
        assert self.topic.extend(group, [message], lease) == (place is not None)
        if place is not None:
            model.leases[place].ready_at = self.now + lease

    @rule(held=received)
    def dead_letter(self, held: tuple[str, Received]) -> None:
        group, message = held
        model = self.model.groups[group]
        place = self.model.place(model, message)
        assert self.topic.dead_letter(group, [message], "why") == (place is not None)
        if place is not None:
            self.model.drop(model, place)
            self.model.dead_letters += 1
            model.dead[self.model.dead_letters] = (message.id, message.body)

    @rule(group=groups, limit=st.none() | st.integers(0, 3), ends=st.sampled_from("0123456789"))
    def redrive(self, group: str, limit: int | None, ends: str) -> None:
        """Mend and give back the letters whose ids do not end with a digit."""
        model = self.model.groups[group]
        looked = list(model.dead)[: len(model.dead) if limit is None else limit]
        chosen = [number for number in looked if not model.dead[number][0].endswith(ends)]
        assert self.topic.redrive(
            group, lambda letter: None if letter.id.endswith(ends) else letter.body + b"!", limit
        ) == len(chosen)
        for number in chosen:
            id, body = model.dead.pop(number)
            model.redriven[number] = Redriven(id, body + b"!")
            model.leases[number] = Lease(self.now, 0, "")

    @rule(group=groups, to=st.sampled_from(["earliest", "latest"]))
    def seek(self, group: str, to: Literal["earliest", "latest"]) -> None:
        model = self.model.groups[group]
        if any(lease.receipt and lease.ready_at > self.now for lease in model.leases.values()):
            with pytest.raises(TopicError, match="holds"):
                self.topic.seek(group, to)
            return
        self.topic.seek(group, to)
        model.cursor = 0 if to == "earliest" else len(self.model.ids)
        model.leases = {number: Lease(self.now, 0, "") for number in model.redriven}

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def reopen(self) -> None:
        self.home.close()

    @invariant()
    def state_is_the_models(self) -> None:
        for name, group in self.model.groups.items():
            state = self.topic.group_state(name)
            leases = group.leases.values()
            assert state.lag == len(self.model.ids) - group.cursor
            assert state.in_flight == sum(bool(lease.receipt) and lease.ready_at > self.now for lease in leases)
            assert state.in_flight + state.waiting == len(leases)
            assert [(letter.id, letter.body) for letter in self.topic.dead_letters(name)] == list(group.dead.values())

    def teardown(self) -> None:
        self.home.close()
        shutil.rmtree(self.path)


TestLocalTopicAgainstItsModel = LocalTopicMachine.TestCase
TestLocalTopicAgainstItsModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
