"""What is noted of a stream, and what a target would lose between two runs."""

import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap.verify.leaks import Leaks
from balog.tap.verify.output_reader import KnownStreams, OutputReader, StateLine
from balog.tap.verify.rules.resumption import gaps

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}


def read(records: list[tuple[int, int]], *, key: str = "at", states: bool = True, chunk: int = 1 << 20) -> OutputReader:
    """Read records (id, at) as a tap writes them, with a STATE after each."""
    lines: list[Any] = [{"type": "SCHEMA", "stream": "s", "schema": SCHEMA, "key_properties": ["id"]}]
    for number, (identity, at) in enumerate(records):
        lines.append({"type": "RECORD", "stream": "s", "record": {"id": identity, "at": at}})
        if states:
            mark = max(value for _, value in records[: number + 1])
            lines.append({"type": "STATE", "value": {"bookmarks": {"s": {key: mark}}}})
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    output = OutputReader(Leaks(None), KnownStreams(replication_keys={"s": key}), most=10_000)
    for start in range(0, len(data), chunk):
        output.stdout(data[start : start + chunk])
    output.close(cut=False)
    return output


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@settings(max_examples=40)
@given(rows, st.integers(1, 40))
def test_it_is_the_same_in_whatever_pieces_it_comes(records: list[tuple[int, int]], chunk: int) -> None:
    whole, pieces = read(records), read(records, chunk=chunk)

    assert (whole.lines, whole.records, whole.invalid) == (pieces.lines, pieces.records, pieces.invalid)
    assert whole.streams["s"].keys == pieces.streams["s"].keys
    assert whole.last_state == pieces.last_state


@settings(max_examples=40)
@given(rows)
def test_what_a_bookmark_would_lose_is_what_is_older_than_the_largest_before_it(records: list[tuple[int, int]]) -> None:
    stream = read(records).streams["s"]

    ats = [at for _, at in records]
    assert stream.lost.count == sum(at < max(ats[:number]) for number, at in enumerate(ats) if number)
    assert (stream.lowest, stream.highest, stream.bookmark) == (min(ats), max(ats), max(ats))


@settings(max_examples=40)
@given(rows, st.integers(0, 12), st.sets(st.integers(0, 11)))
def test_a_gap_is_what_came_after_the_state_and_not_again(
    records: list[tuple[int, int]], until: int, dropped: set[int]
) -> None:
    until = min(until, len(records))
    again = [record for number, record in enumerate(records) if number >= until and number not in dropped]
    first, second = (SimpleNamespace(output=read(each)) for each in (records, again))
    trials: Any = SimpleNamespace(sync=first, entries={"s": {}})
    state = StateLine(line=1, value={}, records={"s": until})

    found = gaps(trials, first, state, second)  # type: ignore[arg-type]

    missing = {identity for identity, _ in records[until:]} - {identity for identity, _ in again}
    assert [gap.missing for gap in found] == ([len(missing)] if missing else [])


@settings(max_examples=25)
@given(st.integers(1, 3000))
def test_states_are_thinned_out_evenly_and_the_first_and_last_stay(count: int) -> None:
    output = OutputReader(Leaks(None), KnownStreams(), most=10)

    for number in range(count):
        output.stdout(b'{"type":"STATE","value":{"n":%d}}\n' % number)

    kept = [state.value["n"] for state in output.states]
    assert kept[0] == 0
    assert len(kept) <= 256
    assert len({later - earlier for earlier, later in pairwise(kept)}) <= 1
    assert output.last_state is not None
    assert output.last_state.value == {"n": count - 1}
    assert output.state_count == count
