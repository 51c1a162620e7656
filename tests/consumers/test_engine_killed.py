"""kill -9 at each step between a receive and an ack."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from balog.event import Event, encode
from balog.topics import Message, open_topics

PROGRAM = """
import logging, os, signal, sys
from balog.consumers import Consumer, ConsumerHub, Engine, Hook
from balog.consumers.ledgers.factory import default_ledger
from balog.topics import open_topics

logging.disable()
step = sys.argv[1]
file = os.open("calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def die_at(here):
    if here == step:
        os.kill(os.getpid(), signal.SIGKILL)

def fine(settings, event):
    die_at("in the handler")
    os.write(file, b"fine\\n")

def fails_once(settings, event):
    tried = os.path.exists("tried")
    open("tried", "w").close()
    os.write(file, b"fails once\\n" if tried else b"failed\\n")
    if not tried:
        raise ValueError

class Killer(Hook):
    def after_receive(self, topic, received):
        if received:
            die_at("received")
    def before_process(self, work):
        die_at("before the call")
    def after_process(self, work, error, seconds):
        if error is not None:
            die_at("after the calls")
    def before_ack(self, topic, received):
        die_at("before the ack")
    def after_ack(self, topic, received):
        die_at("after the ack")

class Ledger:
    def __init__(self, ledger):
        self.ledger = ledger
    def known(self, group, events):
        return self.ledger.known(group, events)
    def record(self, group, entries, *, durable=True):
        die_at("before the ledger")
        self.ledger.record(group, entries, durable=durable)
        die_at("after the ledger")
    def close(self):
        self.ledger.close()

hub = ConsumerHub()
hub.add(Consumer(fine, "orders", name="a"))
hub.add(Consumer(fails_once, "orders", name="b", backoff=0.01))
with open_topics("local:topics") as home:
    ledger = Ledger(default_ledger("local:topics", "balog"))
    Engine(hub, home, lease=0.3, ledger=ledger, hooks=[Killer()]).run(until_empty=True)
"""


@pytest.mark.parametrize(
    ("step", "fine", "fails_once"),
    [
        ("received", 1, 1),
        ("before the call", 1, 1),
        ("in the handler", 1, 1),
        # What returned and is on nobody's record happens again: no later than this.
        ("after the calls", 2, 1),
        ("before the ledger", 2, 1),
        ("after the ledger", 1, 1),
        ("before the ack", 1, 2),
        ("after the ack", 1, 1),
    ],
)
def test_killed_at_a_step_nothing_is_lost_and_what_is_on_record_is_not_repeated(
    tmp_path: Path, step: str, fine: int, fails_once: int
) -> None:
    event = Event.new("tests", {})
    with open_topics(f"local:{tmp_path}/topics") as home:
        home.topic("orders").publish([Message(event.header.id, encode(event))])

    def run(step: str) -> int:
        return subprocess.run([sys.executable, "-c", PROGRAM, step], cwd=tmp_path, timeout=60).returncode

    assert run(step) == -signal.SIGKILL
    assert run("none") == 0
    calls = Counter((tmp_path / "calls").read_text().splitlines())
    assert (calls["fine"], calls["fails once"]) == (fine, fails_once)
    with open_topics(f"local:{tmp_path}/topics") as home:
        state = home.topic("orders").group_state("balog")
        assert (state.pending, state.dead) == (0, 0)
