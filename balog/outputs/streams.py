"""Whole lines into a stream that threads, forks and other writers share."""

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

__all__ = ["data_stream", "hold_stdout", "keep_lines_whole", "lock", "write_data_line", "write_line"]

# One lock for stdout and one for all else, so that a reader who is slow to take data holds up no line on stderr. They
# are of the kind that a signal handler may take while its thread has it.
_stdout_lock = threading.RLock()
_other_lock = threading.RLock()
_is_in_use = False
_has_forked = False
_PIPE_BUF = select.PIPE_BUF


def lock(stream: TextIO) -> threading.RLock:
    """Give the lock that a writer of lines to this stream has."""
    return _stdout_lock if stream is sys.stdout or stream is _held_stream else _other_lock


def write_line(stream: TextIO, line: bytes) -> None:
    """Write one line whole, after what was written to the stream before."""
    global _is_in_use
    with lock(stream):
        _is_in_use = True
        if _has_forked or len(line) > _PIPE_BUF:
            with _pipe_alone(stream):
                _write_line(stream, line)
            return
        _write_line(stream, line)


def _write_line(stream: TextIO, line: bytes) -> None:
    if _kept_stream is None:
        stream.flush()  # what print() still holds goes first
    else:
        _flush(stream)
    try:
        buffer = stream.buffer
    except AttributeError:  # a stream that somebody replaced by a text-only one
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
    if stream is _kept_stream is not None:
        io.TextIOWrapper.flush(stream)  # type: ignore[arg-type]  # a line that is begun stays with its thread
    else:
        stream.flush()


def _write_rest(buffer: Any, rest: bytes) -> None:
    """Finish a line that was taken in part, as a pipe that somebody made non-blocking does, or ``python -u``."""
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
    """Wait for a reader, as a blocking pipe would have done."""
    select.select([], [buffer], [], 1.0)


@contextmanager
def _pipe_alone(stream: TextIO) -> Iterator[None]:
    """Keep other processes out while a line goes into a pipe: the system parts lines longer than ``PIPE_BUF``.

    Each writer has to ask for it. This one does for long lines, and for all lines once the process has forked.
    """
    descriptor = None
    with suppress(Exception):  # no file at all, or one that cannot be locked
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


# -- text by whole lines ------------------------------------------------------------------------------------------

_MAX_BEGUN = 16 * 1024 * 1024
_kept_stream: TextIO | None = None
_begun: dict[int, list[str]] = {}
"""What each thread has written without a newline so far, by the thread's id."""


def keep_lines_whole(stream: TextIO | None) -> None:
    """Let text go into stdout by whole lines from now on.

    ``print`` writes a line and its newline in two steps, between which another thread's line may come. So the stream's
    ``write`` keeps what a thread has begun until its newline comes, or until that thread flushes. Only these two
    methods of this one object change, and only when it is the usual kind of stream. Bytes that go past them, into
    ``stream.buffer``, are whole by themselves; not so under ``python -u`` when they are longer than ``PIPE_BUF``.
    """
    global _kept_stream
    if stream is None or type(stream) is not io.TextIOWrapper or stream is _kept_stream:
        return
    _finish()
    if _kept_stream is None:
        atexit.register(_finish)
    _kept_stream = stream
    stream.write = _write_text  # type: ignore[method-assign]
    stream.flush = _flush_text  # type: ignore[method-assign]


def _write_text(text: str) -> int:
    stream: Any = _kept_stream
    me = threading.get_ident()
    if text[-1:] == "\n" and me not in _begun:
        _put(stream, text)
        return len(text)
    before, newline, rest = text.rpartition("\n")
    if newline:
        _put(stream, "".join([*_begun.pop(me, ()), before, newline]))
    if rest:
        begun = _begun.setdefault(me, [])
        begun.append(rest)
        if len(begun) % 4096 == 0 and sum(map(len, begun)) > _MAX_BEGUN:
            _flush_text()
    return len(text)


def _put(stream: Any, text: str, flush: bool = False) -> None:
    """Write text; at once and alone when the process has forked, as a full buffer is written wherever a line is."""
    with _stdout_lock:
        if _has_forked:
            with _pipe_alone(stream):
                io.TextIOWrapper.write(stream, text)
                io.TextIOWrapper.flush(stream)
            return
        io.TextIOWrapper.write(stream, text)
        if flush:
            io.TextIOWrapper.flush(stream)


def _flush_text() -> None:
    _put(_kept_stream, "".join(_begun.pop(threading.get_ident(), ())), flush=True)


def _finish() -> None:
    """Write what threads have begun and will not end, and let the stream be as it was."""
    global _kept_stream
    stream: Any = _kept_stream
    _kept_stream = None
    if stream is not None:
        with suppress(AttributeError):
            del stream.write, stream.flush
        with suppress(Exception), _stdout_lock:
            for begun in list(_begun.values()):
                stream.write("".join(begun))
    _begun.clear()


# -- stdout in one hand -------------------------------------------------------------------------------------------

_held_stream: TextIO | None = None
_write_held: Callable[[bytes], None] | None = None


def data_stream() -> TextIO:
    """Give the stream that data go to: stdout, also while it is held."""
    return _held_stream if _held_stream is not None else sys.stdout


def write_data_line(line: bytes) -> None:
    """Write one line to the stream of data, whole; through who holds it, so that it comes after what that one has."""
    if _write_held is not None:
        _write_held(line)
    else:
        write_line(sys.stdout, line)


@contextmanager
def hold_stdout(write: Callable[[bytes], None]) -> Iterator[TextIO]:
    """Let all data for stdout go through one writer; give the stream.

    It stays that of data whatever becomes of ``sys.stdout`` meanwhile.

    Args:
        write: is given the lines of ``write_data_line`` meanwhile; called from any thread, also by a signal's handler
            out of the middle of a write, and with nothing before a fork: what it has must not be written twice.
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
    """Wait for the lines that are being written, and leave nothing in a buffer that a child would write again."""
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
    _begun.clear()  # the parent goes on with them
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
