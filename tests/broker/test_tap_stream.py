import os
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.messages.invalid_lines import InvalidLineFilter, find_line_error
from balog.broker.sidecar import tap_stream
from balog.broker.sidecar.tap_stream import TapStream

LINES = [
    b'{"type": "RECORD", "stream": "a", "record": {"x": "\xc3\xa9"}}\n',
    b'{"type":"RECORD","stream":"b","record":{}}\n',
    b'{"type": "STATE", "value": 1}\n',
    b'{"value": {"at": 2}, "type": "state"}\n',
    b'{"type": "RECORD", "stream": "long", "record": "%b"}\n' % (b"x" * 300),
]
JUNK = [b"junk\n", b"\n", b"\xff\x00\n", b"long junk " * 30 + b"\n"]
LOG = b'{"type":"LOG"}\n'
MAX_LINE = 200


@pytest.fixture(autouse=True)
def short_lines(monkeypatch):
    monkeypatch.setattr(tap_stream, "_MAX_HELD_LINE", MAX_LINE)


class Through:
    """A stream into a pipe whose other end is read all the time."""

    def __init__(self, **options):
        self._read, self._write = os.pipe()
        self._parts = []
        self._thread = threading.Thread(target=self._drain)
        self._thread.start()
        self.said = []
        self.stream = TapStream(self._write, self.said.append, **options)

    def _drain(self):
        with open(self._read, "rb") as reader:
            self._parts.append(reader.read())

    def end(self, last_logs=lambda: None):
        self.stream.end(last_logs)
        os.close(self._write)
        self._thread.join()
        return self._parts[0]


def chunks_of(data, cuts):
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places) if a < b]


cuts = st.lists(st.integers(0, 5000), max_size=12)


@given(
    st.lists(st.sampled_from([*LINES, *JUNK]), max_size=12), cuts, st.booleans(), st.lists(st.booleans(), min_size=12)
)
def test_any_chunks_pass_whole_with_the_logs_between_lines(lines, cuts, ends, logs):
    """Given a stream in chunks of any size and events at any time, then no byte is lost and no line is torn."""
    data = b"".join(lines) if ends else b"".join(lines)[:-1]
    through, sent = Through(), 0
    for chunk, has_log in zip(chunks_of(data, cuts), [*logs, *[False] * 20]):
        through.stream.take(chunk)
        if has_log:
            through.stream.add_log(LOG)
            sent += 1
    out = through.end(lambda: through.stream.add_log(LOG))
    passed = out.split(b"\n")
    assert passed.count(LOG[:-1]) == sent + 1
    rest = b"\n".join(line for line in passed if line != LOG[:-1])
    is_cut = bool(data) and not data.endswith(b"\n") and len(data) - data.rfind(b"\n") - 1 > MAX_LINE
    assert rest in ((data + b"\n", data) if is_cut else (data,))  # a long last line is ended for the LOG after it
    assert through.stream.bytes == len(data)


@given(st.lists(st.sampled_from([*LINES, *JUNK]), max_size=12), cuts)
def test_junk_never_passes_in_any_chunks(lines, cuts):
    found = []

    def keep(reason, line):
        found.append(line)
        return True

    through = Through(invalid_lines=InvalidLineFilter(keep))
    for chunk in chunks_of(b"".join(lines), cuts):
        through.stream.take(chunk)
    assert through.end() == b"".join(line for line in lines if find_line_error(line) is None)
    assert len(found) == sum(find_line_error(line) is not None for line in lines)


@given(st.lists(st.sampled_from(LINES), max_size=12), cuts)
def test_what_is_counted_and_remembered_does_not_depend_on_the_chunks(lines, cuts):
    through = Through(keeps_state=True)
    for chunk in chunks_of(b"".join(lines), cuts):
        through.stream.take(chunk)
    through.end()
    names = {0: "a", 1: "b", 4: "long"}
    expected = {name: lines.count(LINES[index]) for index, name in names.items() if LINES[index] in lines}
    assert through.stream.records.streams == expected
    sizes = {name: lines.count(LINES[index]) * len(LINES[index]) for index, name in names.items() if name in expected}
    assert through.stream.records.bytes == sizes
    states = [line for line in lines if b"tate" in line.lower()]
    last = {LINES[2]: b"1", LINES[3]: b'{"at": 2}'}[states[-1]] if states else None
    assert through.stream.state == last


def test_an_earlier_state_is_not_taken_for_the_last():
    """Given a last STATE too long to be held, then none is remembered rather than the one before it."""
    through = Through(keeps_state=True)
    through.stream.take(LINES[2])
    assert through.stream.state == b"1"
    through.stream.take(b'{"type": "STATE", "value": "')
    through.stream.take(b"x" * 300)
    through.stream.take(b'"}\n')
    through.end()
    assert through.stream.state is None


@pytest.mark.parametrize(
    "line",
    [b'{"type": "STATE", "value": {"a": "\xff"}}\n', b'{"type": "STATE", "value": NaN}\n', b'{"type": "STATE"}\n'],
)
def test_a_last_state_that_cannot_be_read_is_none(line):
    through = Through(keeps_state=True)
    through.stream.take(LINES[2] + line)
    assert through.stream.state is None
    assert through.end() == LINES[2] + line


def test_logs_that_wait_for_a_long_line_are_bounded(monkeypatch):
    monkeypatch.setattr(tap_stream, "_MAX_HELD_LOGS", 3 * len(LOG))
    through = Through()
    through.stream.take(b"x" * 500)
    for _ in range(5):
        through.stream.add_log(LOG)
    assert through.stream.lost_logs == 2
    through.stream.take(b"\n")
    assert through.end() == b"x" * 500 + b"\n" + LOG * 3


def test_a_target_that_is_gone_is_said_once():
    read_end, write_end = os.pipe()
    os.close(read_end)
    said = []
    stream = TapStream(write_end, said.append)
    stream.take(LINES[0])
    stream.take(LINES[0])
    stream.end(lambda: stream.add_log(LOG))
    os.close(write_end)
    assert said == ["the target closed the pipe"]
    assert (stream.is_wanted, stream.has_lost_output) == (False, True)
