"""A run that was made: what it was for, what it wrote, how it ended."""

from __future__ import annotations

from msgspec import Struct

from balog.verify.leaks import Leaks
from balog.verify.logs import Logs
from balog.verify.output_reader import Reading
from balog.verify.process import Ending

__all__ = ["Capture", "Run", "Skip", "Written"]

_MOST_CAPTURED = 64 * 1024 * 1024
_TOO_MUCH = {
    "junk": "10,000 lines were no messages of Singer's",
    "line": "a line went on for more than 16 MiB",
    "streams": "more than 10,000 streams came",
    "bytes": "more than 64 MiB came",
}
"""Why a run was ended from here that writes without bounds. See ``Reading`` and ``Capture``."""


class Skip(Exception):  # no error: how a rule says that there is nothing to look at
    """A rule cannot be judged; says why."""


class Run(Struct, kw_only=True):
    """A sync: what it was for, what it wrote, how it ended."""

    name: str
    reading: Reading
    ending: Ending

    @property
    def is_whole(self) -> bool:
        """Whether it went to its end, and that was a good one."""
        return not self.ending.stopped and self.ending.code == 0

    @property
    def outcome(self) -> str:
        """How it ended, and what the tap said of that, as a clause."""
        return _outcome(self.ending, self.reading.logs)


class Written(Struct, kw_only=True):
    """A run that is no sync: its stdout whole, at most 64 MiB of it."""

    name: str
    stdout: bytes
    logs: Logs
    ending: Ending

    @property
    def outcome(self) -> str:
        """How it ended, and what the tap said of that, as a clause."""
        return _outcome(self.ending, self.logs)


def _outcome(ending: Ending, logs: Logs) -> str:
    how = f"exit code {ending.code}" if ending.code >= 0 else f"ended by signal {-ending.code}"
    if ending.stopped == "timeout":
        how = f"not over after {ending.seconds:.0f} s"
    elif ending.stopped in _TOO_MUCH:
        how = f"was ended: {_TOO_MUCH[ending.stopped]}"
    said = logs.last_error or logs.last_exception or logs.last
    return f"{how}; said: {said}" if said and (ending.code or ending.stopped) else how


class Capture:
    """Takes the outputs of a run that is no sync: stdout whole, at most 64 MiB. See ``Watcher``."""

    def __init__(self, leaks: Leaks) -> None:
        self.data = bytearray()
        self.logs = Logs(leaks)

    def stdout(self, data: bytes) -> str:
        """See ``Watcher``."""
        self.data += data
        return "bytes" if len(self.data) > _MOST_CAPTURED else ""

    def stderr(self, data: bytes) -> None:
        """See ``Watcher``."""
        self.logs.feed(data)
