"""Read and write CSV (RFC 4180): a header, one row a record, values typed by the stream's SCHEMA.

Empty without quotes is null and ``""`` is the empty text, as PostgreSQL's COPY has it. The standard library's reader
can't tell the two apart before Python 3.13, so records are split here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import IO, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from balog.common.errors import split_refusal
from balog.singer.batch.columns import Column, Shape, columns_of
from balog.singer.batch.dialects import BatchError
from balog.singer.batch.rows import MAX_ROW_BYTES, DoesNotFit, RowWriter, fields_of, split_lines

_Char = Annotated[str, Meta(max_length=1, pattern=r"^[^\r\n]$")]
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_BOOLEANS = {"true": b"true", "t": b"true", "1": b"true", "false": b"false", "f": b"false", "0": b"false"}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode


class CsvOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The options of a CSV file, named as in the proposal's ``format.options``.

    Attributes:
        delimiter: between values.
        quote_char: around values that need it; doubled inside.
        escape_char: makes the next character literal, if the file has one.
        header: the first record names the columns; without it they are the SCHEMA's, in its order.
        null: what null looks like, without quotes.
    """

    delimiter: _Char = ","
    quote_char: _Char = '"'
    escape_char: _Char | None = None
    header: bool = True
    null: str = ""


def csv_options(options: Mapping[str, Any]) -> CsvOptions:
    """Read the options of a BATCH's format.

    Raises:
        BatchError: one that is not known, or not what it should be.
    """
    try:
        read = msgspec.convert(dict(options), CsvOptions)
    except msgspec.ValidationError as error:
        reason, path = split_refusal(error)
        known = ", ".join(CsvOptions.__struct_fields__)
        raise BatchError(f"the CSV options are not valid: {path}: {reason}; there are {known}") from None
    if read.escape_char == read.quote_char:  # the same as a doubled quote
        return msgspec.structs.replace(read, escape_char=None)
    special = [char for char in (read.delimiter, read.quote_char, read.escape_char) if char is not None]
    if len(set(special)) != len(special):
        raise BatchError("the CSV options delimiter, quote_char and escape_char have to be different characters")
    return read


class _Field(NamedTuple):
    text: str
    is_quoted: bool


_NOTHING = _Field("", False)


def read_csv(blocks: Iterable[bytes], options: CsvOptions, schema: Any) -> Iterator[bytes]:
    """Yield the rows of a file.

    A number keeps its digits where JSON allows them. A value that is not there is null where the SCHEMA allows it, the
    empty text in a column of text, and left out elsewhere. Where the SCHEMA says nothing of a column, its values are
    text.

    Raises:
        BatchError: a record that can't be split, has too many or too few values, or a value of another type; with the
            number of its line.
    """
    columns = columns_of(schema)
    writers: list[Callable[[_Field], bytes | None]] = []
    names: list[bytes] = []
    if not options.header:
        if not columns:
            raise BatchError("has no header, and the stream has no SCHEMA that names its columns")
        names, writers = _prepare(list(columns), columns, options)
    for number, fields in _records(blocks, options):
        if not names:
            header = [field.text for field in fields]
            if len(set(header)) != len(header):
                raise BatchError("its header names a column twice")
            if columns and not columns.keys() & set(header):
                raise BatchError("its header has none of the columns that the stream's SCHEMA names")
            names, writers = _prepare(header, columns, options)
            continue
        if len(names) != 1 and fields == [_NOTHING]:  # an empty line, which is a null in a file of one column
            continue
        if len(fields) != len(names):
            raise BatchError(f"line {number} has {len(fields)} values and there are {len(names)} columns")
        values = []
        for name, write, field in zip(names, writers, fields):
            try:
                value = write(field)
            except ValueError as error:
                raise BatchError(f"line {number}, column {name.decode()[:-1]}: {error}") from None
            if value is not None:
                values.append(name + value)
        yield b"{" + b",".join(values) + b"}"


def _prepare(
    header: Sequence[str], columns: Mapping[str, Column], options: CsvOptions
) -> tuple[list[bytes], list[Callable[[_Field], bytes | None]]]:
    names = [_encode(name) + b":" for name in header]
    return names, [_value_of(columns.get(name, Column(frozenset({"string"}))), options.null) for name in header]


def _records(blocks: Iterable[bytes], options: CsvOptions) -> Iterator[tuple[int, list[_Field]]]:
    """Yield each record with the number of its last line; a quoted value may span lines."""
    split = _splitter(options)
    quote, escaped = options.quote_char, _escaped(options)
    open_lines: list[str] = []
    quotes = size = 0
    number = 0
    for number, line in enumerate(split_lines(blocks), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BatchError(f"line {number} is not UTF-8") from None
        open_lines.append(text)
        quotes += (escaped.sub("", text) if escaped else text).count(quote)
        size += len(line)
        if quotes % 2:
            if size > MAX_ROW_BYTES:
                raise BatchError(f"has a record of more than {MAX_ROW_BYTES} bytes, to line {number}; a quote is open")
            continue
        record = "\n".join(open_lines).removesuffix("\r")
        open_lines, quotes, size = [], 0, 0
        try:
            yield number, split(record)
        except ValueError as error:
            raise BatchError(f"line {number}: {error}") from None
    if open_lines:
        raise BatchError(f"is cut off: a quote is open at its end, line {number}")


def _escaped(options: CsvOptions) -> re.Pattern[str] | None:
    return re.compile(re.escape(options.escape_char) + "(?s:.)") if options.escape_char else None


def _splitter(options: CsvOptions) -> Callable[[str], list[_Field]]:
    quote, delimiter = re.escape(options.quote_char), re.escape(options.delimiter)
    escape = re.escape(options.escape_char) if options.escape_char else ""
    special = rf"{quote}{quote}|{escape}(?s:.)" if escape else f"{quote}{quote}"
    in_quotes = rf"{quote}([^{quote}{escape}]*(?:(?:{special})[^{quote}{escape}]*)*){quote}"
    plain = rf"((?:[^{quote}{delimiter}{escape}]|{escape}(?s:.))*)" if escape else rf"([^{quote}{delimiter}]*)"
    field = re.compile(rf"(?:{in_quotes}|{plain})({delimiter}|\Z)")
    inside = re.compile(special)

    def unescape(text: str) -> str:
        return inside.sub(lambda match: match[0][1], text)

    def split(record: str) -> list[_Field]:
        if options.quote_char not in record and not (escape and options.escape_char in record):  # type: ignore[operator]
            return [_Field(text, False) for text in record.split(options.delimiter)]
        fields, position = [], 0
        while True:
            match = field.match(record, position)
            if match is None:
                raise ValueError("a quote stands inside a value; it would have to be doubled, and the value in quotes")
            if match[1] is not None:
                fields.append(_Field(unescape(match[1]), True))
            else:
                is_plain = not escape or match[2] == options.null
                fields.append(_Field(match[2] if is_plain else unescape(match[2]), False))
            position = match.end()
            if not match[3]:
                return fields

    return split


def _value_of(column: Column, null: str) -> Callable[[_Field], bytes | None]:
    """Return a function that converts a column's text to JSON, and raises ``ValueError`` for text of another type."""
    is_text = "string" in column.types or not column.types
    parsers = [parse for type, parse in _PARSERS.items() if type in column.types]
    types = " or ".join(sorted(column.types))

    def value(field: _Field) -> bytes | None:
        text, is_quoted = field
        if (text == null and not is_quoted) or (not text and not is_text):
            return b"null" if column.is_nullable else _encode(text) if is_text else None
        for parse in () if column.type == "string" else parsers:
            encoded = parse(text)
            if encoded is not None:
                return encoded
        if is_text:
            return _encode(text)
        raise ValueError(f"a value is no {types}, which the stream's SCHEMA says")

    return value


def _integer(text: str) -> bytes | None:
    if not _INTEGER.fullmatch(text):
        return None
    sign, digits = ("-" if text[0] == "-" else ""), text.lstrip("+-").lstrip("0") or "0"
    return (sign + digits).encode()


def _number(text: str) -> bytes | None:
    if _JSON_NUMBER.fullmatch(text):
        return text.encode()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return str(Decimal(text)).encode()
    except InvalidOperation:
        return None


def _nested(text: str) -> bytes | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return text.replace("\n", " ").replace("\r", " ").encode()


_PARSERS: dict[str, Callable[[str], bytes | None]] = {
    "integer": _integer,
    "number": _number,
    "boolean": lambda text: _BOOLEANS.get(text.lower()),
    "object": _nested,
    "array": _nested,
}


class CsvWriter(RowWriter):
    """See ``RowWriter``. Texts are quoted, nested values are quoted JSON, other values are unquoted."""

    def __init__(self, file: IO[bytes], compression: str, options: CsvOptions, shape: Shape) -> None:
        super().__init__(file, compression)
        self._options = options
        self._shape = shape
        self._columns: list[str] = []
        self._has_begun = False

    def _write(self, row: bytes) -> None:
        values = fields_of(row)
        if self._shape.learn(values) and self._has_begun:
            raise DoesNotFit
        self._begin()
        self._file.write(self._join([self._text(values.get(name)) for name in self._columns]))

    def _write_rest(self) -> None:
        self._begin()

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._columns = list(self._shape.columns)
        self._has_begun = True
        if self._options.header and self._columns:
            self._file.write(self._join([self._quote(name) for name in self._columns]))

    def _join(self, texts: list[str]) -> bytes:
        try:
            return (self._options.delimiter.join(texts) + "\n").encode()
        except UnicodeEncodeError:
            raise BatchError("a row has half a surrogate pair in it, which is no UTF-8 text") from None

    def _text(self, value: bytes | None) -> str:
        if value is None or value == b"null":
            return self._options.null
        if value[0] == 0x22:
            return self._quote(_text_of(value))
        text = value.decode()
        is_bare = value[0] not in b"{[" and self._options.delimiter not in text and text != self._options.null
        return text if is_bare else self._quote(text)

    def _quote(self, text: str) -> str:
        quote, escape = self._options.quote_char, self._options.escape_char
        if escape:
            text = text.replace(escape, escape + escape)
        return quote + text.replace(quote, quote + quote) + quote


def _text_of(value: bytes) -> str:
    try:
        return _decode_text(value)
    except msgspec.DecodeError:
        raise BatchError("a row has half a surrogate pair in it, which is no UTF-8 text") from None
