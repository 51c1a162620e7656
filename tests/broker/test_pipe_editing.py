"""The pipe with an editor: who is asked, what goes on, and what never passes."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker import pipe as pipe_module
from balog.broker.editor import Chain, PipeError
from balog.broker.messages.message_prefixes import TYPES, usual_head
from tests.broker.test_pipe import LOG, messages, odd_lines, run

USERS = b'{"type": "RECORD", "stream": "users", "record": {"id": 1}}\n'
ORDERS = b'{"type": "RECORD", "stream": "orders", "record": {"id": 2}}\n'
STATE = b'{"type": "STATE", "value": {"a": 1}}\n'


class Shout:
    """An editor that writes each message that it sees in capitals, and tells what it saw."""

    is_strict = False

    def __init__(self, types=("RECORD",), streams=None, give=None):
        self.types = frozenset(types)
        self.streams = None if streams is None else frozenset(streams)
        self.give = give or (lambda kind, line: [(kind, line.upper())])
        self.seen = []
        self.waiting = []
        self.last = []

    def edit(self, kind, line):
        self.seen.append((kind, line))
        return self.give(kind, line)

    def due(self):
        waiting, self.waiting = self.waiting, []
        return waiting

    def end(self):
        return self.last


def edit(chunks, *editors, **options):
    return run(chunks, editor=Chain(editors), finish=True, **options)


@pytest.fixture
def small_buffer(monkeypatch):
    monkeypatch.setattr(pipe_module, "BLOCK_BYTES", 256)
    monkeypatch.setattr(pipe_module, "MAX_EDITED_LINE", 1024)


def test_only_the_streams_that_are_named_are_seen():
    shout = Shout(streams=["users"])
    out, _, counts = edit([USERS + ORDERS + STATE + USERS], shout)
    assert out == USERS.upper() + ORDERS + STATE + USERS.upper()
    assert shout.seen == [("RECORD", USERS)] * 2
    assert counts.edited == 2


@pytest.mark.parametrize(
    "line",
    [
        USERS.replace(b" ", b""),
        USERS.replace(b"RECORD", b"record"),
        USERS.replace(b"users", b"\\u0075sers"),
        b'{"stream": "users", "record": {}, "type": "RECORD"}\n',
        b' { "type" : "RECORD", "stream": "users" }\n',
        USERS[:-1],
    ],
)
def test_a_message_is_seen_however_it_is_written(line):
    shout = Shout(streams=["users"])
    out, _, _ = edit([line], shout)
    assert shout.seen == [("RECORD", line)]
    assert out == line.upper()


@pytest.mark.parametrize(
    "line", [b'{"type": "RECORD", "stre\n', b'{"type"\n', b'{"record": {"id": 1}}\n', b'{"\xff": 1}\n']
)
def test_an_object_that_cannot_be_read_is_taken_for_a_record(line):
    """Given rules for records, then a broken line, which may hold what a rule masks, goes to the editor."""
    shout = Shout(streams=["users"], give=lambda kind, line: [])
    out, _, _ = edit([ORDERS + line + ORDERS], shout)
    assert shout.seen == [("RECORD", line)]
    assert out == ORDERS * 2


@pytest.mark.parametrize("line", [b"starting\n", b"[1]\n", b'"users"\n', b'", "email": "a@example.com"}}\n'])
def test_what_is_no_object_may_be_the_end_of_a_record(line):
    """Given rules for records, then a line that may be the second half of a torn one goes to the editor too."""
    shout = Shout(streams=["users"], give=lambda kind, line: [])
    out, _, counts = edit([ORDERS + line + ORDERS], shout)
    assert shout.seen == [("RECORD", line)]
    assert out == ORDERS * 2
    assert counts.not_json == 0, "it has not passed"
    out, _, counts = edit([line], Shout(types=["STATE"]))
    assert (out, counts.not_json) == (line, 1)


def test_a_torn_log_may_have_a_record_in_it():
    """Given a LOG whose end is missing, so that the next record is on its line, then the editor is asked."""
    shout = Shout(streams=["users"], give=lambda kind, line: [])
    out, _, counts = edit([ORDERS + LOG[:20] + USERS + ORDERS], shout)
    assert shout.seen == [("RECORD", LOG[:20] + USERS)]
    assert (out, counts.unread) == (ORDERS * 2, 0)


@pytest.mark.parametrize("line", [b"\n", b"  \n", b"\r\n"])
def test_an_empty_line_passes(line):
    shout = Shout(give=lambda kind, line: [])
    out, _, _ = edit([line + STATE], shout)
    assert (out, shout.seen) == (line + STATE, [])


def test_a_message_may_become_none_or_several():
    shout = Shout(give=lambda kind, line: [("RECORD", line)] * json.loads(line)["record"]["id"])
    out, _, _ = edit([USERS + ORDERS + STATE + USERS.replace(b"1", b"0")], shout)
    assert out == USERS + ORDERS * 2 + STATE


def test_none_lets_it_pass_byte_for_byte():
    out, _, counts = edit([USERS + ORDERS], Shout(give=lambda kind, line: None))
    assert out == USERS + ORDERS
    assert counts.edited == 0


def test_log_messages_are_still_handed_out():
    out, logs, _ = edit([USERS + LOG + USERS], Shout(), strip=True)
    assert out == USERS.upper() * 2
    assert len(logs) == 1


def test_what_is_due_goes_on_without_a_message():
    shout = Shout(types=["STATE"], give=lambda kind, line: shout.waiting.append((kind, line)) or [])
    shout.last = [("STATE", b"last\n")]
    out, _, _ = edit([STATE, USERS], shout)
    assert sorted(out.splitlines()) == sorted((STATE + USERS + b"last\n").splitlines())
    assert out.endswith(b"last\n")


def test_what_one_editor_gives_the_next_one_sees():
    double = Shout(give=lambda kind, line: [(kind, line), ("STATE", STATE)])
    double.last = [("RECORD", USERS)]
    out, _, _ = edit([ORDERS], double, Shout(types=["STATE", "RECORD"]))
    assert out == ORDERS.upper() + STATE.upper() + USERS.upper()


def test_a_stream_error_lets_what_came_before_go_on_and_nothing_else():
    def refuse(kind, line):
        raise PipeError("no further")

    passed = []
    with pytest.raises(PipeError, match="no further"):
        edit([STATE + ORDERS + USERS + ORDERS], Shout(streams=["users"], give=refuse), out=passed)
    assert b"".join(passed) == STATE + ORDERS


def test_a_line_longer_than_the_buffer_is_edited_whole(small_buffer):
    long = b'{"type": "RECORD", "stream": "users", "record": {"text": "%b"}}\n' % (b"x" * 700)
    shout = Shout()
    out, _, _ = edit([USERS + long + USERS, STATE], shout)
    assert out == (USERS + long + USERS).upper() + STATE
    assert [line for _, line in shout.seen] == [USERS, long, USERS]


def test_a_line_that_is_too_long_to_be_edited_never_passes(small_buffer):
    long = b'{"type": "RECORD", "stream": "users", "record": {"text": "%b"}}\n' % (b"x" * 5000)
    passed = []
    with pytest.raises(PipeError, match="can't be changed"):
        edit([USERS + long], Shout(), out=passed)
    assert b"".join(passed) == USERS.upper()


def test_a_long_line_that_nobody_edits_passes_in_pieces(small_buffer):
    long = b'{"type": "RECORD", "stream": "orders", "record": {"text": "%b"}}\n' % (b"x" * 5000)
    out, _, _ = edit([USERS + long + USERS], Shout(streams=["users"]))
    assert out == USERS.upper() + long + USERS.upper()


def test_usual_head_with_everything_edited_skips_nothing():
    assert not re.match(usual_head(TYPES), USERS)


chunk_sizes = st.integers(1, 400)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(messages | odd_lines, max_size=30), size=chunk_sizes, types=st.sets(st.sampled_from(TYPES)))
def test_an_editor_that_changes_nothing_changes_nothing(lines, size, types):
    """Given any stream in any chunks, then asked or not, every byte passes; each message of its types was seen."""
    data = b"".join(line + b"\n" for line in lines)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    shout = Shout(types=types, give=lambda kind, line: None)
    out, _, _ = edit(chunks, shout)
    assert out == data
    wanted = []
    for line in lines:
        try:
            kind = json.loads(line)["type"].upper()
        except (ValueError, TypeError, KeyError):
            continue
        if kind in types:
            wanted.append((kind, line + b"\n"))
    assert [seen for seen in shout.seen if seen in wanted] == wanted


@pytest.mark.parametrize("size", [600, 900, 5000])
def test_a_long_line_with_a_name_of_an_edited_stream_is_never_passed_whole_unseen(small_buffer, size):
    """Given a line whose beginning nobody edits, then what is in the rest of it decides, however long it is."""
    shout = Shout(streams=["users"])
    shout.is_strict = True
    long = ORDERS.replace(b'"id": 2', b'"text": "' + b"x" * size + b'"')
    doubled = long.replace(b"}}", b'}, "stream": "users"}')
    assert edit([long + STATE], shout)[0] == long + STATE
    try:
        assert b"users" not in edit([doubled + STATE], shout)[0]
    except PipeError:
        assert size > 1000
