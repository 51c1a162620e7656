"""One run of a tap within limits of time: outputs, memory, exit, and cleanup."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from balog.common.errors import ConfigError
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.logs import Logs

_MARK = "BALOG_VERIFY"
_CHUNK = 256 * 1024
_SMALL_PIPE = 4096
_LEFT_OVER = 1.0  # seconds that leftover child processes may keep writing
_EACH = 0.02  # seconds between two samples of its memory


class RunCancelled(Exception):  # not an error: the verification ends
    """A run was ended, or not begun, because the verification ends."""


class Guard:
    """Marks in the environment of each run's processes, by which they are found. Several threads may use it.

    Attributes:
        cancelled: set when the running runs are to end, and no other may begin.
    """

    def __init__(self) -> None:
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        self._runs = count(1)
        self.cancelled = threading.Event()

    def new_mark(self) -> str:
        """Return a mark for one run: ``NAME=VALUE`` for the environment of its processes."""
        return f"{self._mark}-{next(self._runs)}"

    def marked_processes(self, mark: str) -> list[int]:
        """Return the ids of processes with a run's mark, in any session; none without /proc."""
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    pids.append(int(folder.name))
            except OSError:
                continue  # another user's, or over meanwhile
        return pids

    def kill_all(self, mark: str) -> None:
        """Kill all processes with a run's mark."""
        for pid in self.marked_processes(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class OutputHandler(Protocol):
    """Receives the outputs of a run; ``logs`` has those on stderr, and ``leaks`` the secrets that were found."""

    logs: Logs
    leaks: Leaks

    def stdout(self, data: bytes) -> str:
        """Handle the next bytes. Return "" to continue, ``interrupt`` to send SIGTERM, or the reason to end the run."""

    def close(self, *, cut: bool) -> None:
        """Handle the rest of the outputs, unless the run was ``cut`` and its last bytes were dropped."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        code: the exit code; -N for signal N.
        began: the time of its start, as of ``time.monotonic``.
        seconds: the duration.
        stopped: why the verification ended the run; "" if it ended by itself.
        was_killed: the run did not end after SIGTERM and was killed.
        left_running: a second after its end, a child process still ran or held its outputs.
        bytes_after_sigterm: bytes that arrived after SIGTERM, including buffered ones.
        peak_memory: peak bytes of the process and its children; 0 where unknown (not Linux).
    """

    code: int = 0
    began: float = 0
    seconds: float = 0
    stopped: str = ""
    was_killed: bool = False
    left_running: bool = False
    bytes_after_sigterm: int = 0
    peak_memory: int = 0


def run(
    command: Sequence[str],
    handler: OutputHandler,
    guard: Guard,
    *,
    timeout: float,
    grace: float,
    small_pipe: bool = False,
) -> ProcessResult:
    """Run a command until it ends, exceeds its time, or the handler ends it.

    Args:
        command: program and arguments; no shell is used.
        handler: receives the outputs until then. Later output is read and dropped, so that the process can end.
        guard: finds processes that left the tap's process group.
        timeout: seconds until SIGTERM.
        grace: seconds from SIGTERM until the process and its children are killed.
        small_pipe: use a small pipe for stdout, so that the process cannot run far ahead of the reader (Linux).

    Raises:
        ConfigError: the command cannot be started.
        RunCancelled: the guard is cancelled.
    """
    mark = guard.new_mark()
    if guard.cancelled.is_set():
        raise RunCancelled
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, _MARK: mark.partition("=")[2]},
            pipesize=_SMALL_PIPE if small_pipe and sys.platform == "linux" else -1,
        )
    except OSError as error:
        raise ConfigError(f"cannot be run: {error.strerror or error}", source=command[0]) from None
    with process:
        try:
            loop = _Loop(process, handler, guard, timeout, grace, _SMALL_PIPE if small_pipe else _CHUNK)
            loop.run()
            if guard.cancelled.is_set():
                raise RunCancelled
            return loop.result(mark)
        finally:
            _signal_all(process, signal.SIGKILL)
            guard.kill_all(mark)


def _has_leftover(guard: Guard, mark: str) -> bool:
    """Return whether a child process of the tap still runs a second after the tap's end."""
    until = time.monotonic() + _LEFT_OVER
    while guard.marked_processes(mark):
        if time.monotonic() > until:
            return True
        time.sleep(_EACH)
    return False


@dataclass
class _Loop:
    process: subprocess.Popen[bytes]
    handler: OutputHandler
    guard: Guard
    timeout: float
    grace: float
    chunk: int
    began: float = field(default_factory=time.monotonic)
    signalled: float | None = None
    ended: float | None = None
    sampled: float = 0.0
    stopped: str = ""
    was_killed: bool = False
    left_running: bool = False
    bytes_after_sigterm: int = 0
    peak_memory: int = 0

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for stream, take in ((self.process.stdout, self._stdout), (self.process.stderr, self.handler.logs.feed)):
                assert stream is not None  # noqa: S101
                selector.register(stream, selectors.EVENT_READ, take)
            while selector.get_map():
                for key, _ in selector.select(_EACH):
                    data = os.read(key.fd, self.chunk)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                if not self._check_limits(time.monotonic()):
                    break
        while self.process.poll() is None and self._check_limits(time.monotonic()):
            time.sleep(0.002)

    def result(self, mark: str) -> ProcessResult:
        """Return how the run ended. ``mark`` is that of its processes."""
        code, ended = self.process.wait(), self.ended or time.monotonic()
        return ProcessResult(
            code=code,
            began=self.began,
            seconds=ended - self.began,
            stopped=self.stopped,
            was_killed=self.was_killed,
            left_running=self.left_running or (not self.stopped and _has_leftover(self.guard, mark)),
            bytes_after_sigterm=self.bytes_after_sigterm,
            peak_memory=self.peak_memory,
        )

    def _stdout(self, data: bytes) -> None:
        if self.signalled is not None:
            self.bytes_after_sigterm += len(data)
        if self.stopped not in ("", "interrupt"):
            return
        reason = self.handler.stdout(data)
        if reason and not self.stopped:
            self._stop(reason)
        elif reason and reason != "interrupt":
            self.stopped = reason

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self.signalled = time.monotonic()
        if reason == "interrupt":
            self.process.send_signal(signal.SIGTERM)  # to the process alone, as container runtimes do
        else:
            _signal_all(self.process, signal.SIGTERM)

    def _check_limits(self, now: float) -> bool:
        """Check time and memory. Return False to stop reading."""
        if self.guard.cancelled.is_set():
            _signal_all(self.process, signal.SIGKILL)
            return False
        if self.ended is None and self.process.poll() is not None:
            self.ended = now
        if self.ended is not None:
            if now - self.ended < _LEFT_OVER:
                return True
            self.left_running = True
            return False
        if now - self.sampled >= _EACH:
            self.sampled = now
            self.peak_memory = max(self.peak_memory, _peak_memory(self.process.pid))
        if self.signalled is None and now >= self.began + self.timeout:
            self._stop("timeout")
        elif self.signalled is not None and now - self.signalled >= self.grace:
            self.was_killed = True
            _signal_all(self.process, signal.SIGKILL)
        return True


def _signal_all(process: subprocess.Popen[Any], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)  # it leads a process group, which includes its children


def _peak_memory(pid: int) -> int:
    """Return the peak bytes of a process and its children; 0 without /proc."""
    peak = 0
    waiting = [pid]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        try:
            for line in (folder / "status").read_bytes().splitlines():
                if line.startswith(b"VmHWM:"):
                    peak += int(line.split()[1]) * 1024
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return peak
