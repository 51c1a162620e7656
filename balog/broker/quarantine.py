"""Write rejected lines of a stream to a quarantine file; see ``balog.singer.quarantine_file`` for its form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from balog.broker.editor import PipeError
from balog.singer.quarantine_file import QuarantineError, QuarantineFile


class QuarantineConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Write lines that can't be read, or changed by the rules, to a file instead of ending the stream."""

    path: Annotated[str, Meta(min_length=1, description="The file; appended to, readable by its owner only.")]
    max_bytes: Annotated[
        int, Meta(ge=4096, description="Largest size of the file in bytes. A full file ends the stream.")
    ] = 1 << 30


def refuse(quarantine: Quarantine | None, reason: str, line: bytes) -> None:
    """Put a line into quarantine with the reason.

    Raises:
        PipeError: there is no quarantine, or it cannot keep the line.
    """
    if quarantine is None:
        raise PipeError(f"{reason}; mend the tap, or give the broker a quarantine")
    quarantine.put(reason, line)


class Quarantine:
    """An open quarantine file. Several brokers may share one; each line is appended whole.

    Args:
        config: where, and how much.
        say: called with the reason of the first line, and at the end with the number of lines.

    Raises:
        ConfigError: the file cannot be opened for writing.
    """

    def __init__(self, config: QuarantineConfig, say: Callable[[str], None]) -> None:
        self._file = QuarantineFile(config.path, config.max_bytes)
        self._say = say

    @property
    def count(self) -> int:
        """Number of lines in quarantine so far."""
        return self._file.count

    def put(self, reason: str, line: bytes) -> None:
        """Append a line with the reason, a clause without any data of the line.

        Raises:
            PipeError: it cannot be kept, because the file is full or fails; the line is then lost.
        """
        try:
            self._file.put(reason, line)
        except QuarantineError as error:
            raise PipeError(str(error)) from None
        if self.count == 1:
            self._say(f"a line went to quarantine, {self._file.path}: {reason}")

    def close(self) -> None:
        """Make the file durable, and report the number of lines, or that the file is not durable. Called once."""
        try:
            self._file.close()
        except QuarantineError as error:
            self._say(str(error))
            return
        if self.count > 1:
            self._say(f"{self.count} lines went to quarantine, {self._file.path}")
