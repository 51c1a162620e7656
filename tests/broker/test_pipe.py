import json
import os
import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker import pipe as pipe_module
from balog.broker.pipe import Pipe

RECORD = b'{"type": "RECORD", "stream": "users", "record": {"id": 1, "kind": "LOG"}}\n'
LOG = b'{"type": "LOG", "level": "INFO", "value": {"message": "hello"}}\n'


def run(chunks, *, strip=False, editor=None, finish=False, out=None):
    """Send chunks through a Pipe; give what came out, also into the list ``out``, the LOG messages, and the counts."""
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    passed = bytearray()

    def feed():
        with os.fdopen(write_in, "wb", buffering=0) as stream:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[stream.write(view) :]

    def drain():
        while chunk := os.read(read_out, 1 << 20):
            passed.extend(chunk)

    threads = [threading.Thread(target=feed), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    logs = []
    pipe = Pipe(read_in, write_out, logs.append, strip=strip, editor=editor)
    try:
        pipe.run()
        if finish:
            pipe.finish()
    finally:
        os.close(write_out)
        os.close(read_in)
        for thread in threads:
            thread.join()
        os.close(read_out)
        if out is not None:
            out.append(bytes(passed))
    return bytes(passed), logs, pipe.stats()


@pytest.fixture
def small_buffer(monkeypatch):
    monkeypatch.setattr(pipe_module, "BLOCK_BYTES", 256)


def is_log(line):
    try:
        return json.loads(line)["type"].upper() == "LOG"
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


names = st.sampled_from(["RECORD", "record", "SCHEMA", "STATE", "LOG", "log", "Log", "NOPE"])
messages = st.builds(
    lambda name, value, compact: json.dumps(
        {"type": name, "stream": "a", "value": value}, separators=(",", ":") if compact else None
    ).encode(),
    names,
    st.text(max_size=40) | st.sampled_from(["LOG", '"LOG"', "\n", "log"]),
    st.booleans(),
)
odd_lines = st.sampled_from([b"", b"not json", b"  ", b'{"type": "LOG"', b"\xff\xfe", b"\0" * 9, b'"LOG"', b"[1]"])
lines = st.lists(messages | odd_lines | st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"")), max_size=30)


class TestPassing:
    @settings(deadline=None)
    @given(lines, st.booleans(), st.integers(1, 400), st.booleans())
    def test_everything_passes_byte_for_byte(self, lines, ends_with_newline, size, strip):
        """Given any lines in chunks of any size, then they come out as they were, without the LOG lines if stripped."""
        data = b"\n".join(lines) + (b"\n" if ends_with_newline else b"")
        chunks = [data[i : i + size] for i in range(0, len(data), size)]
        out, logs, counts = run(chunks, strip=strip)
        whole = re.findall(rb"[^\n]*\n|[^\n]+", data)
        expected_logs = [line for line in whole if is_log(line)]
        assert len(logs) == counts.logs == len(expected_logs)
        assert counts.bytes == len(data)
        stripped = [line for line in whole if not is_log(line) and not re.match(rb'\{"type": "LOG"', line)]
        assert out == (b"".join(stripped) if strip else data)

    def test_a_stream_larger_than_the_buffer(self):
        data = (RECORD * 99 + LOG) * 1500
        out, logs, counts = run([data])
        assert out == data
        assert counts.logs == len(logs) == 1500

    def test_nothing_in_nothing_out(self):
        assert run([])[0] == b""

    def test_a_last_line_without_a_newline_is_passed_and_read(self):
        out, logs, _ = run([RECORD + LOG[:-1]])
        assert out == RECORD + LOG[:-1]
        assert len(logs) == 1

    def test_what_comes_is_passed_on_before_the_stream_ends(self):
        """Given a tap that pauses, then the lines before the pause are at the target already."""
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        pipe = Pipe(read_in, write_out, lambda log: None)
        thread = threading.Thread(target=pipe.run)
        thread.start()
        os.write(write_in, RECORD + b'{"type": "REC')
        assert os.read(read_out, 1000) == RECORD
        os.write(write_in, b'ORD"}\n')
        assert os.read(read_out, 1000) == b'{"type": "RECORD"}\n'
        os.close(write_in)
        thread.join()
        for descriptor in (read_in, read_out, write_out):
            os.close(descriptor)


class TestLogs:
    @pytest.mark.parametrize(
        "line",
        [
            LOG,
            b'{"type":"log","level":"INFO","value":1}\n',
            b'{"type" : "Log" , "level": "INFO", "value": 1}\n',
            b'  {"level": "INFO", "value": 1, "type": "LOG"}  \n',
            b'{"type": "LOG", "type": "DEBUG", "value": {"message": "All is good there"}}\n',
            b'{"type":"LOG","level":"INFO","value":1}\r\n',
        ],
    )
    def test_every_form_is_found_and_stripped(self, line):
        out, logs, _ = run([RECORD + line + RECORD + line + line], strip=True)
        assert out == RECORD * 2
        assert len(logs) == 3

    def test_records_that_mention_log_are_records(self):
        odd = b'{"stream": "LOG", "type": "RECORD", "record": {"type": "LOG"}}\n'
        out, logs, _ = run([odd * 3], strip=True)
        assert (out, logs) == (odd * 3, [])


class TestCounting:
    def test_lines_that_are_not_json_are_counted_and_pass(self):
        data = b"oops\n" + RECORD + b"\n \nTraceback:\n" + LOG + b'  {"type": "STATE", "value": 1}\n[1]\nend'
        out, _, counts = run([data])
        assert out == data
        assert counts.not_json == 4

    def test_a_first_line_that_is_not_json_is_counted(self):
        assert run([b"oops\n"])[2].not_json == 1


@pytest.mark.usefixtures("small_buffer")
class TestLongLines:
    def test_a_line_longer_than_the_buffer_passes(self):
        long = b'{"type": "RECORD", "record": "' + b"x" * 5000 + b'"}\n'
        out, logs, counts = run([RECORD + long + LOG + long + RECORD])
        assert out == RECORD + long + LOG + long + RECORD
        assert len(logs) == 1
        assert counts.not_json == 0

    @pytest.mark.parametrize("tail", [b"\n", b""])
    def test_a_long_line_at_the_end(self, tail):
        data = RECORD + b'{"x": "' + b"x" * 1024 + tail
        assert run([data])[0] == data

    @pytest.mark.parametrize("strip", [False, True])
    def test_a_log_too_long_to_read_is_counted_and_still_stripped(self, strip):
        long = b'{"type": "LOG", "value": "' + b"x" * 5000 + b'"}\n'
        out, logs, counts = run([RECORD + long + RECORD + LOG], strip=strip)
        assert out == (RECORD * 2 if strip else RECORD + long + RECORD + LOG)
        assert (len(logs), counts.unread) == (1, 1)

    def test_long_junk_is_counted_once(self):
        out, _, counts = run([b"x" * 5000 + b"\n" + RECORD])
        assert out == b"x" * 5000 + b"\n" + RECORD
        assert counts.not_json == 1

    @settings(deadline=None)
    @given(lines, st.integers(1, 700), st.integers(0, 600))
    def test_any_mixture_of_lengths_passes(self, lines, size, padding):
        data = b"".join(line + b" " * (padding if i % 3 else 0) + b"\n" for i, line in enumerate(lines))
        assert run([data[i : i + size] for i in range(0, len(data), size)])[0] == data


class TestTarget:
    def test_a_closed_target_is_told(self):
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        os.close(read_out)
        os.write(write_in, RECORD)
        os.close(write_in)
        with pytest.raises(BrokenPipeError):
            Pipe(read_in, write_out, lambda log: None).run()
        os.close(read_in)
        os.close(write_out)


@pytest.mark.parametrize("strip", [False, True])
def test_what_is_to_come_before_a_log_passes_comes_before_it_and_once_for_many(strip):
    """Given a block with several LOG lines, then the call comes after all of them were given out, before the write."""
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    os.set_blocking(read_out, False)
    order = []

    def before_passing():
        try:
            order.append(os.read(read_out, 1000))
        except BlockingIOError:
            order.append("nothing has passed")

    log = b'{"type": "LOG", "level": "INFO", "value": "x"}\n'
    os.write(write_in, b'{"type": "STATE", "value": {}}\n' + log + log)
    os.close(write_in)
    try:
        Pipe(read_in, write_out, order.append, strip=strip, before_passing=before_passing).run()
        assert [type(item).__name__ for item in order] == ["LogMessage", "LogMessage", "str"]
        assert os.read(read_out, 1000).endswith(b"}\n")
    finally:
        for descriptor in (read_in, read_out, write_out):
            os.close(descriptor)
