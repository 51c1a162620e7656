"""Replay of a spool: the events that brokers left in it are delivered after those brokers ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from balog.common.config.tagged_config import decode_tagged
from balog.common.errors import ConfigError, EventError
from balog.delivery.dead_letters import SinkDeadLetter
from balog.delivery.segment import LinesFile, Segment
from balog.delivery.spool import SinkSpool, Spool, SpoolConfig, SpooledSink, sink_folder
from balog.delivery.stats import SinkStats
from balog.delivery.worker import SinkWorker
from balog.event import decode
from balog.sinks import AnySinkConfig, SinkConfig

IDLE_SECONDS = 60.0
"""Seconds without progress after which a replay ends."""

_STEP = 0.1
_REDRIVE_BYTES = 4 << 20


class Backlog(Struct, kw_only=True):
    """The events that wait in a spool for one sink.

    Attributes:
        folder: the sink's folder in the spool.
        name: the sink's name.
        sink: the sink's config; None if it can't be read.
        problem: why the config or a segment can't be read; "" if all can.
        events: how many events wait.
        bytes: the bytes of those events.
        oldest: the timestamp of the first event that waits.
        dead_letters: how many dead letters there are.
        held: events in files that a running broker or replay owns and sends itself.
    """

    folder: Path
    name: str
    sink: SpooledSink | None = None
    problem: str = ""
    events: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    dead_letters: int = 0
    held: int = 0


class Plan(NamedTuple):
    """A backlog and the config of its sink. ``cwd`` is the folder where relative paths of the config begin."""

    backlog: Backlog
    config: SinkConfig
    cwd: str | None


def find_backlogs(spool: Path) -> list[Backlog]:
    """Return the backlogs of a spool, without changing it.

    Raises:
        ConfigError: the folder does not exist, can't be read, or is not a spool.
    """
    try:
        entries = sorted(spool.iterdir())
    except OSError as error:
        raise ConfigError(f"no spool: {error.strerror}; give the path of a broker's spool", str(spool)) from None
    folders = [entry for entry in entries if _is_of_sink(entry)]
    if entries and not folders:
        raise ConfigError("no spool: none of what is there is a sink's; give the path of a broker's spool", str(spool))
    return [read_backlog(folder) for folder in folders]


def _is_of_sink(folder: Path) -> bool:
    if not folder.is_dir() or folder.name.startswith("."):
        return False
    return (folder / "sink.json").exists() or any(folder.glob("*.jsonl")) or any(folder.glob("dead/*.jsonl"))


def read_backlog(folder: Path) -> Backlog:
    """Return the backlog in the folder of one sink, without changing it."""
    sink, problem = None, ""
    try:
        sink = msgspec.json.decode((folder / "sink.json").read_bytes(), type=SpooledSink)
    except OSError as error:
        problem = f"{folder / 'sink.json'}: {error.strerror}"
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        problem = f"{folder / 'sink.json'}: {error}"
    events = size = held = dead_letters = 0
    oldest = None
    for path in sorted(folder.glob("*.jsonl")):
        try:
            inspected = Segment.inspect(path)
        except OSError as error:
            problem = problem or f"{path}: {error.strerror or error}"
            continue
        if inspected is None:
            continue
        segment, is_held = inspected
        with suppress(OSError, EventError):
            lines, _ = segment.read(1, 1)
            first = decode(lines[0]).header.timestamp if lines else None
            oldest = min((at for at in (oldest, first) if at), default=None)
        held += segment.waiting if is_held else 0
        events += 0 if is_held else segment.waiting
        size += segment.size - segment.position
        segment.release()
    for path in sorted(folder.glob("dead/*.jsonl")):
        with suppress(OSError):
            dead_letters += path.read_bytes().count(b"\n")
    return Backlog(
        folder=folder,
        name=sink.name if sink is not None else folder.name,
        sink=sink,
        problem=problem,
        events=events,
        bytes=size,
        oldest=oldest,
        dead_letters=dead_letters,
        held=held,
    )


def redrive(backlog: Backlog) -> int:
    """Turn dead letters into events that wait again, except those that are not events or that a broker holds.

    Returns:
        How many dead letters wait again.

    Raises:
        OSError: the events can't be written; the dead letters are unchanged.
    """
    redriven = 0
    for path in sorted(backlog.folder.glob("dead/*.jsonl")):
        dead_letters = LinesFile.adopt(path)
        if dead_letters is None:
            continue
        waiting: list[LinesFile] = []
        try:
            redriven += _redrive_file(backlog.folder, dead_letters, waiting)
            dead_letters.remove()
        except BaseException:
            for file in waiting:
                file.remove()
            raise
        finally:
            dead_letters.release()
        for file in waiting:
            file.release()
    return redriven


def _redrive_file(folder: Path, dead_letters: LinesFile, written: list[LinesFile]) -> int:
    segment: LinesFile | None = None
    rest: LinesFile | None = None
    count = at = 0
    while at < dead_letters.size:
        lines, at = dead_letters.read_from(at, 10_000, _REDRIVE_BYTES)
        bodies, others = [], []
        for line in lines:
            body = _body_of(line)
            bodies.append(body) if body else others.append(line)
        if bodies:
            if segment is None:
                segment = Segment.create(folder)
                written.append(segment)
            segment.append(bodies)
            count += len(bodies)
        if others:
            if rest is None:
                rest = LinesFile.create(dead_letters.path.parent)
                written.append(rest)
            rest.append(others)
    return count


def _body_of(line: bytes) -> bytes:
    try:
        dead_letter = msgspec.json.decode(line, type=SinkDeadLetter)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    return b"" if dead_letter.event is msgspec.UNSET else bytes(dead_letter.event)


def plan(backlog: Backlog, configs: Sequence[SinkConfig] | None) -> Plan:
    """Choose the config for the sink of a backlog: the one in the spool, or one of ``configs``.

    Args:
        configs: the sinks of a newer config. The same sink is chosen, or else the one of the same name, or else the
            only one of the same type.

    Raises:
        ConfigError: no config can be chosen.
    """
    if configs is None:
        if backlog.sink is None:
            raise ConfigError(f"{backlog.problem}; give the sink's config with --config")
        try:
            return Plan(
                backlog,
                msgspec.json.decode(backlog.sink.sink, type=AnySinkConfig, dec_hook=decode_tagged),
                backlog.sink.folder,
            )
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"{error}; another version of balog wrote it; give the sink's config with --config",
                str(backlog.folder / "sink.json"),
            ) from None
    for fits in (
        lambda config: sink_folder(config) == backlog.folder.name,
        lambda config: config.name == backlog.name,
        lambda config: config.name.split()[0] == backlog.name.split()[0],
    ):
        candidates = [config for config in configs if fits(config)]
        if len(candidates) == 1:
            return Plan(backlog, candidates[0], None)
        if candidates:
            break
    what = f"{len(candidates)} sinks" if candidates else "no sink"
    names = ", ".join(config.name for config in configs) or "none"
    raise ConfigError(f"the config has {what} that {backlog.name} could be; there are {names}")


class SpoolReplay:
    """Sends backlogs to their sinks, all at the same time.

    Args:
        spool: the spool's folder.
        plans: the backlogs and their sinks.
        notify: takes one line for people.

    Raises:
        ConfigError: a sink can't be built.
    """

    def __init__(self, spool: Path, plans: Sequence[Plan], notify: Callable[[str], None]) -> None:
        whole = Spool(SpoolConfig(path=str(spool), max_bytes=1 << 62))
        self._workers = []
        for backlog, config, _ in plans:
            unfiltered = msgspec.structs.replace(config, where=None)  # type: ignore[type-var]
            self._workers.append(SinkWorker(unfiltered, notify, spool=SinkSpool(whole, backlog.folder)))

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> list[SinkStats]:
        """Send until no events wait, or no sink makes progress.

        Returns:
            The counters of each sink, in the order of the plans.
        """
        for worker in self._workers:
            worker.start()
            worker.queue.drain(float("inf"))
        done, done_at = -1, time.monotonic()
        while any(worker.is_running for worker in self._workers):
            time.sleep(_STEP)
            now = time.monotonic()
            sent = sum(worker.queue.answered() for worker in self._workers)
            if sent != done:
                done, done_at = sent, now
            if should_stop() or now - done_at >= IDLE_SECONDS:
                for worker in self._workers:
                    worker.queue.drain(now)
                break
        for worker in self._workers:
            worker.join()
        return [worker.stats() for worker in self._workers]


def enter_folder(cwd: str | None, notify: Callable[[str], None]) -> None:
    """Change to the folder where a broker ran, so that relative paths of its config are valid."""
    if cwd is None or cwd == os.getcwd():
        return
    try:
        os.chdir(cwd)
    except OSError as error:
        notify(f"the broker ran in {cwd}: {error.strerror}; relative paths in its config begin here instead")
