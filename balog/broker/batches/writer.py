"""Write RECORDs to files, and BATCH messages that name them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import msgspec
from msgspec import Raw, Struct

from balog.broker.batches.config import BatchConfig
from balog.broker.batches.output_file import Location, NewFile
from balog.broker.batches.reader import ABORT, BEGIN, END, stream_of
from balog.broker.editor import Line, PipeError
from balog.broker.quarantine import Quarantine, refuse
from balog.common.errors import BalogError
from balog.common.storage import StorageError
from balog.singer.batch.columns import Shape
from balog.singer.batch.csv_rows import CsvOptions, csv_options
from balog.singer.batch.dialects import BatchError, BatchManifest, read_batch, write_batch
from balog.singer.batch.files import writer
from balog.singer.batch.rows import DoesNotFit, RowWriter

_MAX_OPEN_FILES = 16
MAX_AGE = 300.0
"""Seconds that a row waits at most for its file to be full."""

_PARQUET_CODECS = ("none", "gzip", "zstd", "snappy", "lz4", "brotli")


class _Record(Struct):
    stream: str
    record: Raw
    version: int | None = None
    time_extracted: str | None = None


_decode_record = msgspec.json.Decoder(_Record).decode


class _Form(Struct, frozen=True):
    """The format of a stream's files and of their BATCH messages."""

    like: BatchManifest
    csv: CsvOptions


class _Open(Struct):
    """A stream's unfinished file."""

    form: _Form
    file: NewFile
    version: int | None
    time_extracted: str | None


class BatchWriter:
    """See ``Editor``. Follows the editor of records.

    Rows of a stream are collected until their file is full, the stream's SCHEMA or ACTIVATE_VERSION comes, any STATE
    comes, they wait for too long, or the stream ends: a STATE never goes on before the rows that it counts. The files
    are the target's to remove, as with the Meltano SDK.

    Args:
        config: see ``BatchConfig``; one with a location.
        quarantine: where a row goes that its file can't hold; without one it ends the stream.
        say: called with one line for the user.

    Raises:
        ConfigError: a location that can't be written to.
    """

    is_strict = False

    def __init__(self, config: BatchConfig, quarantine: Quarantine | None, say: Callable[[str], None]) -> None:
        self._config = config
        self._quarantine = quarantine
        self._say = say
        self._location = Location(config)
        names = frozenset(config.streams)
        has_patterns = any(char in name for name in names for char in "*?[")
        self.types = frozenset({"RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH", BEGIN, END, ABORT})
        self.streams: frozenset[str] | None = frozenset()
        if config.collects:
            self.streams = None if has_patterns else names
        self._shapes: dict[str, Shape] = {}
        self._schemas: dict[str, Any] = {}
        self._open: dict[str, _Open] = {}
        self._state: bytes | None = None
        self._rewriting: BatchManifest | None = None
        self._waiting: list[Line] = []
        self._published: list[str] = []
        self._has_reported: set[tuple[str, str]] = set()

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        """See ``Editor``."""
        if self._rewriting is not None:
            return self._edit_rewritten(kind, line)
        if kind == "RECORD":
            return self._edit_record(line)
        if kind == BEGIN:
            self._rewriting = read_batch(line)
            return [*self._flush([self._rewriting.stream]), *self._free_state()]
        if not self._open and self._state is None and kind != "SCHEMA":
            return None
        if kind == "STATE":
            return self._edit_state(line)
        stream, schema = stream_of(line)
        flushed = [*self._flush([stream] if stream is not None else list(self._open)), *self._free_state()]
        if kind == "SCHEMA" and stream is not None:
            self._learn(stream, schema)
        return [*flushed, (kind, line)] if flushed else None

    def due(self) -> Iterable[Line]:
        """See ``Editor``."""
        oldest = time.monotonic() - MAX_AGE
        streams = [stream for stream, open in self._open.items() if open.file.begun < oldest]
        if not streams:
            return ()
        return [*self._flush(streams if self._state is None else list(self._open)), *self._free_state()]

    def end(self) -> Iterable[Line]:
        """See ``Editor``."""
        if self._rewriting is not None:  # the stream ended within a BATCH
            self._abort()
        return [*self._flush(list(self._open)), *self._free_state()]

    def _edit_state(self, line: bytes) -> Iterable[Line]:
        self._state = line  # it includes the STATE before it
        if sum(open.file.writer.count for open in self._open.values()) < self._config.min_records:
            return ()
        return [*self._flush(list(self._open)), *self._free_state()]

    def _free_state(self) -> list[Line]:
        """Return the waiting STATE, if no row before it is waiting."""
        if self._state is None or self._open:
            return []
        line, self._state = self._state, None
        return [("STATE", line)]

    def _edit_record(self, line: bytes) -> Iterable[Line] | None:
        record = _read_record(line)
        if record is None or not self._config.collects or not self._config.is_for(record.stream):
            return None
        form = self._form_of_records(record)
        if record.version is not None and form.like.dialect == "sdk":
            self._tell_of_version(record.stream)
            flushed = [*self._flush([record.stream]), *self._free_state()]
            return [*flushed, ("RECORD", line)] if flushed else None
        return [*self._collect(record, line, form), *self._free_state()]

    def _edit_rewritten(self, kind: str, line: bytes) -> Iterable[Line]:
        """Keep the messages made from a BATCH until its last row is read."""
        batch = self._rewriting
        if kind == ABORT or batch is None:
            return self._abort()
        if kind == END:
            self._waiting += self._flush([batch.stream])
            lines, self._waiting, self._rewriting, self._published = self._waiting, [], None, []
            return lines
        record = _read_record(line) if kind == "RECORD" else None
        if record is not None:
            self._waiting += self._collect(record, line, self._form_of_rewritten(batch))
        else:
            stream, schema = stream_of(line)
            self._waiting += [*self._flush([batch.stream]), (kind, line)]
            if kind == "SCHEMA" and stream is not None:
                self._learn(stream, schema)
        return ()

    def _abort(self) -> Iterable[Line]:
        """Drop the messages made from a BATCH, except those that do not carry its rows."""
        batch, self._rewriting = self._rewriting, None
        if batch is not None and (open := self._open.pop(batch.stream, None)) is not None:
            open.file.discard()
        for url in self._published:
            try:
                self._location.remove(url)
            except (OSError, StorageError) as error:
                self._say(f"a file of a BATCH that was refused is still there: {error}")
        lines = [line for line in self._waiting if line[0] != "BATCH"]
        self._waiting, self._published = [], []
        return lines

    def _learn(self, stream: str, schema: Any) -> None:
        if stream not in self._schemas or self._schemas[stream] != schema:
            self._schemas[stream] = schema
            self._shapes[stream] = Shape(schema)

    def _form_of_records(self, record: _Record) -> _Form:
        config = self._config
        return _Form(
            BatchManifest(
                stream=record.stream,
                files=[],
                dialect=config.dialect or "sdk",
                format=config.format or "jsonl",
                compression=config.compression or "gzip",
            ),
            CsvOptions(),
        )

    def _form_of_rewritten(self, batch: BatchManifest) -> _Form:
        """Return the format of a rewritten BATCH: the original one, with the config's settings for its stream."""
        config = self._config
        is_for = config.is_for(batch.stream)
        dialect = (config.dialect if is_for else None) or batch.dialect
        format = (config.format if is_for else None) or batch.format
        compression = (config.compression if is_for else None) or batch.compression or "none"
        if compression not in (_PARQUET_CODECS if format == "parquet" else ("none", "gzip", "zstd")):
            compression = "none"
        keeps_options = batch.format == format and dialect == "proposal" and batch.options
        like = msgspec.structs.replace(batch, files=[], dialect=dialect, format=format, compression=compression)
        return _Form(like, csv_options(batch.options) if keeps_options else CsvOptions())

    def _collect(self, record: _Record, line: bytes, form: _Form) -> list[Line]:
        """Write a row to its stream's file; return the messages of full files."""
        stream, row = record.stream, bytes(record.record)
        lines: list[Line] = []
        open = self._open.get(stream)
        if open is not None and open.version != record.version:
            lines += self._flush([stream])
        try:
            for _ in range(4):  # a column can be widened twice and others added, each time with a new file
                try:
                    open = self._open.get(stream)
                    if open is None:
                        lines += self._make_room()
                        open = self._open[stream] = self._begin(record, form)
                    open.file.writer.write(row)
                    break
                except DoesNotFit:
                    lines += self._flush([stream])
            else:
                raise BatchError("has a row that no file can hold")
        except BatchError as error:
            refuse(self._quarantine, f"a RECORD of stream {stream!r} does not go into a file: {error}", line)
        except (OSError, StorageError) as error:
            raise self._failed(stream, error) from None
        except BalogError as error:
            raise error if isinstance(error, PipeError) else PipeError(str(error)) from None
        self._tell_of_widened(stream)
        if open is not None and stream in self._open and self._is_full(open):
            lines += self._flush([stream])
        return lines

    def _is_full(self, open: _Open) -> bool:
        return open.file.writer.count >= self._config.max_records or open.file.writer.size >= self._config.max_bytes

    def _make_room(self) -> list[Line]:
        return self._flush([next(iter(self._open))]) if len(self._open) >= _MAX_OPEN_FILES else []

    def _begin(self, record: _Record, form: _Form) -> _Open:
        shape = self._shapes.setdefault(record.stream, Shape())
        like = form.like
        format, compression = like.format, like.compression or "none"

        def make(file: IO[bytes]) -> RowWriter:
            return writer(file, format, compression, form.csv, shape)

        file = self._location.begin(record.stream, format, compression, make)
        return _Open(form, file, record.version, record.time_extracted)

    def _flush(self, streams: list[str]) -> list[Line]:
        """Finish the files of some streams, and return the messages that name them."""
        lines: list[Line] = []
        for stream in streams:
            open = self._open.pop(stream, None)
            if open is None:
                continue
            if not open.file.writer.count:
                open.file.discard()
                continue
            try:
                url = open.file.finish()
            except (OSError, StorageError) as error:
                raise self._failed(stream, error) from None
            if self._rewriting is not None:
                self._published.append(url)
            lines += [("BATCH", line) for line in self._name(open, url)]
        return lines

    def _name(self, open: _Open, url: str) -> Iterator[bytes]:
        like = open.form.like
        batch = msgspec.structs.replace(
            like,
            files=[url],
            options=msgspec.to_builtins(open.form.csv) if like.format == "csv" else {},
            size=open.file.writer.count,
            is_exact=True,
            version=open.version,
            time_extracted=open.time_extracted,
        )
        return write_batch(batch, like.dialect)

    def _failed(self, stream: str, error: Exception) -> PipeError:
        reason = getattr(error, "strerror", None) or error
        return PipeError(f"a file for stream {stream!r} can't be written to {self._config.location}: {reason}")

    def _tell_of_version(self, stream: str) -> None:
        if (stream, "") not in self._has_reported:
            self._has_reported.add((stream, ""))
            self._say(
                f"stream {stream!r}: RECORDs with a version stay RECORDs: the SDK's targets don't know the version of "
                "rows in files, and delete them at its ACTIVATE_VERSION"
            )

    def _tell_of_widened(self, stream: str) -> None:
        shape = self._shapes.get(stream)
        for name, what in shape.widened.items() if shape is not None else ():
            if (stream, name) not in self._has_reported:
                self._has_reported.add((stream, name))
                kind = "plain text" if what == "text" else "JSON text"
                self._say(f"stream {stream!r}: a value of {name!r} is not of its SCHEMA's type; its files hold {kind}")


def _read_record(line: bytes) -> _Record | None:
    try:
        return _decode_record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
