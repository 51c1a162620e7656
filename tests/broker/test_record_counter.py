import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.messages.record_counter import RecordCounter


def record(stream, compact=False, **rest):
    message = {"type": "RECORD", "stream": stream, "record": {"x": 1}, **rest}
    return json.dumps(message, separators=(",", ":") if compact else None).encode() + b"\n"


def test_a_run_of_one_stream():
    counter = RecordCounter()
    for _ in range(3):
        counter.count(record("users") * 100)
    assert counter.streams == {"users": 300}
    assert counter.bytes == {"users": 300 * len(record("users"))}
    assert counter.total == 300


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "STATE", "value": {"type": "RECORD"}}\n',
        b'{"type": "SCHEMA", "stream": "users", "schema": {}}\n',
        b"junk\n",
        b"\n",
        b'["RECORD"]\n',
        b'{"type": "RECORD", "stream": "us',
    ],
)
def test_other_lines_do_not_count(line):
    counter = RecordCounter()
    counter.count(record("users") * 2 + line)
    counter.count(record("users") + line)
    assert counter.streams == {"users": 3}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "ab", 'quo"te', "back\\slash", "ünï", "", "A"]),
            st.sampled_from(["plain", "compact", "lower", "reordered"]),
            st.integers(1, 3),
        )
    ),
    st.integers(1, 10),
)
def test_any_mixture_equals_a_count_by_json(runs, per_block):
    """Given records of any streams in any layout, then the counts equal those of a JSON parser."""
    lines = []
    for stream, layout, times in runs:
        if layout == "lower":
            line = record(stream).replace(b"RECORD", b"record", 1)
        elif layout == "reordered":
            line = json.dumps({"stream": stream, "type": "RECORD", "record": {}}).encode() + b"\n"
        else:
            line = record(stream, compact=layout == "compact")
        lines += [line] * times
    expected: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for line in lines:
        stream = json.loads(line)["stream"]
        expected[stream] = expected.get(stream, 0) + 1
        sizes[stream] = sizes.get(stream, 0) + len(line)
    counter = RecordCounter()
    for i in range(0, len(lines), per_block):
        counter.count(b"".join(lines[i : i + per_block]))
    assert (counter.streams, counter.bytes) == (expected, sizes)


@pytest.mark.parametrize(("line", "grows"), [(record("users"), 10), (b'{"type": "STATE", "value": 1}\n', 0)])
def test_a_line_that_goes_on_is_a_record_s_or_nobody_s(line, grows):
    counter = RecordCounter()
    counter.count(record("users") + line[:-1])
    before = sum(counter.bytes.values())
    counter.lengthen(10)
    assert sum(counter.bytes.values()) - before == grows
