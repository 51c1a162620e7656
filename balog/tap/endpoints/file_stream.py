"""The stream of files that match a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple

from balog.common.storage import Storage, open_storage
from balog.tap.bookmarks.times import rank
from balog.tap.errors import SourceError, TapError
from balog.tap.patterns.file_formats import FORMATS, BadRow, ReadOptions, read_rows
from balog.tap.schema import schema_of
from balog.tap.schema.types import date_time, integer, string
from balog.tap.streams import Records, Stream
from balog.tap.streams.context import Context
from balog.tap.streams.settings import INFERRED, Checks

FILE, LINE, MODIFIED = "_sdc_source_file", "_sdc_source_lineno", "_sdc_source_modified"
_ORIGIN = frozenset({FILE, LINE, MODIFIED})
MAX_FILES = 100_000
"""The maximum number of files of a stream."""

_PAGE = 1_000
_KEPT = "files"


class _FoundFile(NamedTuple):
    modified: str
    name: str
    size: int


class FileStream(Stream):
    """The records of the files below a folder whose names match a pattern.

    Each record has its file, its number in it, and the time when the file was written, which is the replication key.
    The first two are the key, if none is declared. A file is read as a whole when it was written after the bookmark;
    of files with the bookmark's time, those that have changed since. After each file the state is written.

    Attributes:
        folder: a path, or a URL such as ``s3://bucket/folder``.
        pattern: of names relative to the folder; ``*`` also matches ``/``.
        storage_options: see ``balog.common.storage.open_storage``.
        format: csv, tsv, jsonl, json, parquet or excel; by default that of each file's name.
        delimiter: of CSV.
        encoding: of CSV.
        sheet: of Excel; by default the first one.
        max_bytes: the maximum size of a file when it is decompressed.
    """

    own_settings: ClassVar[Checks] = {
        "folder": (lambda value: isinstance(value, str) and bool(value), "a path or a URL"),
        "pattern": (lambda value: isinstance(value, str) and bool(value), "a pattern, such as orders-*.csv"),
        "storage_options": (lambda value: isinstance(value, Mapping), "options by name"),
        "format": (lambda value: value in FORMATS, " or ".join(FORMATS)),
        "delimiter": (lambda value: isinstance(value, str) and len(value) == 1, "one character"),
        "encoding": (lambda value: isinstance(value, str), "the name of an encoding"),
        "sheet": (lambda value: isinstance(value, str), "the name of a sheet"),
        "max_bytes": (lambda value: type(value) is int and value > 0, "a number of bytes"),
    }
    folder: str = ""
    pattern: str = "*"
    storage_options: Mapping[str, Any] = {}
    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8-sig"
    sheet: str | None = None
    max_bytes: int = ReadOptions.max_bytes
    schema = INFERRED
    key_properties = [FILE, LINE]  # noqa: RUF012
    replication_key = MODIFIED

    def __init__(self, name: str = "", **settings: Any) -> None:
        if settings.get("replication_method") == "FULL_TABLE":
            settings.setdefault("replication_key", None)
        super().__init__(name, **settings)
        if not self.folder:
            raise TapError(f"{self.title}: has no folder; set folder= to a path or a URL")
        if self.schema != INFERRED:
            self.schema = _with_origin(self.schema)

    def records(self, context: Context) -> Records:
        """Yield the records of files, in pages, oldest files first."""
        storage = open_storage(self.folder, self.storage_options, "folder")
        try:
            if (context.entry.replication_method or self.method) == "FULL_TABLE":
                with context.full_table():
                    for file in self._files(storage):
                        yield from self._pages(storage, file, context)
                return
            since, kept = context.bookmark, context.kept(_KEPT) or {}
            for file in self._files(storage):
                is_read = kept.get(file.name) == [file.modified, file.size]
                if is_read or (since is not None and rank(file.modified) < rank(since)):
                    continue
                yield from self._pages(storage, file, context)
                kept = {name: seen for name, seen in kept.items() if seen[0] == file.modified}
                kept[file.name] = [file.modified, file.size]
                context.keep(_KEPT, kept)
                context.checkpoint(file.modified)
        finally:
            storage.close()

    def _files(self, storage: Storage) -> list[_FoundFile]:
        files: list[_FoundFile] = []
        for name, size, modified in _listed(storage):
            if fnmatchcase(name, self.pattern):
                if len(files) >= MAX_FILES:
                    raise SourceError(f"more than {MAX_FILES} files match {self.pattern}; declare several streams")
                if not modified:
                    raise SourceError(f"{self.folder}: does not say when files were written; use FULL_TABLE")
                text = datetime.fromtimestamp(modified, timezone.utc).isoformat(timespec="microseconds")
                files.append(_FoundFile(text.replace("+00:00", "Z"), name, size))
        return sorted(files)

    def _pages(self, storage: Storage, file: _FoundFile, context: Context) -> Iterator[list[dict[str, Any]]]:
        options = ReadOptions(self.format, self.delimiter, self.encoding, self.sheet, self.max_bytes)
        page: list[dict[str, Any]] = []
        with storage.open(file.name) as opened:
            for number, row in read_rows(opened, file.name, options):
                if number == 1 and not isinstance(row, BadRow) and (own := _ORIGIN & row.keys()):
                    context.log.warning(f"{file.name} has {', '.join(sorted(own))}, which the stream replaces")
                if isinstance(row, BadRow):
                    raw = {"row": row.raw, FILE: file.name, LINE: number}
                    context.quarantine(raw, f"{file.name}: row {number}: {row.reason}")
                    continue
                page.append({**row, FILE: file.name, LINE: number, MODIFIED: file.modified})
                if len(page) >= _PAGE:
                    yield page
                    page = []
        if page:
            yield page


def _listed(storage: Storage) -> Iterator[tuple[str, int, float]]:
    """Yield the name, size and time of each file."""
    entries = getattr(storage, "entries", None)
    if entries is None:  # on local disk
        for name, size in storage.files():
            modified = storage.modified(name)
            yield name, size, modified.timestamp() if modified else 0.0
        return
    files = entries()
    if files is None:
        raise SourceError(f"{storage.url}: there is no such folder")
    for name, size, modified in files:
        if not any(part.startswith((".", "_")) for part in name.split("/")):
            yield name, size, modified


def _with_origin(source: Any) -> Any:
    """Return the source of a schema, with the properties of a record's origin."""
    origin = {FILE: string(null=False), LINE: integer(null=False), MODIFIED: date_time(null=False)}

    def read_schema(client: Any, stream: str) -> dict[str, Any]:
        schema = schema_of(source, client, stream)
        return {**schema, "properties": {**schema.get("properties", {}), **origin}}

    return read_schema
