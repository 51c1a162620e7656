"""Singer messages on stdout: whole lines, in order, in large writes."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from balog.common.signals import signals_for_main_thread
from balog.log.outputs.streams import data_stream, hold_stdout, lock, write_line
from balog.tap.errors import OutputError, RecordError
from balog.tap.records.plain import unwritable

_encoder = msgspec.json.Encoder(decimal_format="number")

Refuse = Callable[[Any, RecordError], None]


def raise_refusal(record: Any, error: RecordError) -> None:
    """Raise the error of a record that cannot be written."""
    raise error


class RecordWriter:
    """Writes the records of one stream; see ``Output.records``."""

    def __init__(self, write: Callable[[bytes], None], stream: str, version: int | None, refuse: Refuse) -> None:
        self._write = write
        self._stream = stream
        self._refuse = refuse
        name = _encoder.encode(stream)
        self._head = b'{"type":"RECORD","stream":%b,"record":' % name
        self._tail = b"}\n" if version is None else b',"version":%d}\n' % version

    def __call__(self, record: dict[str, Any]) -> bool:
        """Write a record. Return False if it could not be written and was passed to ``refuse``."""
        try:
            line = _encoder.encode(record)
        except (TypeError, ValueError, RecursionError, ArithmeticError) as error:
            self._refuse(record, RecordError(self._stream, unwritable(error)))
            return False
        self._write(self._head + line + self._tail)
        return True

    def page(self, records: Sequence[dict[str, Any]]) -> int:
        """Write several records, faster than one by one. Return the number of written ones."""
        head, tail = self._head, self._tail
        encode = _encoder.encode
        try:
            self._write(b"".join([head + encode(record) + tail for record in records]))
        except (TypeError, ValueError, RecursionError, ArithmeticError):
            return sum(map(self, records))  # find the one that fails
        return len(records)


_PIECE = 64 * 1024
_SECONDS = 1.0


class Output:
    """Writes messages to stdout, buffered until ``flush``. A STATE flushes.

    Several threads can write: each line is written whole, in order of the calls. Within ``in_order``, the buffer is
    also flushed each second, and LOG messages of the logger's output ``singer`` keep their place.

    Args:
        state_file: a file that receives each state's value atomically, after all earlier messages and before its STATE.
        watch: called with encoded messages before they are written.
    """

    def __init__(
        self, state_file: str | os.PathLike[str] | None = None, watch: Callable[[bytes], None] | None = None
    ) -> None:
        self._buffer = bytearray()
        self._state_file = state_file
        self._is_flushing = False
        self._failure: OutputError | None = None
        self._room = _PIECE
        self._watch = watch

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Write LOG messages in order among the others, and flush each second, while the context is open.

        Raises:
            OutputError: at the end, if the buffer cannot be written.
        """
        is_over = threading.Event()

        def keep_flushing() -> None:
            while not is_over.wait(_SECONDS):
                try:
                    self.flush()
                except OutputError:  # the next write raises it
                    return

        flusher = threading.Thread(target=keep_flushing, name="balog-tap-output", daemon=True)
        with hold_stdout(self._write_line_of_another):
            with signals_for_main_thread():
                flusher.start()
            try:
                yield
            except BaseException:
                with suppress(OutputError):  # the original error matters more
                    self.flush()
                raise
            finally:
                is_over.set()
            self.flush()

    def schema(self, stream: str, schema: dict[str, Any], keys: list[str], bookmarks: list[str]) -> None:
        """Write a SCHEMA."""
        self._message(
            {
                "type": "SCHEMA",
                "stream": stream,
                "schema": schema,
                "key_properties": keys,
                **({"bookmark_properties": bookmarks} if bookmarks else {}),
            }
        )

    def records(self, stream: str, version: int | None = None, *, refuse: Refuse = raise_refusal) -> RecordWriter:
        """Return the writer of a stream's records. Call it for each record or for each page.

        Args:
            stream: the stream's name in messages.
            version: the version of a full table.
            refuse: receives each record that JSON cannot represent, and the error; by default it raises the error.
        """
        return RecordWriter(self.write, stream, version, refuse)

    def activate_version(self, stream: str, version: int) -> None:
        """Write an ACTIVATE_VERSION."""
        self._message({"type": "ACTIVATE_VERSION", "stream": stream, "version": version})

    def state(self, value: dict[str, Any]) -> None:
        """Write a STATE and flush.

        Raises:
            OutputError: stdout or the state file cannot be written.
        """
        if self._state_file is not None:
            from balog.common.storage.base import StorageError
            from balog.common.storage.local import LocalStorage

            self.flush()  # the file must not be ahead of stdout
            try:
                LocalStorage(os.fspath(self._state_file)).write(_encoder.encode(value) + b"\n")
            except StorageError as error:
                raise OutputError(f"the state's file: {error}") from None
        self._message({"type": "STATE", "value": value})
        self.flush()

    def write(self, lines: bytes) -> None:
        """Write encoded messages, each with its newline.

        Raises:
            OutputError: see ``flush``.
        """
        if self._watch is not None:
            self._watch(lines)
        # One call, so that no thread and no signal handler sees half a line.
        self._buffer.extend(lines)
        if len(self._buffer) >= self._room:
            self.flush()

    def flush(self) -> None:
        """Write the buffer to stdout.

        Raises:
            OutputError: the reader of stdout has closed it, or stdout cannot be written.
        """
        if self._failure is not None:
            self._buffer.clear()
            raise self._failure
        stream = data_stream()
        with lock(stream):
            if self._is_flushing:  # a signal handler interrupted a write, which will write these lines, too
                return
            self._is_flushing = True
            try:
                while self._buffer:
                    piece = bytes(self._buffer)
                    del self._buffer[: len(piece)]
                    write_line(stream, piece)
            except OSError as error:
                self._failure = OutputError(why_unwritten(error))
                self._room = 0  # the next write raises it, not only the one that fills the buffer
                raise self._failure from None
            finally:
                self._is_flushing = False

    def _write_line_of_another(self, line: bytes) -> None:
        if self._failure is None:
            self._buffer.extend(line)
            self.flush()

    def _message(self, message: dict[str, Any]) -> None:
        self.write(_encoder.encode(message) + b"\n")


def why_unwritten(error: OSError) -> str:
    """Return why stdout could not be written, as a clause."""
    if error.errno == errno.EPIPE:
        return "stdout: its reader has closed it; the messages of the target say why"
    return f"stdout: cannot be written: {error.strerror or error}"
