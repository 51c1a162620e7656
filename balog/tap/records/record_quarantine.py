"""Quarantine of records that break their schema, with the reason and within limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from balog.common.errors import ConfigError
from balog.common.local_path import state_folder
from balog.tap.errors import RecordError
from balog.tap.records.plain import Unfit

if TYPE_CHECKING:
    from balog.singer.quarantine_file import QuarantineFile

MAX_QUARANTINED = 1_000
"""Default maximum of quarantined records per stream and run."""

_MAX_BYTES = 1 << 30
_MAX_REASONS = 20


class RecordQuarantine:
    """A file of JSON lines, ``{"time", "reason", "raw"}``, for one stream of a run; ``raw`` is a RECORD message.

    The format is that of the broker's quarantine. The file is created for the first record. Only its owner can read
    it, because it has records as the source returned them.

    Args:
        path: the file, or a function that returns it for the first record; see ``default_quarantine``.
        log: receives one WARNING per reason.
        max_records: maximum records of a run; then the stream fails.
    """

    def __init__(self, path: str | Callable[[], str], log: Any, max_records: int = MAX_QUARANTINED) -> None:
        self._path = path
        self.path = "" if callable(path) else path
        self.count = 0
        self._log = log
        self._max_records = max_records
        self._file: QuarantineFile | None = None
        self._logged: set[str] = set()

    def put(self, error: RecordError, record: Any) -> None:
        """Write a record and its error to the file.

        Raises:
            RecordError: the file has too many records or cannot be written.
        """
        if self.count >= self._max_records:
            raise RecordError(
                error.stream,
                f"{error.reason}; {self.count} records are set aside already, which is as many as may be: "
                f"look at {self.path}",
                error.path,
            )
        from balog.singer.quarantine_file import QuarantineError, QuarantineFile  # most runs quarantine nothing

        try:
            if self._file is None:
                self.path = self._path() if callable(self._path) else self._path
                self._file = QuarantineFile(self.path, _MAX_BYTES, "quarantine")
            self._file.put(f"{error.path}: {error.reason}", _message(error.stream, record))
        except (QuarantineError, ConfigError) as failure:
            raise RecordError(error.stream, f"{error.reason}, and {failure}", error.path) from None
        self.count += 1
        reason = f"{error.path}: {error.reason}"
        if reason not in self._logged and len(self._logged) < _MAX_REASONS:
            self._logged.add(reason)
            self._log.warning(f"{error.stream}: a record was set aside, in {self.path}: {reason}")

    def close(self) -> None:
        """Close the file durably.

        Raises:
            QuarantineError: the file cannot be written.
        """
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


def default_quarantine(tap: str, stream: str) -> str:
    """Return ``$XDG_STATE_HOME/balog/quarantine/TAP-STREAM.jsonl`` (``~/.local/state`` by default).

    Raises:
        ConfigError: the user has no home folder.
    """
    folder = state_folder("no place for the quarantine: set XDG_STATE_HOME or HOME, or name a file")
    name = re.sub(r"[^\w.-]", "_", f"{tap}-{stream}")[:200]
    return str(folder / "quarantine" / f"{name}.jsonl")


def _raw(value: Any) -> Any:
    return value.value if isinstance(value, Unfit) else f"(a {type(value).__name__})"


_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_raw).encode


def _message(stream: str, record: Any) -> bytes:
    """Encode a record, or its ``repr`` if JSON cannot represent it."""
    message = {"type": "RECORD", "stream": stream, "record": record}
    try:
        written = _encode(message)
        if b"NaN" in written or b"Infinity" in written:  # msgspec's form of Decimals that are not finite
            msgspec.json.decode(written)
        return written
    except (TypeError, ValueError, RecursionError, ArithmeticError, msgspec.DecodeError):
        from balog.log.values.json_values import safe_str

        return _encode(
            {**message, "record": {"repr": safe_str(record, repr).encode("utf-8", "backslashreplace").decode()}}
        )
