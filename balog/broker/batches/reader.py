"""Check BATCH messages, translate their dialects, or read them into RECORDs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from balog.broker.batches.config import BatchConfig
from balog.broker.batches.locations import Places
from balog.broker.editor import Editor, Line, PipeError
from balog.broker.quarantine import Quarantine, refuse
from balog.broker.records.json_members import UnreadableError, check_message
from balog.common.errors import MissingExtraError
from balog.singer.batch.compression import Limits
from balog.singer.batch.dialects import (
    BatchError,
    BatchManifest,
    find_credentials,
    read_batch,
    shown,
    without_credentials,
    write_batch,
)
from balog.singer.batch.files import read_rows

if TYPE_CHECKING:
    from balog.broker.records.editor import RecordEditor

BEGIN, END, ABORT = "BATCH BEGIN", "BATCH END", "BATCH ABORT"
"""The marks around the rows of a rewritten BATCH, which the writer removes. BEGIN's line is the BATCH."""


class BatchReader(Editor):
    """See ``Editor``. Precedes the editor of records.

    A BATCH whose stream has record rules never passes with its rows as they are: they become RECORDs, which the rules
    see, and files again when ``to`` is not ``records``.

    Args:
        config: see ``BatchConfig``; None passes every BATCH except those of streams with record rules.
        records: the editor of records, if there is one: it knows which streams have rules.
        quarantine: where a BATCH goes that must not go on; without one it ends the stream.
        say: called with one line for the user.

    Raises:
        ConfigError: a place that is not valid.
    """

    is_strict = False
    types = frozenset({"BATCH", "SCHEMA"})
    streams: frozenset[str] | None = frozenset()

    def __init__(
        self,
        config: BatchConfig | None,
        records: RecordEditor | None,
        quarantine: Quarantine | None,
        say: Callable[[str], None],
    ) -> None:
        self._config = config or BatchConfig()
        self._records_editor = records
        self._quarantine = quarantine
        self._say = say
        self._places = Places(self._config)
        self._schemas: dict[str, Any] = {}

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        """See ``Editor``."""
        if kind == "SCHEMA":  # the record editor reports an invalid one; the BATCH has no schema then
            stream, schema = stream_of(line)
            if stream is not None:
                self._schemas[stream] = schema
            return None
        if self._records_editor is not None:
            try:
                check_message(line)
            except UnreadableError as error:
                return self._refuse("?", f"cannot be read: {error}", line)
        if path := find_credentials(line):
            return self._refuse("?", f"has credentials in it, at {path}; only pre-signed URLs may be", line)
        try:
            batch = read_batch(line)
        except BatchError as error:
            return self._refuse("?", f"can't be read: {error}", line)
        if len(set(batch.files)) != len(batch.files):
            return self._refuse(batch.stream, "names a file twice", line)
        if self._config.is_for(batch.stream) and self._config.to == "records":
            return self._read(batch, line)
        change = self._change_of(batch)
        if change is None:
            return self._in_dialect(batch)
        if self._config.location is None:
            return self._refuse(batch.stream, f"{change}, and there is no batch.location for new files", line)
        return self._rewrite(batch, line)

    def _change_of(self, batch: BatchManifest) -> str | None:
        """Return why a BATCH's files must be rewritten; None if they can stay."""
        if self._records_editor is not None and self._records_editor.rules_for(batch.stream) is not None:
            return "would go on past the stream's record rules"
        config = self._config
        if not config.is_for(batch.stream):
            return None
        if config.format not in (None, batch.format):
            return f"is {batch.format} and has to be {config.format}"
        if batch.format != "parquet" and config.compression not in (None, batch.compression):
            return f"is not said to be compressed as {config.compression}, and has to be"
        if batch.options and (config.dialect or batch.dialect) != "proposal":
            return "has options of its format, which other dialects can't say"
        return None

    def _in_dialect(self, batch: BatchManifest) -> Iterable[Line] | None:
        dialect = self._config.dialect if self._config.is_for(batch.stream) else None
        if dialect is None or dialect == batch.dialect:
            return None
        return [("BATCH", line) for line in write_batch(batch, dialect)]

    def _read(self, batch: BatchManifest, line: bytes) -> Iterator[Line]:
        """Yield a BATCH's rows as RECORDs. Rows before an error have passed already."""
        count = 0
        try:
            for record in self._records(batch):
                yield "RECORD", record
                count += 1
        except BatchError as error:
            gone = f"; {count} of its rows have gone on" if count else ""
            yield from self._refuse(batch.stream, f"{error}{gone}", line)
        except MissingExtraError as error:
            raise PipeError(str(error)) from None

    def _rewrite(self, batch: BatchManifest, line: bytes) -> Iterator[Line]:
        """Yield a BATCH's rows for the writer to rewrite into files; all of them or none."""
        yield BEGIN, line
        try:
            for record in self._records(batch):
                yield "RECORD", record
        except BatchError as error:
            yield ABORT, b""
            yield from self._refuse(batch.stream, str(error), line)
        except MissingExtraError as error:
            raise PipeError(str(error)) from None
        else:
            yield END, b""

    def _records(self, batch: BatchManifest) -> Iterator[bytes]:
        head = b'{"type":"RECORD","stream":%b,"record":' % msgspec.json.encode(batch.stream)
        tail = b"" if batch.version is None else b',"version":%d' % batch.version
        if batch.time_extracted is not None:
            tail += b',"time_extracted":' + msgspec.json.encode(batch.time_extracted)
        tail += b"}\n"
        for row in self._rows(batch):
            yield head + row + tail

    def _rows(self, batch: BatchManifest) -> Iterator[bytes]:
        """Yield the rows of all files, and check each file's count against the message."""
        schema = self._schemas.get(batch.stream)
        limit = batch.size
        for file in batch.files:
            count = 0
            try:
                with self._places.open(file) as opened:
                    for row in read_rows(opened, batch, schema, Limits()):
                        count += 1
                        if limit is not None and count > limit:
                            raise BatchError(f"has more than the {limit} rows that its BATCH says")
                        yield row
                if limit is not None:
                    _check_count(batch, count, limit)
            except BatchError as error:
                raise BatchError(f"names the file {shown(file)}, which {error}") from None

    def _refuse(self, stream: str, reason: str, line: bytes) -> Iterable[Line]:
        """Reject a BATCH.

        Raises:
            PipeError: there is no quarantine for it.
        """
        whose = "a BATCH" if stream == "?" else f"a BATCH of stream {stream!r}"
        refuse(self._quarantine, f"{whose} {reason}", without_credentials(line))
        return ()


def stream_of(line: bytes) -> tuple[str | None, Any]:
    """Return a message's stream and schema."""
    try:
        message = msgspec.json.decode(line)
        stream = message.get("stream")
        return (stream if isinstance(stream, str) else None), message.get("schema")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
        return None, None


def _check_count(batch: BatchManifest, count: int, limit: int) -> None:
    if batch.is_exact and count < limit:
        raise BatchError(f"has {count} rows, and its BATCH says {limit}")
    if (
        batch.format == "jsonl" and limit and not count
    ):  # the proposal's size is an upper limit; nothing is no part of it
        raise BatchError(f"has no rows, and its BATCH says up to {limit}")
