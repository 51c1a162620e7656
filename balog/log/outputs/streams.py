"""Whole lines for a stream that threads, forked processes and other writers share."""

from __future__ import annotations

import atexit
import fcntl
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

# One lock for stdout and one for all other streams, so that a slow reader of data does not delay lines on stderr. They
# are reentrant, for signal handlers that interrupt a write.
_stdout_lock = threading.RLock()
_other_lock = threading.RLock()
_is_in_use = False
_has_forked = False
_PIPE_BUF = select.PIPE_BUF


def lock(stream: TextIO) -> threading.RLock:
    """Return the lock for writes to a stream."""
    return _stdout_lock if stream is sys.stdout or stream is _held_stream else _other_lock


def write_line(stream: TextIO, line: bytes) -> None:
    """Write one whole line, after the text that was written to the stream before."""
    global _is_in_use
    with _stdout_lock if stream is sys.stdout or stream is _held_stream else _other_lock:
        _is_in_use = True
        if _has_forked or len(line) > _PIPE_BUF:
            with _exclusive_pipe(stream):
                _write_line(stream, line)
            return
        _write_line(stream, line)


def _write_line(stream: TextIO, line: bytes) -> None:
    if stream is _line_stream is not None:
        io.TextIOWrapper.flush(stream)  # type: ignore[arg-type]  # incomplete lines stay in the buffer of their thread
    else:
        stream.flush()  # text that print() has buffered comes first
    try:
        buffer = stream.buffer
    except AttributeError:  # the stream was replaced by a text-only one
        stream.write(line.decode("utf-8", "replace"))
        stream.flush()
        return
    try:
        written = buffer.write(line)
        if written == len(line):
            buffer.flush()
            return
    except BlockingIOError as error:
        written = error.characters_written
    _write_rest(buffer, line[written or 0 :])


def _flush(stream: Any) -> None:
    if stream is _line_stream is not None:
        io.TextIOWrapper.flush(stream)  # type: ignore[arg-type]  # incomplete lines stay in the buffer of their thread
    else:
        stream.flush()


def _write_rest(buffer: Any, rest: bytes) -> None:
    """Finish a line that was written partly, as into a non-blocking pipe or with ``python -u``."""
    while rest:
        try:
            written = buffer.write(rest)
        except BlockingIOError as error:
            written = error.characters_written
        if not written:
            _wait_for_room(buffer)
        rest = rest[written or 0 :]
    while not _is_flushed(buffer):
        _wait_for_room(buffer)


def _is_flushed(buffer: Any) -> bool:
    try:
        buffer.flush()
    except BlockingIOError:
        return False
    return True


def _wait_for_room(buffer: Any) -> None:
    """Wait until the reader makes room, as for a blocking pipe."""
    select.select([], [buffer], [], 1.0)


@contextmanager
def _exclusive_pipe(stream: TextIO) -> Iterator[None]:
    """Lock a pipe against other processes, because the system splits writes longer than ``PIPE_BUF``.

    The lock is advisory. It is used for long lines, and for all lines after the process has forked.
    """
    descriptor = None
    with suppress(Exception):  # not a file, or it can't be locked
        number = stream.fileno()
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            fcntl.lockf(number, fcntl.LOCK_EX)
            descriptor = number
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(Exception):
                fcntl.lockf(descriptor, fcntl.LOCK_UN)


# -- text in whole lines ------------------------------------------------------------------------------------------

_MAX_PARTIAL = 16 * 1024 * 1024
_line_stream: TextIO | None = None
_partial_lines: dict[int, list[str]] = {}
"""The incomplete line of each thread, by thread id."""


def keep_lines_whole(stream: TextIO | None) -> None:
    """Write text for a stream in whole lines from now on.

    ``print`` writes a line and its newline in two steps, between which another thread may write. Therefore the stream's
    ``write`` buffers the incomplete line of a thread until its newline, or until that thread flushes. This replaces
    two methods of this one object, and only of an ordinary text stream. Bytes that are written to ``stream.buffer``
    stay whole, except with ``python -u`` if they are longer than ``PIPE_BUF``.
    """
    global _line_stream
    if stream is None or type(stream) is not io.TextIOWrapper or stream is _line_stream:
        return
    _finish()
    if _line_stream is None:
        atexit.register(_finish)
    _line_stream = stream
    stream.write = _write_text  # type: ignore[method-assign]
    stream.flush = _flush_text  # type: ignore[method-assign]


def _write_text(text: str) -> int:
    stream: Any = _line_stream
    me = threading.get_ident()
    if text[-1:] == "\n" and me not in _partial_lines:
        _put(stream, text)
        return len(text)
    before, newline, rest = text.rpartition("\n")
    if newline:
        _put(stream, "".join([*_partial_lines.pop(me, ()), before, newline]))
    if rest:
        begun = _partial_lines.setdefault(me, [])
        begun.append(rest)
        if len(begun) % 4096 == 0 and sum(map(len, begun)) > _MAX_PARTIAL:
            _flush_text()
    return len(text)


def _put(stream: Any, text: str, flush: bool = False) -> None:
    """Write text. After a fork, flush it under the lock, because a full buffer is flushed in the middle of a line."""
    with _stdout_lock:
        if _has_forked:
            with _exclusive_pipe(stream):
                io.TextIOWrapper.write(stream, text)
                io.TextIOWrapper.flush(stream)
            return
        io.TextIOWrapper.write(stream, text)
        if flush:
            io.TextIOWrapper.flush(stream)


def _flush_text() -> None:
    _put(_line_stream, "".join(_partial_lines.pop(threading.get_ident(), ())), flush=True)


def _finish() -> None:
    """Write the incomplete lines of all threads, and restore the stream's methods."""
    global _line_stream
    stream: Any = _line_stream
    _line_stream = None
    if stream is not None:
        with suppress(AttributeError):
            del stream.write, stream.flush
        with suppress(Exception), _stdout_lock:
            for begun in list(_partial_lines.values()):
                stream.write("".join(begun))
    _partial_lines.clear()


# -- one writer for stdout ----------------------------------------------------------------------------------------

_held_stream: TextIO | None = None
_write_held: Callable[[bytes], None] | None = None


def data_stream() -> TextIO:
    """Return the stream for data: stdout, also while it is held."""
    return _held_stream if _held_stream is not None else sys.stdout


def write_data_line(line: bytes) -> None:
    """Write one whole line to the stream for data, through its holder, so that the order is kept."""
    if _write_held is not None:
        _write_held(line)
    else:
        write_line(sys.stdout, line)


@contextmanager
def hold_stdout(write: Callable[[bytes], None]) -> Iterator[TextIO]:
    """Send all data for stdout through one writer, and yield the stream.

    It stays the stream for data, even if ``sys.stdout`` is replaced meanwhile.

    Args:
        write: receives the lines of ``write_data_line``. It is called from any thread and from signal handlers during
            a write. Before a fork it is called with ``b""`` and must flush its buffer.
    """
    global _held_stream, _write_held
    before = (_held_stream, _write_held)
    held, _write_held = data_stream(), write
    _held_stream = held
    try:
        yield held
    finally:
        _held_stream, _write_held = before


# -- forks --------------------------------------------------------------------------------------------------------


def _before_fork() -> None:
    """Wait for lines that are being written, and flush buffers, which a child would write again."""
    _stdout_lock.acquire()
    _other_lock.acquire()
    if _is_in_use:
        for name in ("stdout", "stderr"):
            with suppress(Exception):
                _flush(getattr(sys, name))
    if _write_held is not None:
        with suppress(Exception):
            _write_held(b"")


def _after_fork() -> None:
    global _has_forked
    _has_forked = True
    _other_lock.release()
    _stdout_lock.release()


def _after_fork_in_child() -> None:
    _partial_lines.clear()  # the parent completes them
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
