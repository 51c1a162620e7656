"""Records of a downloaded file: CSV or JSON lines, also compressed by gzip, in bounded memory."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import msgspec

from balog.tap.errors import SourceError

FORMATS = ("csv", "jsonl")
_PAGE = 1000
_MAX_LINE = 64 << 20


def records_of(
    file: BinaryIO, format: str, *, delimiter: str = ",", texts: Collection[str] = ()
) -> Iterator[list[Any]]:
    """Yield the records of a file in pages.

    Args:
        file: at its start; decompressed if it begins as gzip does.
        format: ``csv``, with a header, or ``jsonl``.
        delimiter: between the fields of CSV.
        texts: names of fields of CSV whose empty value is a text; the others are null.

    Raises:
        SourceError: the file is damaged or not of this format, with the number of the line.
    """
    start = file.read(2)
    file.seek(0)
    opened: Any = gzip.GzipFile(fileobj=file) if start == b"\x1f\x8b" else file
    rows = _rows_of_csv(opened, delimiter, texts) if format == "csv" else _rows_of_lines(opened)
    page: list[Any] = []
    try:
        for row in rows:
            page.append(row)
            if len(page) >= _PAGE:
                yield page
                page = []
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise SourceError("the file is damaged: its compressed data are incomplete") from None
    if page:
        yield page


def _rows_of_lines(file: Any) -> Iterator[Any]:
    decode = msgspec.json.Decoder().decode
    number = 0
    while line := file.readline(_MAX_LINE):
        number += 1
        if not line.strip():
            continue
        try:
            record = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise SourceError(f"line {number} of the file is not JSON, or longer than {_MAX_LINE} bytes") from None
        if not isinstance(record, dict):
            raise SourceError(f"line {number} of the file is not a JSON object")
        yield record


def _rows_of_csv(file: Any, delimiter: str, texts: Collection[str]) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE))
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        names = next(reader, None)
        if names is None:
            return
        if len(set(names)) < len(names):
            raise SourceError("the header of the file names a column twice")
        nullable = [name not in texts for name in names]
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise SourceError(
                    f"line {reader.line_num} of the file has {len(row)} fields, and the header has {len(names)}"
                )
            fields = zip(names, row, nullable, strict=True)
            yield {name: None if is_nullable and not value else value for name, value, is_nullable in fields}
    except csv.Error as error:
        raise SourceError(f"line {reader.line_num} of the file is not CSV: {error}") from None
    except UnicodeDecodeError:
        raise SourceError(f"the file is not UTF-8, after line {reader.line_num}") from None
    finally:
        text.detach()  # the caller closes the file
