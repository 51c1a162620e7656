"""Poison among good events: the good ones all succeed, once, and what can't be handled ends among the dead letters."""

import logging
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from balog.consumers import Consumer, ConsumerHub, Engine
from balog.consumers.outcomes import PartialFailure, Reject
from balog.event import Event, encode
from balog.topics import Message
from balog.topics.local import LocalTopics

GOOD = 500
BAD = 30
"""Of each kind."""


class Mixed:
    """Good events and poison of several kinds, published in a shuffled order."""

    def __init__(self, home: LocalTopics) -> None:
        good = [Event.new("shop", {"cls_type": "order", "kind": "good"}) for _ in range(GOOD)]
        self.good = {event.header.id for event in good}
        self.bad: dict[str, set[str]] = {}
        published = [Message(event.header.id, encode(event)) for event in good]
        for kind in ("raises", "rejected"):
            events = [Event.new("shop", {"cls_type": "order", "kind": kind}) for _ in range(BAD)]
            self.bad[kind] = {event.header.id for event in events}
            published += [Message(event.header.id, encode(event)) for event in events]
        foreign = [Message(f"foreign-{n}", body) for n, body in enumerate([b"", b"\xff", b"[1]", b'{"a":', b"\0" * 50])]
        alien = encode(Event.new("shop", {})).replace(b'"schema":"0', b'"schema":"9')
        foreign += [Message(f"alien-{n}", alien) for n in range(BAD - len(foreign))]
        self.bad["no event"] = {message.id for message in foreign}
        published += foreign
        random.Random(5).shuffle(published)
        home.topic("orders").publish(published)

    def check(self, home: LocalTopics, succeeded: Counter[str], rejected_after: Set[int] = frozenset({1})) -> None:
        assert set(succeeded) == self.good
        assert set(succeeded.values()) == {1}
        letters = {letter.id: letter for letter in home.topic("orders").dead_letters("balog", 10 * BAD)}
        assert set(letters) == set().union(*self.bad.values())
        assert {letters[id].reason for id in self.bad["raises"]} == {"orders: ValueError: no price"}
        assert {letters[id].reason for id in self.bad["rejected"]} == {
            "orders: balog.consumers.outcomes.Reject: closed"
        }
        assert all(letters[id].reason.startswith("not an event: ") for id in self.bad["no event"])
        assert {letters[id].attempts for id in self.bad["raises"]} == {3}
        assert {letters[id].attempts for id in self.bad["no event"]} == {1}
        assert {letters[id].attempts for id in self.bad["rejected"]} <= rejected_after
        assert home.topic("orders").group_state("balog").pending == 0


def judge(event: Event) -> Exception | None:
    """Give what a handler raises at an event."""
    return {"good": None, "raises": ValueError("no price"), "rejected": Reject("closed")}[event.payload["kind"]]


def run(home: LocalTopics, handle: Any, **options: Any) -> Any:
    hub = ConsumerHub()
    batch = options.pop("batch", None)
    hub.add(Consumer(handle, "orders", "order", name="orders", batch=batch))
    return Engine(hub, home, max_attempts=3, first_delay=0.01, **options).run(until_empty=True)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Hundreds of failures are told; a test that fails would drown in them."""
    logging.getLogger("balog.consumers").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("balog.consumers").setLevel(logging.NOTSET)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_each_good_event_succeeds_once_among_poison_of_all_kinds(home: LocalTopics, concurrency: int) -> None:
    mixed = Mixed(home)
    succeeded: Counter[str] = Counter()

    def handle(settings: object, event: Event) -> None:
        if (error := judge(event)) is not None:
            raise error
        succeeded[event.header.id] += 1

    counts = run(home, handle, concurrency=concurrency)
    mixed.check(home, succeeded)
    assert (counts.succeeded, counts.dead) == (GOOD, 3 * BAD)


def test_in_batches_that_say_what_failed_the_good_ones_are_handled_once(home: LocalTopics) -> None:
    mixed = Mixed(home)
    succeeded: Counter[str] = Counter()

    def handle(settings: object, events: list[Event]) -> None:
        failed: dict[str, str | BaseException] = {}
        for event in events:
            if (error := judge(event)) is not None:
                failed[event.header.id] = error
            else:
                succeeded[event.header.id] += 1
        if failed:
            raise PartialFailure(failed)

    run(home, handle, batch=(50, 0.05))
    mixed.check(home, succeeded)


def test_in_batches_that_fail_as_a_whole_the_good_ones_still_succeed_once(home: LocalTopics) -> None:
    mixed = Mixed(home)
    succeeded: Counter[str] = Counter()

    def handle(settings: object, events: list[Event]) -> None:
        errors = [error for event in events if (error := judge(event)) is not None and not isinstance(error, Reject)]
        if errors:
            raise errors[0]
        rejected = {e.header.id: error for e in events if (error := judge(e)) is not None}
        succeeded.update(event.header.id for event in events if event.header.id not in rejected)
        if rejected:
            raise PartialFailure(rejected)

    run(home, handle, batch=(50, 0.05))
    mixed.check(home, succeeded, rejected_after={1, 2})  # the second alone, when somebody else spoilt the first


WILD = """
import os, sys, time
from balog.consumers import consumer_config

file = os.open("handled", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@consumer_config(topic="orders", timeout=0.5, retries=1)
def handle(settings, event):
    kind = event.payload["kind"]
    if kind == "exits":
        sys.exit(3)
    if kind == "ends the process":
        os._exit(9)
    if kind == "hangs":
        time.sleep(3600)
    if kind == "forks":
        if os.fork() == 0:
            return  # both go on; the child must not take the run with it
        os.wait()
    os.write(file, (event.header.id + "\\n").encode())
"""


def test_handlers_that_exit_hang_fork_or_end_the_process_cost_no_good_event(tmp_path: Path) -> None:
    """Started again by whoever watches it, the command gets through to the end, whatever handlers do to it."""
    (tmp_path / "team.py").write_text(WILD)
    kinds = {kind: Event.new("shop", {"kind": kind}) for kind in ("exits", "ends the process", "hangs", "forks")}
    good = [Event.new("shop", {"kind": "good"}) for _ in range(200)]
    events = [*good[:50], *kinds.values(), *good[50:]]
    with LocalTopics(tmp_path / "topics") as home:
        home.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])
    command = [*(sys.executable, "-m", "balog", "consume", "team", "--topics", "local:topics"), "--until-empty"]
    options = ["--lease", "1", "--concurrency", "2"]
    codes = []
    while len(codes) < 12 and (not codes or codes[-1] == 9):
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        codes.append(done.returncode)
    assert codes[-1] == 1, done.stderr  # to its end, with dead letters
    assert codes[:-1]
    handled = Counter((tmp_path / "handled").read_text().split())
    ids = {kind: event.header.id for kind, event in kinds.items()}
    assert set(handled) == {event.header.id for event in good} | {ids["forks"]}
    # Each end of the process may repeat what was handled and not acked yet.
    assert sum(count - 1 for count in handled.values()) <= 200 * (len(codes) - 1)
    with LocalTopics(tmp_path / "topics") as home:
        letters = {letter.id: letter.reason for letter in home.topic("orders").dead_letters("balog")}
        assert home.topic("orders").group_state("balog").pending == 0
    assert set(letters) == {ids["exits"], ids["ends the process"], ids["hangs"]}
    assert "SystemExit: 3" in letters[ids["exits"]]
    assert re.search("TimeoutError|calls came to no end", letters[ids["hangs"]])  # calls, beside the one that ends it
    assert "calls came to no end" in letters[ids["ends the process"]]
