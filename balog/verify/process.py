"""One run of a tap: its two outputs as they come, its memory, its end; bounded, whatever it does."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from balog.errors import ConfigError
from balog.verify.guard import Guard

__all__ = ["OutputHandler", "ProcessResult", "run"]

_CHUNK = 256 * 1024
_SMALL_PIPE = 4096
_LEFT_OVER = 1.0  # seconds that what the tap left running may go on writing
_EACH = 0.02  # seconds between two looks at its memory


class OutputHandler(Protocol):
    """Who is told what a run writes."""

    def stdout(self, data: bytes) -> str:
        """Take the next bytes; give why the run is to be ended now, "" to go on, ``interrupt`` to ask it to end."""

    def stderr(self, data: bytes) -> None:
        """Take the next bytes."""


class ProcessResult(Struct, kw_only=True):
    """How a run went.

    Attributes:
        code: its exit code; -N for signal N.
        seconds: from its start to its end.
        stopped: why it was ended from here; "" when it ended by itself.
        was_killed: it did not end when it was asked to.
        left_running: a second after its end, something that it had started still ran, or held its outputs.
        stopping: seconds from SIGTERM to its end; None when it was not sent.
        went_on: bytes that it wrote after it was sent SIGTERM, with what was on its way.
        peak_memory: bytes it and its children had at most; 0 where that cannot be known (not on Linux).
    """

    code: int = 0
    seconds: float = 0
    stopped: str = ""
    was_killed: bool = False
    left_running: bool = False
    stopping: float | None = None
    went_on: int = 0
    peak_memory: int = 0


def run(
    command: Sequence[str],
    handler: OutputHandler,
    *,
    timeout: float,
    grace: float,
    small_pipe: bool = False,
    guard: Guard | None = None,
) -> ProcessResult:
    """Run a command until it ends, is over its time or the handler has enough.

    Args:
        handler: is given all that it writes until then; what comes later is read and dropped, so that it can end.
        timeout: seconds; then it is sent SIGTERM, and ``grace`` seconds later all that it started is killed.
        small_pipe: give it an output that holds little, so that it is never far ahead of what was read (Linux).
        guard: finds what left the tap's process group, and ends all when this process is killed.

    Raises:
        ConfigError: it cannot be started.
    """
    with _held_back() as came:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env=guard.environment if guard is not None else None,
                pipesize=_SMALL_PIPE if small_pipe and sys.platform == "linux" else -1,
            )
        except OSError as error:
            raise ConfigError(f"cannot be run: {error.strerror or error}", source=command[0]) from None
    with process:
        try:
            if guard is not None:
                guard.note(process.pid)
            for number in came:
                signal.raise_signal(number)
            result = _Loop(process, handler, timeout, grace, _SMALL_PIPE if small_pipe else _CHUNK).run()
            if guard is not None and not result.stopped:
                result.left_running = result.left_running or _outlived(guard)
            return result
        finally:
            _signal_all(process, signal.SIGKILL)
            if guard is not None:
                guard.end_all()
                guard.note(0)


def _outlived(guard: Guard) -> bool:
    """Return whether something that the tap started is still there a second after it."""
    until = time.monotonic() + _LEFT_OVER
    while guard.left():
        if time.monotonic() > until:
            return True
        time.sleep(_EACH)
    return False


@contextmanager
def _held_back() -> Iterator[list[int]]:
    """Yield a list of the signals that come while a process is being started: their handlers would not know of it."""
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    is_main = threading.current_thread() is threading.main_thread()
    held = {number: handler for number, handler in handlers.items() if callable(handler) and is_main}
    for number in held:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield came
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)


class _Loop:
    def __init__(
        self, process: subprocess.Popen[bytes], handler: OutputHandler, timeout: float, grace: float, chunk: int
    ) -> None:
        self.process = process
        self.handler = handler
        self.grace = grace
        self.chunk = chunk
        self.result = ProcessResult()
        self.began = time.monotonic()
        self.deadline = self.began + timeout
        self.signalled: float | None = None
        self.ended: float | None = None
        self._looked = 0.0

    def run(self) -> ProcessResult:
        with selectors.DefaultSelector() as selector:
            for stream, take in ((self.process.stdout, self._stdout), (self.process.stderr, self.handler.stderr)):
                assert stream is not None  # noqa: S101
                selector.register(stream, selectors.EVENT_READ, take)
            while selector.get_map():
                for key, _ in selector.select(_EACH):
                    data = os.read(key.fd, self.chunk)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                if not self._go_on(time.monotonic()):
                    break
        while self.process.poll() is None and self._go_on(time.monotonic()):
            time.sleep(0.002)
        self.result.code = self.process.wait()
        over = self.ended or time.monotonic()
        self.result.seconds = over - self.began
        if self.signalled is not None:
            self.result.stopping = max(over - self.signalled, 0.0)
        return self.result

    def _stdout(self, data: bytes) -> None:
        if self.signalled is not None:
            self.result.went_on += len(data)
        if self.result.stopped not in ("", "interrupt"):
            return
        reason = self.handler.stdout(data)
        if reason and not self.result.stopped:
            self._stop(reason)
        elif reason and reason != "interrupt":
            self.result.stopped = reason

    def _stop(self, reason: str) -> None:
        self.result.stopped = reason
        self.signalled = time.monotonic()
        if reason == "interrupt":
            self.process.send_signal(signal.SIGTERM)  # to it alone, as who runs containers does
        else:
            _signal_all(self.process, signal.SIGTERM)

    def _go_on(self, now: float) -> bool:
        """Look after time and memory; False when nothing more is read."""
        if self.ended is None and self.process.poll() is not None:
            self.ended = now
        if self.ended is not None:
            if now - self.ended < _LEFT_OVER:
                return True
            self.result.left_running = True
            return False
        if now - self._looked >= _EACH:
            self._looked = now
            self._look_at_memory()
        if self.signalled is None and now >= self.deadline:
            self._stop("timeout")
        elif self.signalled is not None and now - self.signalled >= self.grace:
            self.result.was_killed = True
            _signal_all(self.process, signal.SIGKILL)
        return True

    def _look_at_memory(self) -> None:
        self.result.peak_memory = max(self.result.peak_memory, _peak_memory(self.process.pid))


def _signal_all(process: subprocess.Popen[Any], number: int) -> None:
    try:
        os.killpg(process.pid, number)  # it leads a group of its own; what it started is in there
    except (ProcessLookupError, PermissionError):
        pass


def _peak_memory(pid: int) -> int:
    """Return the bytes that a process and its children had at most; 0 where there is no /proc."""
    peak = 0
    waiting = [pid]
    while waiting:
        place = Path("/proc", str(waiting.pop()))
        try:
            for line in (place / "status").read_bytes().splitlines():
                if line.startswith(b"VmHWM:"):
                    peak += int(line.split()[1]) * 1024
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return peak
