import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.messages.invalid_lines import InvalidLineFilter, find_line_error

RECORD = b'{"type": "RECORD", "stream": "a", "record": {"x": "\xc3\xa9"}}\n'
MESSAGES = [
    RECORD,
    b'{"type":"STATE","value":1}\n',
    b' {"value": {"type": "junk"}, "type": "state"} \r\n',
    b'{"type": "LOG", "type": "DEBUG", "value": {}}\n',
    b'{"type": "log", "value": "x"}\n',
    b'{"type": "Activate_Version", "stream": "a", "version": 1}\n',
    b'{"type": "RECORD", "stream": "a", "record": {"x": NaN, "y": -Infinity, "z": 1e999}}\n',
    b'{"type": "BATCH", "stream": "a", "manifest": []}\n',
]
JUNK = {
    b"Downloading page 1 ...\n": "no JSON object",
    b"\n": "an empty line",
    b" \t\r\n": "an empty line",
    b"[1, 2]\n": "no JSON object",
    b'"RECORD"\n': "no JSON object",
    b"NaN\n": "no JSON object",
    b'{"type": "RECORD", "stream": "a", "rec': "no JSON object",
    b'{"type": "RECORD", "stream"DEBUG connecting\n': "no JSON object",
    b'{"type": "RECORD", "stream": "a"}{"type": "STATE"}\n': "no JSON object",
    b'{"stream": "a"}\n': "an object without a type",
    b'{"type": 1, "x": NaN}\n': "an object without a type",
    b'{"type": null}\n': "an object without a type",
    b'{"type": "RECRD", "x": NaN}\n': "no type of Singer's",
    b'{"type": "CREATE"}\n': "no type of Singer's",
    b'{"type": "RECORD", "stream": "\xff"}\n': "not UTF-8",
    b"\x00\x01\x02\n": "no JSON object",
    b'{"type": "RECORD"\x00}\n': "no JSON object",
    b'\xef\xbb\xbf{"type": "RECORD", "stream": "a", "record": {}}\n': "no JSON object",
    b"{" * 100_000 + b"\n": "no JSON object",
}


def sift(block, keep=lambda reason, line: True):
    found = []

    def on_invalid_line(reason, line):
        found.append((reason, line))
        return keep(reason, line)

    junk = InvalidLineFilter(on_invalid_line)
    return junk.sift(block), found, junk


@pytest.mark.parametrize("line", MESSAGES)
def test_a_message_is_none(line):
    assert find_line_error(line) is None
    assert sift(line)[:2] == (line, [])


@pytest.mark.parametrize("line", JUNK)
def test_junk_is_taken_out_with_the_reason(line):
    assert sift(line)[:2] == (b"", [(JUNK[line], line)])


def test_a_block_of_messages_comes_back_as_it_is():
    block = RECORD * 1000
    assert sift(block)[0] is block


@given(st.lists(st.sampled_from([*MESSAGES, *(line for line in JUNK if line.endswith(b"\n"))])), st.booleans())
def test_lines_are_told_apart_in_any_mixture(lines, ends):
    """Given messages and junk in any order, the last perhaps unfinished, then what passes is every message, whole."""
    block = b"".join(lines)
    if lines and not ends:
        block = block[:-1]
        lines[-1] = lines[-1][:-1]
    good, found, junk = sift(block)
    assert good == b"".join(line for line in lines if not line or find_line_error(line) is None)
    assert [line for _, line in found] == [line for line in lines if line and find_line_error(line) is not None]
    assert junk.count == len(found)


@given(st.binary(max_size=200))
def test_any_bytes_are_parted_into_what_a_target_reads_and_junk(data):
    """Given any bytes, then each line that passes is read by Python's json as an object, and nothing is lost."""
    good, found, _ = sift(data)
    for line in good.split(b"\n")[:-1]:
        assert isinstance(json.loads(line), dict)
    assert sorted(good + b"".join(line for _, line in found)) == sorted(data)


def test_messages_that_span_lines_or_share_one_do_not_hide_each_other():
    """Given one message on two lines and two on one line, then they don't pass for two messages on two lines."""
    block = b'{"type": "STATE",\n"value": 1}\n{"type": "STATE"}{"type": "STATE"}\n'
    good, found, _ = sift(block)
    assert (good, len(found)) == (b"", 3)


def test_the_stream_ends_before_the_line_that_ends_it():
    good, found, junk = sift(RECORD + b"junk\n" + RECORD + b"more\n", keep=lambda reason, line: False)
    assert (good, found, junk.ended) == (RECORD, [("no JSON object", b"junk\n")], True)
    assert junk.sift(RECORD) == b""
    assert not junk.sift_long(b"{")


@pytest.mark.parametrize(("beginning", "passes"), [(b' {"type"', True), (b"\x00" * 100, False), (b"[1, 2", False)])
def test_a_long_line_is_told_by_its_beginning(beginning, passes):
    junk = InvalidLineFilter(lambda reason, line: True)
    assert junk.sift_long(beginning) is passes
    assert junk.count == (not passes)
