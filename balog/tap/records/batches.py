"""BATCH: a stream's records in files, and messages with their URLs, by default in the Meltano SDK's form."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from balog.common.config.problems import problems
from balog.common.errors import ConfigError, MissingExtraError, split_refusal
from balog.common.storage import StorageError, is_url, open_storage
from balog.common.storage.base import Options
from balog.singer.batch.columns import Shape
from balog.singer.batch.csv_rows import CsvOptions
from balog.singer.batch.dialects import BatchError, BatchManifest, Dialect, write_batch
from balog.singer.batch.files import suffix, writer
from balog.singer.batch.rows import DoesNotFit, RowWriter
from balog.tap.errors import OutputError, RecordError, TapConfigProblems
from balog.tap.records.plain import unwritable

_encoder = msgspec.json.Encoder(decimal_format="number")


class Encoding(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The format of files; Parquet has its own compression."""

    format: Literal["jsonl", "csv", "parquet"] = "jsonl"
    compression: Literal["none", "gzip", "zstd"] = "gzip"


class BatchStorage(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The folder or URL of the files."""

    root: Annotated[str, Meta(min_length=1, description="A folder or a URL: file:///PATH, s3://BUCKET/PATH.")]
    prefix: Annotated[str, Meta(description="What the files' names begin with.", pattern=r"^[^/\x00-\x1f]*$")] = ""
    options: Options = {}


class TapBatchConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """``batch_config`` of a tap's config: the Meltano SDK's settings, and balog's own ``dialect``."""

    encoding: Encoding = Encoding()
    storage: BatchStorage
    batch_size: Annotated[int, Meta(ge=1, description="Rows of a file, at most.")] = 10_000
    dialect: Dialect = "sdk"


def read_batch_config(block: Any, path: str = "$.batch_config", source: str = "") -> TapBatchConfig:
    """Read the block ``batch_config`` of a config.

    Raises:
        TapConfigProblems: the block is invalid; each problem has ``source`` and its path.
        ConfigError: the storage cannot be written to.
        MissingExtraError: the package for the storage is not installed.
    """
    try:
        config = msgspec.convert(block, TapBatchConfig)
    except msgspec.ValidationError as error:
        reason, inner = split_refusal(error)
        errors = problems(block, TapBatchConfig) or [ConfigError(reason, path=inner)]
        raise TapConfigProblems(
            [ConfigError(each.reason, source, path + each.path.removeprefix("$")) for each in errors]
        ) from None
    open_storage(config.storage.root, config.storage.options, f"{path}.storage.root").close()
    return config


@dataclass(eq=False)
class BatchFiles:
    """Writes the records of one stream to files, and a BATCH message for each stored file.

    A file is uploaded whole, with a unique name, when it has ``batch_size`` rows or when ``finish`` is called.

    Args:
        write: receives the lines of messages.
        stream: the stream's name in messages.
        config: see ``TapBatchConfig``.
        schema: returns the schema of the records, from which CSV and Parquet derive their columns; called once.
        refuse: receives a record that the format cannot store, and the error.
    """

    write: Callable[[bytes], None]
    stream: str
    config: TapBatchConfig
    schema: Callable[[], dict[str, Any]]
    refuse: Callable[[Any, RecordError], None]
    _shape: Shape | None = None
    _file: IO[bytes] | None = None
    _rows: RowWriter | None = None

    def __post_init__(self) -> None:
        storage = self.config.storage
        self._storage = open_storage(storage.root, storage.options, "$.batch_config.storage.root")

    def __call__(self, record: dict[str, Any]) -> bool:
        """See ``Writer``.

        Raises:
            OutputError: a file cannot be written or uploaded.
        """
        try:
            row = _encoder.encode(record)
            self._put(row)
        except (TypeError, ValueError, RecursionError, ArithmeticError) as error:
            self.refuse(record, RecordError(self.stream, unwritable(error)))
            return False
        except BatchError as error:
            self.refuse(record, RecordError(self.stream, f"does not go into {self.config.encoding.format}: {error}"))
            return False
        except OSError as error:
            raise OutputError(f"a file of BATCH: {error.strerror or error}") from None
        if self._rows is not None and self._rows.count >= self.config.batch_size:
            self.finish()
        return True

    def page(self, records: Iterable[dict[str, Any]]) -> int:
        """See ``Writer``."""
        return sum(map(self, records))

    def finish(self) -> None:
        """Upload the current file durably and write its BATCH message; do nothing without one.

        Raises:
            OutputError: the file cannot be uploaded.
        """
        if self._file is None or self._rows is None:
            return
        file, rows = self._file, self._rows
        self._file = self._rows = None
        encoding, storage = self.config.encoding, self.config.storage
        name = f"{storage.prefix}{self._stem}-{uuid.uuid4().hex}{suffix(encoding.format, encoding.compression)}"
        try:
            rows.finish()
            file.flush()
            self._storage.upload(Path(file.name), name)
        except OSError as error:
            raise OutputError(f"a file of BATCH: {error.strerror or error}") from None
        except StorageError as error:
            raise OutputError(f"a file of BATCH: {error}") from None
        finally:
            with suppress(OSError):
                file.close()
        root = storage.root.rstrip("/")
        batch = BatchManifest(
            stream=self.stream,
            files=[f"{root if is_url(root) else Path(root).resolve()}/{name}"],
            format=encoding.format,
            compression=encoding.compression,
            size=rows.count,
            is_exact=True,
        )
        for line in write_batch(batch, self.config.dialect):
            self.write(line)

    def close(self) -> None:
        """Close the storage and discard the current file."""
        if self._file is not None:
            self._file.close()
        self._file = self._rows = None
        self._storage.close()

    @property
    def _stem(self) -> str:
        return "".join(char if char.isalnum() or char in "-_." else "_" for char in self.stream)[:100]

    def _put(self, row: bytes) -> None:
        try:
            self._row_writer().write(row)
        except DoesNotFit:  # the columns of the next file include it
            self.finish()
            self._row_writer().write(row)

    def _row_writer(self) -> RowWriter:
        if self._rows is None:
            encoding = self.config.encoding
            if self._shape is None:
                self._shape = Shape(self.schema())
            self._file = tempfile.NamedTemporaryFile(prefix="balog-tap-", suffix=".part")  # noqa: SIM115
            try:
                self._rows = writer(self._file, encoding.format, encoding.compression, CsvOptions(), self._shape)
            except MissingExtraError:
                self._file.close()
                self._file = None
                raise
        return self._rows
