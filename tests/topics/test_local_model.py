"""The local topic against a model of it in plain Python, step by step, over any sequence of calls."""

import shutil
import tempfile
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from balog.topics import Message, Received
from balog.topics.local import LocalTopics

GROUPS = ("one", "two")
groups = st.sampled_from(GROUPS)


@dataclass
class Lease:
    ready_at: float
    attempts: int
    receipt: str


class Model:
    def __init__(self) -> None:
        self.ids: list[str] = []
        self.cursor = dict.fromkeys(GROUPS, 0)
        self.leases: dict[str, dict[str, Lease]] = {group: {} for group in GROUPS}
        self.dead: dict[str, list[str]] = {group: [] for group in GROUPS}

    def next(self, group: str, limit: int, now: float) -> list[tuple[str, int]]:
        leases = self.leases[group]
        again = [id for id in self.ids if id in leases and leases[id].ready_at <= now]
        fresh = self.ids[self.cursor[group] :]
        return [(id, leases[id].attempts + 1 if id in leases else 1) for id in (again + fresh)[:limit]]

    def held(self, group: str, message: Received) -> bool:
        lease = self.leases[group].get(message.id)
        return lease is not None and lease.receipt == message.receipt


class LocalTopicMachine(RuleBasedStateMachine):
    received = Bundle("received")

    @initialize()
    def open(self) -> None:
        self.now = 1_800_000_000.0
        self.path = tempfile.mkdtemp()
        self.home = LocalTopics(self.path, clock=lambda: self.now)
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
        expected = self.model.next(group, limit, self.now)
        got = self.topic.receive(group, limit, lease=lease)
        assert [(message.id, message.attempts) for message in got] == expected
        for message in got:
            assert message.body == message.id.encode()
            self.model.leases[group][message.id] = Lease(self.now + lease, message.attempts, message.receipt)
            self.model.cursor[group] = max(self.model.cursor[group], self.model.ids.index(message.id) + 1)
        return multiple(*((group, message) for message in got))

    @rule(held=consumes(received))
    def ack(self, held: tuple[str, Received]) -> None:
        group, message = held
        assert self.topic.ack(group, [message]) == self.model.held(group, message)
        if self.model.held(group, message):
            del self.model.leases[group][message.id]

    @rule(held=received, delay=st.integers(0, 50), attempted=st.booleans())
    def release(self, held: tuple[str, Received], delay: int, attempted: bool) -> None:
        group, message = held
        was_held = self.model.held(group, message)
        assert self.topic.release(group, [message], delay, attempted=attempted) == was_held
        if was_held:
            lease = self.model.leases[group][message.id]
            self.model.leases[group][message.id] = Lease(self.now + delay, lease.attempts - (not attempted), "")

    @rule(held=received, lease=st.integers(1, 50))
    def extend(self, held: tuple[str, Received], lease: int) -> None:
        group, message = held
        assert self.topic.extend(group, [message], lease) == self.model.held(group, message)
        if self.model.held(group, message):
            self.model.leases[group][message.id].ready_at = self.now + lease

    @rule(held=received)
    def dead_letter(self, held: tuple[str, Received]) -> None:
        group, message = held
        assert self.topic.dead_letter(group, [message], "why") == self.model.held(group, message)
        if self.model.held(group, message):
            del self.model.leases[group][message.id]
            self.model.dead[group].append(message.id)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def reopen(self) -> None:
        self.home.close()

    @invariant()
    def state_is_the_models(self) -> None:
        for group in GROUPS:
            state = self.topic.group_state(group)
            leases = self.model.leases[group].values()
            assert state.lag == len(self.model.ids) - self.model.cursor[group]
            assert state.in_flight == sum(bool(lease.receipt) and lease.ready_at > self.now for lease in leases)
            assert state.in_flight + state.waiting == len(leases)
            assert [letter.id for letter in self.topic.dead_letters(group)] == self.model.dead[group]

    def teardown(self) -> None:
        self.home.close()
        shutil.rmtree(self.path)


TestLocalTopicAgainstItsModel = LocalTopicMachine.TestCase
TestLocalTopicAgainstItsModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
