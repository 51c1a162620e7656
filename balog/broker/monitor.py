"""Compute the rows of ``balog top`` from the stages' status files: rates, the waiting side and the pipes' order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from balog.broker.status import PipeStage, read_stages

_IDLE_SHARE = 0.1
_PIPE = re.compile(r"pipe:\[(\d+)\]")


class Row(Struct, kw_only=True):
    """One process of a pipeline. Unknown values, such as most of another program's, are None.

    Attributes:
        pipeline: from 1; connected processes have the same.
        stage: ``broker``, ``run``, or ``other`` for another program.
        seconds: of its life.
        records: RECORDs that a sidecar counted, all lines of a broker.
        reading: share of the time between two looks that it waited for input, 0 to 1; ``writing`` for its output.
        waiting: ``reading`` when the process before it is slow, ``writing`` when the process after it is, ``neither``.
        sinks: the stats of each sink.
    """

    pipeline: int = 0
    stage: str
    label: str = ""
    pid: int
    started: str | None = None
    seconds: float | None = None
    bytes: int | None = None
    records: int | None = None
    bytes_per_second: float | None = None
    records_per_second: float | None = None
    reading: float | None = None
    writing: float | None = None
    waiting: str | None = None
    sinks: dict[str, dict[str, Any]] = field(default_factory=dict)


class Neighbour(Struct, frozen=True, kw_only=True):
    """Another program, with the pipes that are its stdin and stdout."""

    pid: int
    name: str
    stdin: int | None
    stdout: int | None


class PipeMonitor:
    """Reads the status of all stages repeatedly; rates are those between a stage's last two writes."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int | None], PipeStage] = {}
        self._before: dict[tuple[int, int | None], PipeStage] = {}

    def look(self) -> list[Row]:
        """Return one row a process, in the order of the pipes.

        Raises:
            OSError: the folder of the stages cannot be read.
        """
        stages = {(stage.pid, stage.begun): stage for stage in read_stages()}
        for key, stage in stages.items():
            last = self._last.get(key)
            if last is not None and last.seconds < stage.seconds:
                self._before[key] = last
        self._last = stages
        self._before = {key: stage for key, stage in self._before.items() if key in stages}
        rows = [rates(self._before.get(key), stage) for key, stage in stages.items()]
        return in_pipe_order(list(stages.values()), rows, neighbours(stages.values()))

    @property
    def is_settled(self) -> bool:
        """Whether every stage was read at two times."""
        return self._last.keys() <= self._before.keys()


def rates(before: PipeStage | None, now: PipeStage) -> Row:
    """Return a stage's row from two of its status files; without an earlier one, rates are those of its whole life."""
    stats, earlier = now.stats, before.stats if before is not None else {}
    seconds = now.seconds - (before.seconds if before is not None else 0.0)

    def grown(name: str) -> float | None:
        value, old = stats.get(name), earlier.get(name, 0)
        if not isinstance(value, (int, float)) or not isinstance(old, (int, float)) or seconds <= 0:
            return None
        return max(0.0, (value - old) / seconds)

    records = "records" if "records" in stats else "lines"
    reading, writing = grown("read_wait"), grown("write_wait")
    sinks = stats.get("sinks")
    return Row(
        stage=now.stage,
        label=_printable(now.label),
        pid=now.pid,
        started=now.started,
        seconds=now.seconds,
        bytes=_whole(stats.get("bytes")),
        records=_whole(stats.get(records)),
        bytes_per_second=grown("bytes"),
        records_per_second=grown(records),
        reading=None if reading is None else min(1.0, reading),
        writing=None if writing is None else min(1.0, writing),
        waiting=_waiting(reading, writing, grown("bytes")),
        sinks={name: item for name, item in sinks.items() if isinstance(item, dict)} if isinstance(sinks, dict) else {},
    )


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _waiting(reading: float | None, writing: float | None, speed: float | None) -> str | None:
    if reading is None or writing is None:
        return None
    if max(reading, writing) < _IDLE_SHARE:
        return "neither" if speed else None  # nothing moved and no wait has ended: who it waits for is not known yet
    return "reading" if reading >= writing else "writing"


def neighbours(stages: Iterable[PipeStage]) -> list[Neighbour]:
    """Return the programs next to a stage in its pipeline; none without /proc.

    A program that shares a stage's stdin or stdout, such as the command that a sidecar runs or a shell around a stage,
    is not next to it. If several programs hold the same end of a pipe, the last one to start is reported: the others
    wait for it.
    """
    known = {stage.pid for stage in stages}
    inputs, outputs = {stage.stdin for stage in stages}, {stage.stdout for stage in stages}
    found: dict[tuple[str, int | None], Neighbour] = {}
    try:
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return []
    for pid in pids:
        if pid in known:
            continue
        stdin, stdout = _pipe(pid, 0), _pipe(pid, 1)
        if (stdin is not None and stdin in inputs) or (stdout is not None and stdout in outputs):
            continue
        for side, pipe, wanted in (("after", stdin, outputs), ("before", stdout, inputs)):
            if pipe is not None and pipe in wanted:
                found[side, pipe] = Neighbour(pid=pid, name=_name(pid), stdin=stdin, stdout=stdout)
    return sorted(set(found.values()), key=lambda neighbour: neighbour.pid)


def _pipe(pid: int, descriptor: int) -> int | None:
    try:
        match = _PIPE.fullmatch(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    except OSError:
        return None  # gone, somebody else's, or closed
    return int(match[1]) if match else None


def _name(pid: int) -> str:
    """Return the name of a process; for a Python program, the script's name."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = [os.path.basename(part.decode("utf-8", "replace")) for part in file.read(4096).split(b"\0")]
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return "?"
    is_python = arguments[0].startswith("python") and len(arguments) > 1 and arguments[1][:1] not in ("", "-")
    return _printable(arguments[1] if is_python else name)


def _printable(text: str) -> str:
    """Remove characters that would move a terminal's cursor."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])


def in_pipe_order(stages: Sequence[PipeStage], rows: Sequence[Row], others: Sequence[Neighbour]) -> list[Row]:
    """Number the pipelines, and sort the rows in the order of the data flow.

    Args:
        stages: where each of ``rows``, at the same index, stands.
        others: programs between and beside them, which get rows too.
    """
    ends = [(stage.stdin, stage.stdout) for stage in stages] + [(other.stdin, other.stdout) for other in others]
    all_rows = [*rows, *(Row(stage="other", label=other.name, pid=other.pid) for other in others)]
    readers: dict[int, list[int]] = {}
    for index, (stdin, _) in enumerate(ends):
        if stdin is not None:
            readers.setdefault(stdin, []).append(index)
    after = [[i for i in readers.get(out, ()) if i != index] if out else [] for index, (_, out) in enumerate(ends)]
    before: list[list[int]] = [[] for _ in ends]
    for index, following in enumerate(after):
        for other in following:
            before[other].append(index)

    ordered: list[Row] = []
    placed: set[int] = set()
    pipeline = 0
    for seed in range(len(all_rows)):
        if seed in placed:
            continue
        pipeline += 1
        members, frontier = {seed}, [seed]
        while frontier:
            index = frontier.pop()
            fresh = [i for i in (*after[index], *before[index]) if i not in members]
            members.update(fresh)
            frontier.extend(fresh)
        for index in _sorted(members, before):
            all_rows[index].pipeline = pipeline
            ordered.append(all_rows[index])
        placed |= members
    return ordered


def _sorted(members: set[int], before: Sequence[Sequence[int]]) -> list[int]:
    """Sort topologically; a ring is broken at its oldest process."""
    result: list[int] = []
    waiting = sorted(members)
    while waiting:
        free = next((i for i in waiting if all(other in result for other in before[i])), waiting[0])
        result.append(free)
        waiting.remove(free)
    return result
