"""A member's knowledge of one partition survives a crash at any step: nothing is lost, nothing settled comes again."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

pytest.importorskip("confluent_kafka")

from balog.topics.kafka.partition import AssignedPartition, FetchedMessage
from balog.topics.kafka.progress import decode, encode


def fetch(partition: AssignedPartition, offset: int) -> FetchedMessage | None:
    held = FetchedMessage(partition, offset, f"m{offset}", b"body", None, 0.0)
    return held if partition.add(held) else None


class Crashing(RuleBasedStateMachine):
    """One group and one partition of a log with gaps; what is committed is all that a crash leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[int] = []
        self.end = 0
        self.settled: set[int] = set()
        self.attempts: dict[int, int] = {}
        self.token = 0
        self.committed: int | None = None
        self.text = ""
        self.partition = AssignedPartition("t", 0)

    @rule(gap=st.integers(0, 3))
    def publish(self, gap: int) -> None:
        self.end += gap
        self.log.append(self.end)
        self.end += 1

    @rule(count=st.integers(1, 5))
    def read(self, count: int) -> None:
        position = self.partition.next_offset or 0
        for offset in [offset for offset in self.log if offset >= position][:count]:
            held = fetch(self.partition, offset)
            assert (held is None) == (offset in self.settled)
            if held is not None:
                assert held.attempts == self.attempts.get(offset, 0)

    @rule()
    def reach_the_end(self) -> None:
        if not any(offset >= (self.partition.next_offset or 0) for offset in self.log):
            self.partition.reach(self.end)

    @precondition(lambda self: self.partition.held)
    @rule(data=st.data())
    def hand_out(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(list(self.partition.held.values())))
        if held.token:
            return
        if self.partition.fresh and held in self.partition.fresh:
            held = self.partition.pop_fresh()
        self.token += 1
        held.deliver(self.token, 1.0)
        self.attempts[held.offset] = self.attempts.get(held.offset, 0) + 1
        self.commit()

    @precondition(lambda self: any(held.token for held in self.partition.held.values()))
    @rule(data=st.data(), ending=st.sampled_from(["settle", "release", "untried"]))
    def end(self, data: st.DataObject, ending: str) -> None:
        held = data.draw(st.sampled_from([held for held in self.partition.held.values() if held.token]))
        if ending == "settle":
            self.partition.settle(held)
            self.settled.add(held.offset)
        else:
            held.take_back(1.0, attempted=ending == "release")
            self.attempts[held.offset] -= ending == "untried"
        self.commit()

    @rule()
    def crash(self) -> None:
        progress = None if self.committed is None else decode(self.committed, self.text)
        self.partition = AssignedPartition("t", 0, self.committed, progress)

    def commit(self) -> None:
        progress = self.partition.progress()
        assert progress is not None
        self.committed, (self.text, told) = progress.commit, encode(progress)
        assert told == progress.handed

    @invariant()
    def nothing_unsettled_is_below_the_commit(self) -> None:
        commit = self.partition.commit
        assert commit is None or all(offset in self.settled for offset in self.log if offset < commit)


Crashing.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestCrashing = Crashing.TestCase


class TestLogs:
    def test_a_log_that_was_made_anew_is_read_from_its_beginning(self) -> None:
        partition = AssignedPartition("t", 0, 500)
        assert fetch(partition, 0) is not None
        assert partition.commit == 0

    def test_what_retention_deleted_below_the_commit_is_passed_over(self) -> None:
        old = AssignedPartition("t", 0, 0)
        for offset in range(3):
            fetch(old, offset)
            old.pop_fresh().deliver(1, 1.0)
        progress = old.progress()
        assert progress is not None
        partition = AssignedPartition("t", 0, 0, progress)
        fetch(partition, 100)
        assert partition.commit == 100
        assert partition.held[100].attempts == 0

    def test_a_message_holds_the_commit_back_until_what_settles_it_is_written(self) -> None:
        partition = AssignedPartition("t", 0, 0)
        first, second = fetch(partition, 0), fetch(partition, 1)
        assert first is not None
        assert second is not None
        partition.pop_fresh().deliver(1, 1.0)
        first.claim()
        progress = partition.progress()
        assert progress is not None
        assert (progress.commit, progress.unsettled) == (0, {0: 1})
        first.pass_commits()
        assert partition.commit == 1
