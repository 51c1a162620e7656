"""Time an engine on local topics end to end, its router, and what poison costs the good events beside it.

    python -m benchmarks.acting

End to end means: published durably in batches of 1000, received, routed, handled by a handler that does nothing, acked,
all in one process and after one another. The peers do the same with the same bytes in files of the same disk.
"""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from balog.consumers import Consumer, ConsumerHub, Engine
from balog.consumers.outcomes import Reject
from balog.consumers.routing import ConsumerRouter
from balog.event import Event, decode, encode
from balog.topics import Message
from balog.topics.local import LocalTopics
from benchmarks.acting_work import (
    PUBLISHED_AT_ONCE,
    TOPIC,
    Stopwatch,
    Took,
    Way,
    alternate,
    check,
    hub_of,
    messages,
    publish,
    rates,
    told_to_nobody,
)
from benchmarks.history import show_ratio
from benchmarks.measure import machine

RECEIVED_AT_ONCE = 100


def nothing(settings: object, event: object) -> None:
    """Handle an event, or a list of them."""


class Files:
    """A folder; each way gets a fresh one below it, which is removed with all of them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()

    def fresh(self) -> Path:
        folder = self._root / str(next(self._numbers))
        folder.mkdir()
        return folder


# -- end to end -------------------------------------------------------------------------------------------------------


def with_engine(files: Files, some: list[Message], **options: Any) -> Way:
    """Publish and have an engine handle it; ``batch`` in ``options`` makes the handler one of batches."""
    batch = options.pop("batch", None)

    def way() -> Took:
        with LocalTopics(files.fresh()) as home:
            hub = ConsumerHub()
            hub.add(Consumer(nothing, TOPIC, "metric", ">=0.1", name="bench", batch=batch))
            watch = Stopwatch()
            publish(home.topic(TOPIC), some)
            counts = Engine(hub, home, **options).run(until_empty=True)
            took = watch.read()
        check(counts, len(some))
        return took

    return way


def with_sqlite(files: Files, some: list[Message]) -> Way:
    """The same by hand: a table as a queue, leases by time, no attempts, no dead letters, one group."""

    def way() -> Took:
        connection = sqlite3.connect(files.fresh() / "queue.sqlite", isolation_level=None)
        connection.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE queue (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body BLOB, leased REAL DEFAULT 0)"
        )
        watch = Stopwatch()
        for first in range(0, len(some), PUBLISHED_AT_ONCE):
            connection.execute("BEGIN IMMEDIATE")
            rows = [(one.id, one.body) for one in some[first : first + PUBLISHED_AT_ONCE]]
            connection.executemany("INSERT INTO queue (id, body) VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        handled = 0
        while True:
            connection.execute("BEGIN IMMEDIATE")
            now = time.time()
            found = connection.execute(
                "SELECT seq, body FROM queue WHERE leased < ? ORDER BY seq LIMIT ?", (now, RECEIVED_AT_ONCE)
            ).fetchall()
            connection.executemany("UPDATE queue SET leased = ? WHERE seq = ?", [(now + 30, seq) for seq, _ in found])
            connection.execute("COMMIT")
            if not found:
                break
            for _, body in found:
                nothing(None, json.loads(body))
                handled += 1
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM queue WHERE seq = ?", [(seq,) for seq, _ in found])
            connection.execute("COMMIT")
        took = watch.read()
        connection.close()
        assert handled == len(some)
        return took

    return way


def with_huey(files: Files, some: list[Message]) -> Way:
    """huey on SQLite with a transaction that is synced for each task, and one worker thread: it takes no batches."""
    from huey import SqliteHuey

    def way() -> Took:
        huey = SqliteHuey("bench", filename=str(files.fresh() / "huey.sqlite"), fsync=True, results=False)
        done = threading.Event()
        handled = itertools.count(1)

        @huey.task()
        def handle(body: str) -> None:
            nothing(None, json.loads(body))
            if next(handled) == len(some):
                done.set()

        watch = Stopwatch()
        for one in some:
            handle(one.body.decode())
        consumer = huey.create_consumer(workers=1, periodic=False, initial_delay=0.01, max_delay=0.01)
        consumer.start()
        done.wait()
        took = watch.read()
        consumer.stop(graceful=True)
        return took

    return way


def end_to_end(files: Files, number: int, rounds: int) -> None:
    some = messages(number)
    body = len(some[0].body)
    ways = {
        "balog": with_engine(files, some),
        "balog, handler of batches": with_engine(files, some, batch=RECEIVED_AT_ONCE),
        "balog, 4 threads": with_engine(files, some, concurrency=4),
        "SQLite by hand": with_sqlite(files, some),
    }
    found = alternate(ways, rounds)
    click.echo(f"\nend to end on local topics: {number:,} events of {body} bytes, medians of {rounds} rounds\n")
    lines = list(rates(found, number, "SQLite by hand"))
    try:
        few = some[: max(1, number // 20)]
        huey = alternate({"huey": with_huey(files, few)}, 1)["huey"]
        scale = number / len(few)
        found["huey, a sync a task"] = Took(huey.wall * scale, huey.cpu * scale)
        lines = list(rates(found, number, "SQLite by hand"))
    except ImportError:
        lines.append("huey is not installed")
    click.echo("\n".join(lines))
    balog = found["balog"]
    click.echo(f"\nend to end: {number / balog.wall:,.0f} events/s (target ≥ 20,000)")
    show_ratio("the speed of SQLite by hand, end to end", found["SQLite by hand"].rounds, balog.rounds, "≥ 0.6")


# -- routing ----------------------------------------------------------------------------------------------------------

ALL_ASKED = "all with a where and nothing else"
MIXES: dict[str, Callable[[int], dict[str, Any]]] = {
    "by cls_type": lambda n: {"cls_type": f"type_{n}"},
    "by cls_type and version": lambda n: {
        "cls_type": f"type_{n // 4}",
        "version": (">=0.1", "<0.1", ">=1", "<1")[n % 4],
    },
    "by channel": lambda n: {"channel": f"tap_{n}.*"},
    "by level": lambda n: {"level": ("INFO", "WARNING", "ERROR", "CRITICAL")[n % 4]},
    "one of ten with a where": lambda n: {
        "cls_type": f"type_{n % 50}",
        "where": "payload.value > 10" if n % 10 == 0 else None,
    },
    "all with a where, ten of a type": lambda n: {"cls_type": f"type_{n // 10}", "where": f"payload.value > {n}"},
    ALL_ASKED: lambda n: {"where": f"payload.value > {n}"},
    "some of everything": lambda n: {
        "cls_type": f"type_{n}" if n % 2 else None,
        "channel": None if n % 3 else f"tap_{n}.*",
        "level": "WARNING" if n % 4 == 0 else None,
        "payload_version": ">=1" if n % 5 == 0 else None,
        "where": "payload.value > 50" if n % 10 == 1 else None,
    },
}
CONSUMERS = 100


def routing(number: int, rounds: int) -> None:
    click.echo(f"\nwho wants an event, of {CONSUMERS} consumers: medians of {rounds} rounds of {number:,} events\n")
    click.echo(f"{'':<44} {'µs/event':>9} {'asking each, µs':>16} {'wanted by':>10}")
    worst = 0.0
    for name, make in MIXES.items():
        consumers = [Consumer(nothing, TOPIC, name=f"c{n}", **make(n)) for n in range(CONSUMERS)]
        some = [
            decode(
                encode(
                    Event.new(
                        f"tap_{n % 20}.sync",
                        {"cls_type": f"type_{n % CONSUMERS}", "version": f"{n % 3}.0.0", "value": n % 97},
                        level=("INFO", "WARNING", "ERROR")[n % 3],
                    )
                )
            )
            for n in range(number)
        ]
        router = ConsumerRouter(consumers)
        wanted = sum(len(router.wanting(event)) for event in some) / number
        ways = {"router": _routed(router, some), "each": _asked(consumers, some[: max(1, number // 20)])}
        found = alternate(ways, rounds)
        spent = found["router"].cpu / number * 1e6
        alone = found["each"].cpu / max(1, number // 20) * 1e6
        if name != ALL_ASKED:
            worst = max(worst, spent)
        click.echo(f"{name:<44} {spent:>9.2f} {alone:>16.1f} {wanted:>10.1f}")
    click.echo(
        f"\nrouting: at most {worst:.1f} µs an event (target ≤ 10) where a condition that can be remembered narrows"
    )


def _routed(router: ConsumerRouter, some: list[Event]) -> Way:
    def way() -> Took:
        watch = Stopwatch()
        for event in some:
            router.wanting(event)
        return watch.read()

    return way


def _asked(consumers: list[Consumer], some: list[Event]) -> Way:
    def way() -> Took:
        watch = Stopwatch()
        for event in some:
            [one for one in consumers if one.match_event(event)]
        return watch.read()

    return way


# -- poison -----------------------------------------------------------------------------------------------------------


class Handler:
    """Raises at a poison event what it asks for; counts the good ones and notes when the last of them came."""

    def __init__(self, good: int, watch: Stopwatch) -> None:
        self.seen: Counter[str] = Counter()
        self.took: Took | None = None
        self._good = good
        self._watch = watch

    def __call__(self, settings: object, event: Event) -> None:
        poison = event.payload.get("poison")
        if poison is not None:
            raise (Reject if poison == "reject" else ValueError)(f"no price in {event.header.id}")
        self.seen[event.header.id] += 1
        if len(self.seen) == self._good:
            self.took = self._watch.read()


def poisoned(good: list[Message], bad: Iterable[bytes]) -> list[Message]:
    """Mix good messages and bad bodies, each time in the same order."""
    mixed = good + [Message(f"bad-{number}", body) for number, body in enumerate(bad)]
    random.Random(20).shuffle(mixed)
    return mixed


def with_poison(files: Files, good: int, mixed: list[Message], first_delay: float, whole: list[float]) -> Way:
    """The clock runs from the engine's start to the good events' last success; ``whole`` gets the whole run's time."""

    def way() -> Took:
        with LocalTopics(files.fresh()) as home, told_to_nobody():
            publish(home.topic(TOPIC), mixed)
            watch = Stopwatch()
            handler = Handler(good, watch)
            counts = Engine(hub_of(handler), home, first_delay=first_delay).run(until_empty=True)
            whole.append(watch.read().wall)
        assert (counts.succeeded, counts.dead) == (good, len(mixed) - good), counts
        assert set(handler.seen.values()) == {1}
        assert handler.took is not None
        return handler.took

    return way


def poison(files: Files, number: int, rounds: int, first_delay: float) -> None:
    good = messages(number)
    bad = number // 10

    def raising(what: str) -> list[bytes]:
        payload = {"cls_type": "metric", "version": "1.0.0", "poison": what}
        return [encode(Event.new("tap_shop", payload)) for _ in range(bad)]

    broken = [b'{"schema": "balog-1.0.0", "header": {"id": %d, ' % n for n in range(bad)]
    kinds = {
        "good alone": [],
        "1 of 11 can't be decoded": broken,
        "1 of 11 raises Reject": raising("reject"),
        "1 of 11 raises, 5 attempts": raising("raise"),
    }
    whole: dict[str, list[float]] = {name: [] for name in kinds}
    ways = {
        name: with_poison(files, number, poisoned(good, kind), first_delay, whole[name]) for name, kind in kinds.items()
    }
    delays = ", ".join(f"{first_delay * 2**n:g}" for n in range(4))
    found = alternate(ways, rounds)
    click.echo(
        f"\npoison: {number:,} good events and {bad:,} bad ones on local topics, from the engine's start to the last\n"
        f"good one's success, medians of {rounds} rounds; and the whole run's time, with retries after {delays} s\n"
    )
    header, *lines = rates(found, number, "good alone")
    click.echo(f"{header} {'all, s':>8}")
    for line, name in zip(lines, ways):
        click.echo(f"{line} {statistics.median(whole[name]):>8.1f}")
    click.echo()
    for name in list(ways)[1:]:
        target = "≥ 0.9"
        show_ratio(f"the good events' rate alone, {name}", found["good alone"].rounds, found[name].rounds, target)


@click.command()
@click.option("--events", default=100_000, help="Events end to end, and good ones beside the poison.")
@click.option("--rounds", default=5, help="Rounds; of the poison's at most 3.")
@click.option("--only", type=click.Choice(["end-to-end", "routing", "poison"]), help="One part.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where files are made; the system's place for such.")
@click.option("--quick", is_flag=True, help="A little of the work.")
def main(events: int, rounds: int, only: str | None, folder: Path | None, quick: bool) -> None:
    """Time the engine on local topics, the router, and poison."""
    if quick:
        events, rounds = 500, 1
    click.echo(machine("balog", "msgspec"))
    with tempfile.TemporaryDirectory(dir=folder) as root:
        files = Files(Path(root))
        if only in (None, "end-to-end"):
            end_to_end(files, events, rounds)
        if only in (None, "routing"):
            routing(max(100, events // 5), rounds)
        if only in (None, "poison"):
            poison(files, events, min(rounds, 3), 0.01 if quick else 1.0)


if __name__ == "__main__":
    main()
