"""A run that was made: what it was for, what it wrote, how it ended."""

from __future__ import annotations

from msgspec import Struct

from balog.verify.leaks import Leaks
from balog.verify.logs import Logs
from balog.verify.output_reader import OutputReader
from balog.verify.process import ProcessResult

__all__ = ["Capture", "CommandRun", "Skip", "SyncRun"]

_MOST_CAPTURED = 64 * 1024 * 1024
_TOO_MUCH = {
    "junk": "10,000 lines were no messages of Singer's",
    "line": "a line went on for more than 16 MiB",
    "streams": "more than 10,000 streams came",
    "bytes": "more than 64 MiB came",
}
"""Why a run was ended from here that writes without bounds. See ``OutputReader`` and ``Capture``."""


class Skip(Exception):  # no error: how a rule says that there is nothing to look at
    """A rule cannot be judged; says why."""


class SyncRun(Struct, kw_only=True):
    """A sync: what it was for, what it wrote, how it ended."""

    name: str
    output: OutputReader
    result: ProcessResult

    @property
    def is_whole(self) -> bool:
        """Whether it went to its end, and that was a good one."""
        return not self.result.stopped and self.result.code == 0

    @property
    def outcome(self) -> str:
        """How it ended, and what the tap said of that, as a clause."""
        return _outcome(self.result, self.output.logs)


class CommandRun(Struct, kw_only=True):
    """A run that is no sync: its stdout whole, at most 64 MiB of it."""

    name: str
    stdout: bytes
    logs: Logs
    result: ProcessResult

    @property
    def outcome(self) -> str:
        """How it ended, and what the tap said of that, as a clause."""
        return _outcome(self.result, self.logs)


def _outcome(result: ProcessResult, logs: Logs) -> str:
    how = f"exit code {result.code}" if result.code >= 0 else f"ended by signal {-result.code}"
    if result.stopped == "timeout":
        how = f"not over after {result.seconds:.0f} s"
    elif result.stopped in _TOO_MUCH:
        how = f"was ended: {_TOO_MUCH[result.stopped]}"
    line = logs.last_error or logs.last_exception or logs.last
    return f"{how}; said: {line}" if line and (result.code or result.stopped) else how


class Capture:
    """Takes the outputs of a run that is no sync: stdout whole, at most 64 MiB. See ``OutputHandler``."""

    def __init__(self, leaks: Leaks) -> None:
        self.data = bytearray()
        self.logs = Logs(leaks)

    def stdout(self, data: bytes) -> str:
        """See ``OutputHandler``."""
        self.data += data
        return "bytes" if len(self.data) > _MOST_CAPTURED else ""

    def stderr(self, data: bytes) -> None:
        """See ``OutputHandler``."""
        self.logs.feed(data)
