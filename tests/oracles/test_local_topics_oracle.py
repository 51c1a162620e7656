"""Local topics beside a recount in plain Python, while the machine's time is set forward and back at random."""

import random
from pathlib import Path

import pytest

from balog.topics import Message
from balog.topics.local import LocalTopics
from tests.oracles.effort import seeds
from tests.topics.retention import prune

GROUPS = ("a", "b")
STEPS = 400
JUMPS = [-40 * 86400.0, -3600.0, -1.0, 3600.0, 15 * 86400.0]


@pytest.mark.parametrize("seed", seeds(6))
def test_every_message_reaches_every_group_once_it_is_due(tmp_path: Path, seed: int) -> None:
    """The recount knows for each group and id only: not yet acked, and until which uptime it is held."""
    chance = random.Random(seed)
    wall, up = 1_800_000_000.0, 100.0
    published: list[str] = []
    acked: dict[str, set[str]] = {group: set() for group in GROUPS}
    dead: dict[str, set[str]] = {group: set() for group in GROUPS}
    held: dict[str, dict[str, float]] = {group: {} for group in GROUPS}
    with LocalTopics(tmp_path, clock=lambda: wall, uptime=lambda: up) as home:
        topic = home.topic("t")
        topic.publish([Message("first", b"{}")])
        published.append("first")
        for group in GROUPS:  # a group that never received is not known to the topic
            topic.release(group, topic.receive(group))
        for step in range(STEPS):
            group = chance.choice(GROUPS)
            kind = chance.choice(["publish", "receive", "receive", "receive", "jump", "pass", "prune"])
            if kind == "publish":
                names = [f"{step}-{number}" for number in range(chance.randint(1, 5))]
                assert topic.publish([Message(name, b"{}") for name in names]) == len(names)
                published += names
            elif kind == "jump":
                wall += chance.choice(JUMPS)
            elif kind == "pass":
                seconds = chance.uniform(0.5, 60.0)
                wall, up = wall + seconds, up + seconds
            elif kind == "prune":
                prune(topic)
            else:
                lease = chance.choice([5.0, 50.0])
                received = topic.receive(group, chance.randint(1, 8), lease=lease)
                ready = {
                    name
                    for name in published
                    if name not in acked[group] | dead[group] and held[group].get(name, 0.0) <= up
                }
                assert {one.id for one in received} <= ready
                assert received or not ready
                for one in received:
                    fate = chance.choice(["ack", "ack", "release", "delay", "die", "hold"])
                    if fate == "ack":
                        assert topic.ack(group, [one]) == 1
                        acked[group].add(one.id)
                    elif fate == "die":
                        assert topic.dead_letter(group, [one], "why") == 1
                        dead[group].add(one.id)
                    elif fate == "release":
                        assert topic.release(group, [one]) == 1
                        held[group][one.id] = up
                    elif fate == "delay":
                        assert topic.release(group, [one], 30.0) == 1
                        held[group][one.id] = up + 30.0
                    else:
                        held[group][one.id] = up + lease
        up += 1000.0
        for group in GROUPS:
            while received := topic.receive(group):
                topic.ack(group, received)
                acked[group] |= {one.id for one in received}
            assert {letter.id for letter in topic.dead_letters(group, 10_000)} == dead[group]
            assert acked[group] | dead[group] == set(published)
