"""Runs tasks of ``raw_task`` in child processes, one for each core, which end with this process's call."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from balog.analytics.rollups.raw_task import RawJob, RawTask, run
from balog.common.errors import BalogError
from balog.common.signals import blocking, signals_for_main_thread

_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from balog.analytics.rollups.raw_task import main; main()"


def run_tasks(job: RawJob, tasks: Sequence[RawTask], workers: int) -> None:
    """Run tasks, and wait for them; a single task runs in this process.

    Raises:
        BalogError: a task failed, or a process ended.
    """
    if min(len(tasks), workers) <= 1:
        for task in tasks:
            run(job, task)
        return
    children: list[_Child] = []
    left: queue.SimpleQueue[RawTask] = queue.SimpleQueue()
    for task in tasks:
        left.put(task)
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    try:
        for _ in range(min(len(tasks), workers)):
            children.append(_Child(job))
        with signals_for_main_thread():
            for child in children:
                threading.Thread(target=child.work, args=(left, answers), daemon=True, name="balog-read").start()
        for _ in tasks:
            if problem := answers.get():
                raise BalogError(problem)
    finally:
        for child in children:
            child.kill()


class _Child:
    def __init__(self, job: RawJob) -> None:
        command = [sys.executable, "-I", "-c", _CHILD, *filter(None, sys.path)]
        try:
            with blocking(signal.SIGINT):
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        except OSError as error:
            raise BalogError(f"no process can be started to read in: {error.strerror or error}") from None
        self._job = job

    def work(self, left: queue.SimpleQueue[RawTask], answers: queue.SimpleQueue[str | None]) -> None:
        """Run tasks until none is left; answer each with "" or its error."""
        try:
            self._ask(self._job)
            while True:
                self._ask(left.get_nowait())
                answers.put(self._answer())
        except queue.Empty:
            pass
        except (OSError, ValueError):  # it ended before it read the task
            answers.put(self._ending())

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                file.close()  # type: ignore[union-attr]

    def _ask(self, content: Any) -> None:
        self._process.stdin.write(msgspec.json.encode(content) + b"\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]

    def _answer(self) -> str:
        answer = self._process.stdout.readline()  # type: ignore[union-attr]
        return msgspec.json.decode(answer, type=str) if answer else self._ending()

    def _ending(self) -> str:
        code = self._process.wait()
        try:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"signal {-code}"
        return f"a process that reads files ended ({how}); is memory full? Run it again, or with --engine spark"


def cores() -> int:
    """Return how many processes can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
