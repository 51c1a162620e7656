"""Copy a Singer stream byte for byte, and extract its LOG lines.

The stream is read into one buffer and searched in place: one regular expression skips every line whose beginning shows
that nobody wants it, so such a line costs no more than finding its end. Any other line is looked at: it is read when it
mentions ``"log"`` in any case, and given to the editor when that changes messages of its type.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
from collections.abc import Callable

from balog.broker.editor import Chain, PipeError
from balog.broker.messages.message_prefixes import (
    USUAL_KIND,
    USUAL_KINDS,
    Passing,
    is_one_message,
    kind_of,
    mentions_log,
    split_lines,
    starts_like_log,
    starts_like_no_object,
    usual_head,
)
from balog.broker.pipe_output import PipeOutput, PipeStats
from balog.broker.stopwatch import Stopwatch
from balog.singer import LogMessage, parse_log

BLOCK_BYTES = 8 * 1024 * 1024
"""Size of the buffer, and so the longest line that is searched; longer ones pass in pieces."""

MAX_EDITED_LINE = 64 * 1024 * 1024
"""The longest line that an editor is given; the buffer grows to it only when such a line comes."""

_NAME_BYTES = 4096  # of a long line's last piece, since a name may begin there and end in the next
_PIPE_BYTES = 1024 * 1024
_SAMPLE_FROM = 64 * 1024
_SAMPLED = 8
_DUE_SECONDS = 0.1


class Pipe:
    """Copies one file descriptor to another, in whole lines.

    Args:
        source: descriptor to read, to its end.
        target: descriptor to write. ``BrokenPipeError`` comes through to the caller of ``run``.
        on_log: called with every LOG message; must not raise.
        strip: keep LOG lines from the target.
        editor: changes messages on their way; without one every byte passes.
        should_stop: asked before each read; True ends the run at a line's end, as if the input had ended there.
        wake: descriptor that becomes readable when ``should_stop`` may have changed.
        before_passing: called before LOG lines are passed on that ``on_log`` was given, once for many of them.
    """

    def __init__(
        self,
        source: int,
        target: int,
        on_log: Callable[[LogMessage], None],
        *,
        strip: bool = False,
        editor: Chain | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        wake: int | None = None,
        before_passing: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self._target = target
        self._should_stop = should_stop
        self._wake = wake
        self._buffer = bytearray(BLOCK_BYTES)
        self._view = memoryview(self._buffer)
        self._passing_long_line = False
        self._dropping_long_line = False
        self._tail = b""
        self._blocks = 0
        self._reading = Stopwatch()
        self._output = PipeOutput(target, on_log, before_passing)
        self._bytes = self._lines = self._not_json = self._unread = 0
        self._strip = strip
        self._editor = editor
        self._edits_records = editor is not None and "RECORD" in editor.types
        self._passing = Passing(editor.types, editor.streams) if editor is not None and editor.is_strict else None
        usual = usual_head(editor.types, editor.streams) if editor else usual_head()
        self._usual_line = re.compile(usual)
        # The first group is the type, where the line begins as the Singer libraries write one.
        self._unusual_line = re.compile(rb"(?!%b)%b" % (usual, USUAL_KIND))
        self._next_unusual_line = re.compile(rb"\n(?!%b)%b" % (usual, USUAL_KIND))

    def stats(self) -> PipeStats:
        """Return the counters, with the wait that is under way."""
        return PipeStats(
            bytes=self._bytes,
            lines=self._lines,
            logs=self._output.logs,
            edited=self._output.edited,
            not_json=self._not_json,
            unread=self._unread,
            read_wait_seconds=self._reading.seconds,
            write_wait_seconds=self._output.writing.seconds,
        )

    def run(self) -> None:
        """Copy until the input ends or ``should_stop`` returns True; then ``finish`` writes the editor's rest.

        Raises:
            BrokenPipeError: nobody reads the target any more.
            PipeError: the editor lets the stream go no further; what came before has been written.
            OSError: reading or writing failed otherwise.
        """
        for descriptor in (self._source, self._target):
            _widen(descriptor)
        filled = 0
        while not self._should_stop():
            if not self._wait_for_input():
                continue
            try:
                count = os.readv(self._source, [self._view[filled:]])
            except BlockingIOError:  # another process that shares the descriptor read the data
                continue
            if count == 0:
                self._pass(filled)  # a last line without a newline
                return
            self._count(filled, filled + count)
            filled = self._consume(filled, filled + count)

    def finish(self) -> None:
        """Write the editor's messages after the last one; raises as ``run`` does."""
        if self._editor is not None:
            if self._passing_long_line:
                self._output.put(b"\n")  # the stream was stopped within a line
            try:
                self._output.put_lines(self._editor.end())
            finally:
                self._output.flush()

    def _wait_for_input(self) -> bool:
        wake = [] if self._wake is None else [self._wake]
        with self._reading:
            ready, _, _ = select.select([self._source, *wake], [], [], _DUE_SECONDS if self._editor else None)
        if self._wake in ready:
            os.read(self._wake, 512)
        if self._editor is not None and not self._passing_long_line:
            try:
                self._output.put_lines(self._editor.due())
            finally:
                self._output.flush()
        return self._source in ready

    def _count(self, start: int, end: int) -> None:
        self._bytes += end - start
        if end - start < _SAMPLE_FROM:
            self._lines += self._buffer.count(b"\n", start, end)
            return
        self._blocks += 1
        if self._blocks % _SAMPLED == 1:
            self._lines += _SAMPLED * self._buffer.count(b"\n", start, end)

    def _consume(self, searched: int, filled: int) -> int:
        """Pass the whole lines among the first ``filled`` bytes; return the number of bytes of the unfinished line."""
        end = self._buffer.rfind(b"\n", searched, filled) + 1
        if end:
            self._pass(end)
            rest = filled - end
            self._view[:rest] = self._view[end:filled]
            self._shrink(rest)
            return rest
        if filled < len(self._buffer):
            return filled
        if not self._passing_long_line:
            if self._must_edit_long_line():
                self._grow()
                return filled
            self._begin_long_line()
        if not self._dropping_long_line:
            self._check_long_line(filled)
            self._output.write(self._view)
        return 0

    def _check_long_line(self, end: int) -> None:
        """Raise PipeError if a piece of a long line may name a stream that is edited.

        Raises:
            PipeError: it may.
        """
        if self._passing is None:
            return
        part = bytearray(self._tail) + self._view[:end]
        if self._passing.mentions(part, 0, len(part)):
            raise PipeError(
                f"a message of more than {MAX_EDITED_LINE >> 20} MiB may name a stream that has rules, and was not "
                "passed on whole; have the tap write smaller ones"
            )
        self._tail = bytes(part[-_NAME_BYTES:])

    def _must_edit_long_line(self) -> bool:
        if self._editor is None or starts_like_log(self._buffer):
            return False
        if self._usual_line.match(self._buffer):  # buffered as a whole, while there is room
            return self._passing is not None and 2 * len(self._buffer) <= MAX_EDITED_LINE
        return self._edits_records or not starts_like_no_object(self._buffer)

    def _grow(self) -> None:
        size = 2 * len(self._buffer)
        if size > MAX_EDITED_LINE:
            raise PipeError(
                f"a message of more than {MAX_EDITED_LINE >> 20} MiB can't be changed as the config says and was not "
                "passed on; have the tap write smaller ones, or leave its stream out of the rules"
            )
        self._resize(size)

    def _shrink(self, rest: int) -> None:
        if len(self._buffer) > BLOCK_BYTES and rest < BLOCK_BYTES:
            self._resize(BLOCK_BYTES)

    def _resize(self, size: int) -> None:
        self._view.release()
        kept = min(size, len(self._buffer))
        buffer = bytearray(size)
        buffer[:kept] = memoryview(self._buffer)[:kept]
        self._buffer = buffer
        self._view = memoryview(buffer)

    def _begin_long_line(self) -> None:
        self._passing_long_line = True
        self._tail = b""
        if starts_like_log(self._buffer):
            self._unread += 1
            self._dropping_long_line = self._strip
        elif starts_like_no_object(self._buffer):
            self._not_json += 1

    def _pass(self, end: int) -> None:
        """Write the first ``end`` bytes, which end with a line, after editing."""
        start = 0
        if self._passing_long_line:
            newline = self._buffer.find(b"\n", 0, end)
            start = newline + 1 if newline >= 0 else end
            if not self._dropping_long_line:
                self._check_long_line(start)
                self._output.write(self._view[:start])
            self._passing_long_line = self._dropping_long_line = False
        if start < end:
            try:
                self._search(start, end)
            finally:
                self._output.flush()  # also the lines before a message that must not pass

    def _search(self, start: int, end: int) -> None:
        unwritten = start
        if first := self._unusual_line.match(self._buffer, start, end):
            unwritten = self._look_at(start, end, unwritten, first[1])
            start = self._buffer.find(b"\n", start, end) + 1 or end
        is_strict, seen = self._passing is not None, start
        for newline in self._next_unusual_line.finditer(self._buffer, max(start - 1, 0), end - 1):
            line_start = newline.start() + 1
            if is_strict:
                unwritten = self._check_passing(seen, line_start, unwritten)
            unwritten = self._look_at(line_start, end, unwritten, newline[1])
            if is_strict:
                seen = unwritten if unwritten > line_start else self._buffer.find(b"\n", line_start, end) + 1 or end
        if is_strict:
            unwritten = self._check_passing(seen, end, unwritten)
        self._output.put(self._view[unwritten:end])

    def _check_passing(self, start: int, end: int, unwritten: int) -> int:
        """Reject unedited lines, through the editor, in which another reader may find another message.

        Returns:
            From where on the buffer is still to be written.
        """
        if self._passing is None or start >= end or not self._passing.mentions(self._buffer, start, end):
            return unwritten
        lines = bytes(self._view[start:end])
        if self._passing.is_plain(lines):
            return unwritten
        for line in split_lines(lines):
            if not self._passing.may_pass(line):
                unwritten = self._edit("RECORD", start, start + len(line), unwritten)
            start += len(line)
        return unwritten

    def _look_at(self, line_start: int, end: int, unwritten: int, kind: bytes | None) -> int:
        """Dispatch a line's LOG message, or edit the line; return the start of the buffer's unwritten part."""
        line_end = self._buffer.find(b"\n", line_start, end) + 1 or end
        if kind is not None:
            return self._edit(USUAL_KINDS[kind], line_start, line_end, unwritten)
        if mentions_log(self._buffer, line_start, line_end):
            line = bytes(self._view[line_start:line_end])
            log = parse_log(line)
            if log is not None and self._passing is not None and not is_one_message(line):
                return self._edit("RECORD", line_start, line_end, unwritten)
            if log is not None:
                self._output.log(log)
                return self._strip_line(line_start, line_end, unwritten)
            if starts_like_log(self._buffer, line_start, line_end) and not self._edits_records:
                self._unread += 1
                return self._strip_line(line_start, line_end, unwritten)
        is_no_object = starts_like_no_object(self._buffer, line_start, line_end) is not None
        if not is_no_object and (self._editor is None or self._buffer[line_start:line_end].isspace()):
            return unwritten
        # What can't be read may be a record that must not pass as it is, or the end of one that was torn.
        read = kind_of(self._view[line_start:line_end])
        if read is not None and self._passing is not None:
            read = read if is_one_message(bytes(self._view[line_start:line_end])) else "RECORD"
        unwritten = self._edit(read or "RECORD", line_start, line_end, unwritten)
        if is_no_object and unwritten != line_end:
            self._not_json += 1
        return unwritten

    def _strip_line(self, line_start: int, line_end: int, unwritten: int) -> int:
        if not self._strip:
            return unwritten
        self._output.put(self._view[unwritten:line_start])
        return line_end

    def _edit(self, kind: str, line_start: int, line_end: int, unwritten: int) -> int:
        editor = self._editor
        if editor is None or kind not in editor.types:
            return unwritten
        try:
            edited = editor.edit(kind, bytes(self._view[line_start:line_end]))
            if edited is None:
                return unwritten
            if unwritten < line_start:
                self._output.put(self._view[unwritten:line_start])
                unwritten = line_start
            self._output.put_lines(edited)
        except PipeError:
            if unwritten < line_start:
                self._output.put(self._view[unwritten:line_start])
            raise
        return line_end


def _widen(descriptor: int) -> None:
    """Enlarge a pipe's buffer to 1 MiB, for fewer context switches; other descriptors stay unchanged."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is not None:
        try:
            fcntl.fcntl(descriptor, set_size, _PIPE_BYTES)
        except OSError:
            pass
