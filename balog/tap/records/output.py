"""Singer messages on stdout, whole lines in their order, written in large pieces."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from balog.outputs.streams import data_stream, hold_stdout, lock, write_line
from balog.signals import signals_for_main_thread
from balog.tap.errors import OutputError
from balog.tap.records.record_writer import RecordWriter, Refuse, Writer, raise_refusal

if TYPE_CHECKING:
    from balog.tap.records.batches import BatchFiles, TapBatchConfig

__all__ = ["Output", "why_unwritten"]

_PIECE = 64 * 1024
_SECONDS = 1.0
_encoder = msgspec.json.Encoder(decimal_format="number")


class Output:
    """Writes messages to stdout. What was written is at the reader's after ``flush``; a STATE flushes.

    May be written to by several threads: each line goes out whole, in the order in which they came. Within
    ``in_order``, what waits is written each second too, and LOG messages of the logger's output ``singer`` keep their
    place.

    Args:
        state_file: each state's value is written there, whole or not at all, before its message goes out, and after all
            that came before it.

    Attributes:
        batch: where records go to files instead; set before ``records`` is asked for what writes them.
    """

    def __init__(self, state_file: str | os.PathLike[str] | None = None) -> None:
        self._buffer = bytearray()
        self._state_file = state_file
        self._is_flushing = False
        self._failure: OutputError | None = None
        self._room = _PIECE
        self.batch: TapBatchConfig | None = None
        self._batches: list[BatchFiles] = []
        self._schemas: dict[str, dict[str, Any]] = {}

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Let LOG messages go out in their place among the rest, and what waits each second, until the end of this.

        Raises:
            OutputError: at the end, if what waited cannot be written.
        """
        is_over = threading.Event()

        def keep_flushing() -> None:
            while not is_over.wait(_SECONDS):
                try:
                    self.flush()
                except OutputError:  # who writes next is told
                    return

        flusher = threading.Thread(target=keep_flushing, name="balog-tap-output", daemon=True)
        with hold_stdout(self._write_line_of_another):
            with signals_for_main_thread():
                flusher.start()
            try:
                yield
            except BaseException:
                with suppress(OutputError):  # what ended the run says more
                    self.flush()
                raise
            finally:
                is_over.set()
                for batches in self._batches:
                    batches.close()
            self.flush()

    def schema(self, stream: str, schema: dict[str, Any], keys: list[str], bookmarks: list[str]) -> None:
        """Write a SCHEMA."""
        self._finish_batches()
        self._schemas[stream] = schema
        self._message(
            {
                "type": "SCHEMA",
                "stream": stream,
                "schema": schema,
                "key_properties": keys,
                **({"bookmark_properties": bookmarks} if bookmarks else {}),
            }
        )

    def records(
        self, stream: str, version: int | None = None, *, has_time: bool = False, refuse: Refuse | None = None
    ) -> Writer:
        """Return what writes the records of a stream: made once, called for each, or for each page.

        Where ``batch`` is set, records go to files, and BATCH messages name them; a STATE comes after the files of all
        records before it.
        Those of a version never do: targets (the Meltano SDK's) don't know the version of rows in files, and delete
        them all at its ACTIVATE_VERSION.

        Args:
            stream: its name in messages.
            version: of a full table.
            has_time: each record says when it was written, ``time_extracted``; those in files do not.
            refuse: is given a record that JSON can't write and what is wrong; raises that when None.
        """
        refuse = refuse or raise_refusal
        if self.batch is None or version is not None:
            return RecordWriter(self.write, stream, version, has_time, refuse)
        from balog.tap.records.batches import BatchFiles

        made = BatchFiles(self.write, stream, self.batch, lambda: self._schemas.get(stream, {}), refuse)
        self._batches.append(made)
        return made

    def activate_version(self, stream: str, version: int) -> None:
        """Write an ACTIVATE_VERSION."""
        self._finish_batches()
        self._message({"type": "ACTIVATE_VERSION", "stream": stream, "version": version})

    def state(self, value: dict[str, Any]) -> None:
        """Write a STATE, and all that was written before it.

        Raises:
            OutputError: stdout, or the state's file, can't be written to.
        """
        self._finish_batches()
        if self._state_file is not None:
            from balog.storage.base import StorageError
            from balog.storage.local import LocalStorage

            self.flush()  # the file must not say more than went out
            try:
                LocalStorage(os.fspath(self._state_file)).write(_encoder.encode(value) + b"\n")
            except StorageError as error:
                raise OutputError(f"the state's file: {error}") from None
        self._message({"type": "STATE", "value": value})
        self.flush()

    def write(self, lines: bytes) -> None:
        """Write messages as they are, each with its newline.

        Raises:
            OutputError: see ``flush``.
        """
        # One call: no thread and no signal's handler finds half a line here.
        self._buffer.extend(lines)
        if len(self._buffer) >= self._room:
            self.flush()

    def flush(self) -> None:
        """Hand over what was written.

        Raises:
            OutputError: nobody reads stdout any more, or it can't be written to.
        """
        if self._failure is not None:
            self._buffer.clear()
            raise self._failure
        stream = data_stream()
        with lock(stream):
            if self._is_flushing:  # a signal's handler, out of the middle of a write: its lines come after that
                return
            self._is_flushing = True
            try:
                while self._buffer:
                    piece = bytes(self._buffer)
                    del self._buffer[: len(piece)]
                    write_line(stream, piece)
            except OSError as error:
                self._failure = OutputError(why_unwritten(error))
                self._room = 0  # who writes next is told, and not who fills a piece
                raise self._failure from None
            finally:
                self._is_flushing = False

    def _write_line_of_another(self, line: bytes) -> None:
        if self._failure is None:
            self._buffer.extend(line)
            self.flush()

    def _finish_batches(self) -> None:
        for batches in self._batches:
            batches.finish()

    def _message(self, message: dict[str, Any]) -> None:
        self.write(_encoder.encode(message) + b"\n")


def why_unwritten(error: OSError) -> str:
    """Return why stdout did not take what was written."""
    if error.errno == errno.EPIPE:
        return "stdout: nobody reads it any more; the target has ended, and its own messages say why"
    return f"stdout: cannot be written: {error.strerror or error}"
