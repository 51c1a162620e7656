"""Parse and write BATCH messages in three dialects: the proposal's, the Meltano SDK's and PipelineWise's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec
from msgspec import Struct

from balog.common.errors import BalogError, split_refusal
from balog.common.text import printable

Dialect = Literal["proposal", "sdk", "pipelinewise"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


class BatchError(BalogError):
    """A BATCH message or one of its files is invalid. The error's text has no credentials."""


class BatchManifest(Struct, kw_only=True):
    """The content of a BATCH message of any dialect.

    Attributes:
        format: ``jsonl``, ``csv``, ``parquet``, or another name as it came.
        compression: ``none``, ``gzip``, ``zstd``, or another name as it came; None where the message does not say.
        options: of the format, as the proposal has them.
        size: rows of each file, at most; or just as many, where ``is_exact``, as PipelineWise's dialect means it.
        version: of the rows, as in RECORD; the SDK's dialect has it.
        rest: keys that no dialect knows.
    """

    stream: str
    files: list[str]
    dialect: Dialect = "proposal"
    format: str = "jsonl"
    compression: str | None = None
    options: dict[str, Any] = {}
    size: int | None = None
    is_exact: bool = False
    time_extracted: str | None = None
    version: int | None = None
    rest: dict[str, Any] = {}


class _BatchMessage(Struct):
    stream: str
    manifest: list[str] | None = None
    size: int | None = None
    format: dict[str, Any] | str | None = None
    compression: dict[str, Any] | str | None = None
    time_extracted: str | None = None
    encoding: dict[str, Any] | None = None
    filepath: str | None = None
    batch_size: int | None = None
    version: int | None = None


_FORMATS = {"json": "jsonl", "jsonlines": "jsonl", "json-lines": "jsonl", "ndjson": "jsonl", "": "jsonl"}
_COMPRESSIONS = {"gz": "gzip", "zst": "zstd", "zstandard": "zstd", "null": "none", "uncompressed": "none", "": "none"}
_KNOWN = {*_BatchMessage.__struct_fields__, "type"}


def read_batch(line: bytes) -> BatchManifest:
    """Parse a BATCH message of any dialect.

    The proposal's has ``format {name, options}``, ``compression {name, options, enabled}``, ``size``,
    ``time_extracted`` and ``manifest``; the Meltano SDK's ``encoding {format, compression}``, ``manifest`` and
    ``version``; PipelineWise's ``filepath``, ``format``, ``compression`` as words and ``batch_size``.

    Raises:
        BatchError: it is not one; with the path to what is wrong.
    """
    try:
        document = msgspec.json.decode(line)
        message = msgspec.convert(document, _BatchMessage)
    except msgspec.ValidationError as error:
        reason, path = split_refusal(error)
        raise BatchError(f"{path}: {reason}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BatchError("not JSON") from None
    if message.manifest is None and message.filepath is None:
        raise BatchError("$: has neither manifest nor filepath")
    files = message.manifest if message.manifest is not None else [message.filepath] if message.filepath else []
    size = message.size if message.size is not None else message.batch_size
    if size is not None and size < 0:
        raise BatchError("$: a number of rows below 0")
    dialect: Dialect = "pipelinewise" if message.filepath is not None else "proposal"
    dialect = dialect if message.encoding is None else "sdk"
    declared = message.encoding or {}
    format, options = _named(declared.get("format", message.format), "format")
    compression, _ = _named(declared.get("compression", message.compression), "compression")
    return BatchManifest(
        stream=message.stream,
        files=files,
        dialect=dialect,
        format=_FORMATS.get(format or "", format or ""),
        compression=_COMPRESSIONS.get(compression, compression) if compression is not None else None,
        options=options,
        size=size,
        is_exact=dialect == "pipelinewise",
        time_extracted=message.time_extracted,
        version=message.version,
        rest={key: value for key, value in document.items() if key not in _KNOWN},
    )


def _named(declared: Any, what: str) -> tuple[str | None, dict[str, Any]]:
    """Return name and options of a format or compression, given as a name or as ``{name, options, enabled}``."""
    if declared is None or isinstance(declared, str):
        return (declared.strip().lower() if declared is not None else None), {}
    if not isinstance(declared, dict):
        raise BatchError(f"$.{what}: is neither a name nor an object with one")
    name, options = declared.get("name"), declared.get("options")
    if not (name is None or isinstance(name, str)) or not (options is None or isinstance(options, dict)):
        raise BatchError(f"$.{what}: expected a name and, if any, options")
    if what == "compression" and (declared.get("enabled") is False or (name is None and "name" in declared)):
        return "none", {}
    return (name.strip().lower() if name is not None else None), options or {}


def write_batch(batch: BatchManifest, dialect: Dialect) -> Iterator[bytes]:
    """Write a BATCH as lines of a dialect: one line, or one for each file in PipelineWise's.

    What a dialect has no place for is left out: the SDK's has no ``size``, PipelineWise's says exactly how many rows
    its file has, and the proposal's ``size`` does not.
    """
    version: dict[str, Any] = {} if batch.version is None else {"version": batch.version}
    time: dict[str, Any] = {} if batch.time_extracted is None else {"time_extracted": batch.time_extracted}
    is_packed = batch.compression not in (None, "none")
    if dialect == "pipelinewise":
        rest: dict[str, Any] = {"compression": batch.compression} if is_packed else {}
        rest |= {"batch_size": batch.size} if batch.is_exact and batch.size is not None else {}
        for file in batch.files:
            yield _line(batch, {"filepath": _as_path(file), "format": batch.format}, rest, time, version, batch.rest)
        return
    manifest = {"manifest": [_as_url(file) for file in batch.files]}
    if dialect == "sdk":  # the SDK rejects unknown keys
        yield _line(batch, {"encoding": {"format": batch.format, "compression": batch.compression}}, manifest, version)
        return
    size = {} if batch.size is None else {"size": batch.size}
    form: dict[str, Any] = {"format": {"name": batch.format, "options": batch.options}}
    if batch.compression is not None:
        name = batch.compression if is_packed else None
        form["compression"] = {"name": name, "options": {}, "enabled": is_packed}
    yield _line(batch, time, size, form, manifest, version, batch.rest)


def _line(batch: BatchManifest, *parts: Mapping[str, Any]) -> bytes:
    body: dict[str, Any] = {"type": "BATCH", "stream": batch.stream}
    for part in parts:
        body.update(part)
    return msgspec.json.encode(body) + b"\n"


def _as_url(file: str) -> str:
    return "file://" + quote(file) if file.startswith("/") else file


def _as_path(file: str) -> str:
    return unquote(file.removeprefix("file://")) if file.startswith("file:///") else file


def shown(file: str) -> str:
    """Return a file's name for messages: without the query of a pre-signed URL, and without a password."""
    try:
        parts = urlsplit(file)
    except ValueError:
        return "an invalid URL"
    if not parts.scheme and not parts.netloc:
        return printable(file[:300], "?")
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return printable(url[:300], "?")


_CREDENTIAL = re.compile(
    r"secret|passw|passphrase|token|credential|authorization|connection_?string|signature"
    r"|(access|api|private|account|shared|encryption)[_-]?key|^(key|pwd|sas|auth)$",
    re.IGNORECASE,
)


def find_credentials(line: bytes) -> str | None:
    """Return the path of a BATCH message's credentials; None if it has none.

    The proposal: the message may hold pre-signed URLs, but no other credential. So a query is let be in an http(s) URL
    only, a password in a URL nowhere, and no key named like a credential may have a value.
    """
    try:
        return next(iter(_hide(msgspec.json.decode(line), "$")[1]), None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _hide(value: Any, path: str) -> tuple[Any, list[str]]:
    """Return a value with ``***`` instead of its credentials, and their paths."""
    if isinstance(value, str):
        return ("***", [path]) if _url_has_credentials(value) else (value, [])
    if isinstance(value, list):
        items = [_hide(item, f"{path}[{number}]") for number, item in enumerate(value)]
        return [item for item, _ in items], [secret_path for _, places in items for secret_path in places]
    if not isinstance(value, dict):
        return value, []
    members, paths = {}, list[str]()
    for key, item in value.items():
        member_path = f"{path}.{printable(key[:300], '?')}"
        is_secret = item and not isinstance(item, bool) and _CREDENTIAL.search(key)
        members[key], places = ("***", [member_path]) if is_secret else _hide(item, member_path)
        paths += places
    return members, paths


def _url_has_credentials(text: str) -> bool:
    if "://" not in text:
        return False
    try:
        parts = urlsplit(text)
        user, at, _ = parts.netloc.rpartition("@")
        query = parse_qsl(parts.query)
    except ValueError:
        return False
    if at and (":" in user or parts.scheme.lower() in ("http", "https")):
        return True
    return parts.scheme.lower() not in ("http", "https") and any(_CREDENTIAL.search(key) for key, _ in query)


def without_credentials(line: bytes) -> bytes:
    """Return a BATCH message with ``***`` instead of the credentials that ``find_credentials`` finds.

    A message that is not JSON is given as it is.
    """
    if find_credentials(line) is None:
        return line
    return msgspec.json.encode(_hide(msgspec.json.decode(line), "$")[0]) + b"\n"
