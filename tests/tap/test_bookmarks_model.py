"""Sources that change between runs, runs that end at any point: nothing is lost, no state says too much.

A model against whole syncs: a stream alone, and accounts with orders with lines, of which a change also changes the
time of those above it.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import structlog
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from balog.tap import Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog, CatalogEntry
from balog.tap.syncing import Interrupted, Stop, Sync

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "at": {"type": ["null", "integer"]}, "version": {"type": "integer"}},
}
STREAMS = ("contacts", "accounts", "orders", "lines")
Key = tuple[str, int]
quiet: Any = structlog.wrap_logger(structlog.ReturnLogger(), processors=[lambda *_: ""])


def is_odd(record: dict[str, Any], count: int) -> bool:
    return bool(record["id"] % 2)


class Killed(BaseException):
    """The process is no more."""


class Lines:
    """Takes messages in the place of stdout, until the process is killed; has each STATE looked at."""

    def __init__(self, kill_after: int | None, look: Callable[[dict[str, Any]], None]) -> None:
        self.kill_after = kill_after
        self.look = look
        self.written: list[tuple[str, Any]] = []

    def put(self, kind: str, value: Any) -> None:
        if self.kill_after is not None and len(self.written) >= self.kill_after:
            raise Killed
        self.written.append((kind, value))

    def schema(self, *_: Any) -> None:
        self.put("SCHEMA", None)

    def records(self, stream: str, *_: Any, **__: Any) -> Callable[[dict[str, Any]], bool]:
        def write(record: dict[str, Any]) -> bool:
            self.put("RECORD", (stream, record["id"], record["version"]))
            return True

        return write

    def state(self, value: dict[str, Any]) -> None:
        self.put("STATE", value)
        self.look(value)

    def flush(self) -> None:
        pass


class Runs(RuleBasedStateMachine):
    """Rows have the time of their last change, which is null for some, and a version; times only ever grow."""

    @initialize(
        strategy=st.sampled_from(["end_of_stream", 1, 2, 3, "own"]), is_sorted=st.booleans(), has_nulls=st.booleans()
    )
    def begin(self, strategy: Any, is_sorted: bool, has_nulls: bool) -> None:
        self.now = 1
        self.rows: dict[Key, dict[str, Any]] = {}
        self.has_nulls = has_nulls
        self.is_sorted = is_sorted
        self.delivered: set[tuple[str, int, int]] = set()
        self.value: dict[str, Any] = {}
        self.highest: dict[str, int] = {}
        self.selected = set(STREAMS)
        self.has_left_out = False
        self.items = 0
        self.trouble: Callable[[], None] = lambda: None
        self.trouble_at: int | None = None
        self.tap = self.declare("end_of_stream" if not is_sorted else strategy)
        for number in range(4):
            self.now += 1
            self.change("contacts", number)
        for number in random.Random(0).sample(range(12), 12):
            self.now += number % 2
            self.change("lines", number)

    def declare(self, strategy: Any) -> Tap:
        tap = Tap("tap-model")
        if isinstance(strategy, int):
            strategy = tap.every_n(strategy)
        elif strategy == "own":
            strategy = is_odd
        said: dict[str, Any] = {
            "key_properties": ["id"],
            "replication_key": "at",
            "schema": SCHEMA,
            "is_sorted": self.is_sorted,
        }

        @tap.stream("contacts", bookmark_strategy=strategy, **said)
        def contacts(context: Any) -> Iterator[dict[str, Any]]:
            return self.give("contacts", context.bookmark)

        @tap.stream("accounts", bookmark_strategy=strategy, **said)
        def accounts(context: Any) -> Iterator[dict[str, Any]]:
            return self.give("accounts", context.bookmark)

        @accounts.substream("orders", **said)
        def orders(context: Any, parent: dict[str, Any]) -> Iterator[dict[str, Any]]:
            return self.give("orders", context.bookmark, parent["id"])

        @orders.substream("lines", **said)
        def lines(context: Any, parent: dict[str, Any]) -> Iterator[dict[str, Any]]:
            return self.give("lines", context.bookmark, parent["id"])

        return tap

    def give(self, stream: str, since: int | None, parent: int | None = None) -> Iterator[dict[str, Any]]:
        """The source: rows from a time on, those without time always; sorted or not."""
        found = [
            row
            for (name, number), row in self.rows.items()
            if name == stream
            and (parent is None or number // 2 == parent)
            and (since is None or row["at"] is None or row["at"] >= since)
        ]
        random.Random(self.items).shuffle(found)
        if self.is_sorted:
            found.sort(key=lambda row: row["at"] or 0)
        for row in found:
            self.items += 1
            if self.items == self.trouble_at:
                self.trouble()
            yield dict(row)

    def change(self, stream: str, number: int) -> None:
        is_null = self.has_nulls and stream == "contacts" and number == 0
        while True:
            before = self.rows.get((stream, number), {"version": 0})
            self.rows[stream, number] = {
                "id": number,
                "at": None if is_null else self.now,
                "version": before["version"] + 1,
            }
            if stream not in ("orders", "lines"):
                return
            stream, number = STREAMS[STREAMS.index(stream) - 1], number // 2

    @rule(stream=st.sampled_from(STREAMS), number=st.integers(0, 11), later=st.integers(0, 2))
    def something_changes(self, stream: str, number: int, later: int) -> None:
        """Also twice in the same moment, of which a run may have seen the first."""
        self.now += later
        top = {"contacts": 8, "accounts": 3, "orders": 6, "lines": 12}[stream]
        self.change(stream, number % top)

    @rule(names=st.sets(st.sampled_from(STREAMS), min_size=1))
    def another_selection(self, names: set[str]) -> None:
        """What is left out of runs comes in one that has it again."""
        self.selected = names
        self.has_left_out |= names != set(STREAMS)

    # -- runs -----------------------------------------------------------------------------------------------------

    def run(self, kill_after: int | None = None) -> int | None:
        written: list[tuple[str, Any]] = []

        def look(value: dict[str, Any]) -> None:
            rows = {said for kind, said in written if kind == "RECORD"}
            self.check(value, self.delivered | rows)

        lines = Lines(kill_after, look)
        written = lines.written
        entries = {
            name: CatalogEntry(
                tap_stream_id=name,
                stream=name,
                schema=SCHEMA,
                key_properties=["id"],
                metadata={(): {"selected": name in self.selected}},
            )
            for name in STREAMS
        }
        self.items = 0
        self.stop = Stop()
        code, sync = None, Sync(self.tap, {}, Catalog(entries), State(self.value), lines, stop=self.stop)  # type: ignore[arg-type]
        sync.log = quiet
        try:
            with redirect_stderr(StringIO()):
                code = sync.run()
        except Killed:
            pass
        ends = [index for index, (kind, _) in enumerate(written) if kind == "STATE"]
        for kind, said in written[: ends[-1]] if ends else ():
            if kind == "RECORD":
                self.delivered.add(said)
        if ends:
            self.value = written[ends[-1]][1]
        return code

    def check(self, value: dict[str, Any], written: set[tuple[str, int, int]]) -> None:
        """No bookmark moves back; and all before one, with what is below it if it was selected, was written."""
        for stream, entry in value["bookmarks"].items():
            mark = entry.get("at")
            if mark is None:
                continue
            assert mark >= self.highest.get(stream, mark), f"{stream}: back from {self.highest[stream]} to {mark}"
            self.highest[stream] = mark
            if stream in ("contacts", "accounts"):
                for number in [
                    n
                    for (name, n), row in self.rows.items()
                    if name == stream and row["at"] is not None and row["at"] < mark
                ]:
                    for key in self.below(stream, number):
                        assert (*key, self.rows[key]["version"]) in written, f"{key} is lost at {stream} {mark}"

    def below(self, stream: str, number: int) -> list[Key]:
        found = [(stream, number)]
        if not self.has_left_out and stream in ("accounts", "orders"):
            under = STREAMS[STREAMS.index(stream) + 1]
            for one in (2 * number, 2 * number + 1):
                if (under, one) in self.rows:
                    found += self.below(under, one)
        return found

    @rule()
    def a_whole_run(self) -> None:
        self.selected = set(STREAMS)
        self.trouble_at = None
        assert self.run() == 0
        for key, row in self.rows.items():
            assert (*key, row["version"]) in self.delivered, f"{key} is lost"

    @rule(at=st.integers(1, 30), is_waiting=st.booleans())
    def a_run_that_is_interrupted(self, at: int, is_waiting: bool) -> None:
        def trouble() -> None:
            self.stop.number = 15
            if is_waiting:
                raise Interrupted(15)

        self.trouble, self.trouble_at = trouble, at
        assert self.run() in (143, 0)

    @rule(at=st.integers(1, 30))
    def a_run_in_which_the_source_fails(self, at: int) -> None:
        def trouble() -> None:
            raise ConnectionError("the source has gone")

        self.trouble, self.trouble_at = trouble, at
        assert self.run() in (1, 0)

    @rule(lines=st.integers(0, 50))
    def a_run_that_is_killed(self, lines: int) -> None:
        self.trouble_at = None
        self.run(kill_after=lines)

    def teardown(self) -> None:
        if hasattr(self, "tap"):
            self.a_whole_run()


Runs.TestCase.settings = settings(max_examples=40, stateful_step_count=10, deadline=None)
TestRuns = Runs.TestCase
