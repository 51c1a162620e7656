"""Finished runs of a tap: name, output and exit."""

from __future__ import annotations

from msgspec import Struct

from balog.tap.verify.leaks import Leaks
from balog.tap.verify.logs import Logs
from balog.tap.verify.output_reader import OutputReader
from balog.tap.verify.process import OutputHandler, ProcessResult

_MAX_CAPTURED = 64 * 1024 * 1024
_TOO_MUCH = {
    "junk": "10,000 lines were not Singer messages",
    "line": "a line was longer than 16 MiB",
    "streams": "more than 10,000 streams came",
    "bytes": "more than 64 MiB came",
}
"""By reason of ``ProcessResult.stopped``: the limit that the output exceeded."""


class Skip(Exception):  # not an error: a rule has nothing to judge
    """A rule cannot be judged; the message is the reason."""


class Capture:
    """Collects the outputs of a run other than a sync, at most 64 MiB of stdout. See ``OutputHandler``."""

    def __init__(self, leaks: Leaks) -> None:
        self.data = bytearray()
        self.leaks = leaks
        self.logs = Logs(leaks)

    def stdout(self, data: bytes) -> str:
        """See ``OutputHandler``."""
        self.data += data
        return "bytes" if len(self.data) > _MAX_CAPTURED else ""

    def close(self, *, cut: bool) -> None:
        """See ``OutputHandler``."""
        self.logs.close()
        self.leaks.search_output(self.data, "stdout")


class TapRun(Struct, frozen=True, kw_only=True):
    """A finished run."""

    name: str
    output: OutputHandler
    result: ProcessResult

    @property
    def outcome(self) -> str:
        """How the run ended, with the tap's last message, as a clause."""
        result, logs = self.result, self.output.logs
        how = f"exit code {result.code}" if result.code >= 0 else f"ended by signal {-result.code}"
        if result.stopped == "timeout":
            how = f"still running after {result.seconds:.0f} s"
        elif result.stopped in _TOO_MUCH:
            how = f"was ended: {_TOO_MUCH[result.stopped]}"
        if not result.code and not result.stopped:
            return how
        if line := logs.last_error or logs.last_exception:
            return f"{how}; said: {line}{logs.in_place}"
        if not logs.last:
            return how if result.stopped else f"{how}, and nothing on stderr"
        is_reason = logs.has_reason or result.stopped
        return f"{how}; said: {logs.last}" if is_reason else f"{how}, and no line says why; the last: {logs.last}"


class SyncRun(TapRun, frozen=True, kw_only=True):
    """A finished sync."""

    output: OutputReader

    @property
    def is_whole(self) -> bool:
        """Whether the sync was complete and successful."""
        return not self.result.stopped and self.result.code == 0

    @property
    def has_failed(self) -> bool:
        """Whether the sync ended by itself with another exit code than 0, or exceeded a limit besides ``records``."""
        return self.result.stopped not in ("", "records") or bool(self.result.code and not self.result.stopped)


class CommandRun(TapRun, frozen=True, kw_only=True):
    """A finished run other than a sync, with its whole stdout."""

    output: Capture
