"""Runs of a tap, side by side: their limits, outputs and exits, and properties that are made once."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from balog.tap.verify.leaks import Leaks
from balog.tap.verify.logs import Logs
from balog.tap.verify.output_reader import KnownStreams, OutputReader
from balog.tap.verify.process import Guard, OutputHandler, ProcessResult, run
from balog.tap.verify.tap_command import TapCommand

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


class Options(Struct, frozen=True, kw_only=True):
    """Limits and selection of a verification.

    Attributes:
        jobs: maximum number of runs at a time; 0 means one more than there are cores.
        timeout: maximum seconds of one run.
        records: maximum records of one run; the run is ended there.
        states: the number of emitted states to resume from.
        grace: seconds between SIGTERM and SIGKILL.
        rules: ids of the rules to judge; empty means all. Only runs that these rules need are made.
        skip: ids of the rules to skip.
    """

    jobs: int = 0
    timeout: float = 300
    records: int = 100_000
    states: int = 3
    grace: float = 10
    rules: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


Made = TypeVar("Made")


class made_once(cached_property[Made]):  # a decorator
    """A cached property that one thread makes while the others wait for it.

    An exception is not cached. The owner has ``lock_of``.
    """

    def __get__(self, owner: Any, kind: type | None = None) -> Made:  # type: ignore[override]
        with owner.lock_of(self.attrname):
            value: Made = owner.__dict__.get(self.attrname, self)
            return super().__get__(owner, kind) if value is self else value


class Runner:
    """Makes runs of a tap, from several threads, at most as many at a time as the options have jobs.

    If a run changes the tap's config, as taps do that store a new refresh token in it, the others follow one by one.

    Args:
        command: the tap's command.
        options: the limits.
        config: the tap's decoded config, whose secrets are searched for in the outputs.
        on_run: called with the name of each run before it starts.
    """

    def __init__(self, command: TapCommand, options: Options, config: Any, on_run: Callable[[str], None]) -> None:
        self._command = command
        self._tap_config = config
        self._options = options
        self._on_run = on_run
        self._folder = tempfile.TemporaryDirectory(prefix="balog-verify-")
        self._guard = Guard()
        self._jobs = options.jobs or default_jobs()
        self._running = 0
        self._changed = threading.Condition()
        self._files = count(1)
        self._config = self._config_bytes()
        self._made: list[TapRun] = []

    @property
    def made(self) -> list[TapRun]:
        """The finished runs, in the order of their starts."""
        return sorted(self._made, key=lambda tap_run: tap_run.result.began)

    def cancel(self) -> None:
        """End the running runs, and begin no other: those who wait for one get ``RunCancelled``."""
        self._guard.cancelled.set()

    def close(self) -> None:
        """Remove the files of the runs."""
        self._folder.cleanup()

    def sync(
        self, name: str, line: list[str], known: KnownStreams, *, interrupt_after: int = 0, timeout: float | None = None
    ) -> SyncRun:
        """Run the tap, and read its output as a target would."""
        leaks = Leaks(self._tap_config)
        output = OutputReader(leaks, known, most=self._options.records, interrupt_after=interrupt_after)
        result = self._run(name, line, output, timeout, small_pipe=bool(interrupt_after))
        self._made.append(sync_run := SyncRun(name=name, output=output, result=result))
        return sync_run

    def ask(self, name: str, line: list[str], *, timeout: float | None = None) -> CommandRun:
        """Run the tap, and keep its output."""
        output = Capture(Leaks(self._tap_config))
        result = self._run(name, line, output, timeout)
        self._made.append(command_run := CommandRun(name=name, output=output, result=result))
        return command_run

    def write(self, name: str, text: str) -> Path:
        """Write a file for a run."""
        path = Path(self._folder.name, f"{next(self._files)}-{name}")
        path.touch(0o600)  # a config holds secrets
        path.write_text(text, encoding="utf-8")
        return path

    def _run(
        self, name: str, line: list[str], output: OutputHandler, timeout: float | None, *, small_pipe: bool = False
    ) -> ProcessResult:
        options = self._options
        with self._changed:
            self._changed.wait_for(lambda: self._running < self._jobs)
            self._running += 1
        try:
            self._on_run(name)
            seconds = options.timeout if timeout is None else min(timeout, options.timeout)
            result = run(line, output, self._guard, timeout=seconds, grace=options.grace, small_pipe=small_pipe)
            output.close(cut=result.stopped not in ("", "interrupt"))
            return result
        finally:
            with self._changed:
                self._running -= 1
                if self._config_bytes() != self._config:
                    self._jobs = 1
                self._changed.notify_all()

    def _config_bytes(self) -> bytes:
        try:
            return self._command.config.read_bytes() if self._command.config else b""
        except OSError:
            return b""


def default_jobs() -> int:
    """Return the number of cores that this process may use, plus one: a tap also waits for its source."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1
