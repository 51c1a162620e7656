"""Sending what waits in a spool, after the brokers that left it are gone."""

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

from balog.errors import ConfigError, EventError
from balog.event import decode
from balog.outbound.dead_letters import DeadLetter
from balog.outbound.segment import LinesFile, Segment
from balog.outbound.spool import LaneSpool, Spool, SpoolConfig, SpooledSink, lane_folder
from balog.outbound.stats import Figures
from balog.outbound.worker import Lane
from balog.sinks.base import SinkConfig

__all__ = ["Backlog", "Plan", "Replay", "enter", "find_backlogs", "look", "plan", "revive"]

IDLE_SECONDS = 60.0
"""How long a replay without a deadline goes on at sinks that take nothing."""

_STEP = 0.1
_REVIVE_BYTES = 4 << 20


class Backlog(Struct, kw_only=True):
    """What waits in a spool for one sink.

    Attributes:
        folder: its folder in the spool.
        name: what the sink is called.
        sink: how to build it; None when that can't be read any more, and ``problem`` says why.
        events: how many wait.
        bytes: bytes of their files.
        oldest: the time of the first event that waits.
        letters: dead letters.
        held: events in files that a running broker holds; they are its own to send.
    """

    folder: Path
    name: str
    sink: SpooledSink | None = None
    problem: str = ""
    events: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    letters: int = 0
    held: int = 0


class Plan(NamedTuple):
    """A backlog and the config of the sink that it goes to. ``cwd`` is where relative paths in that begin."""

    backlog: Backlog
    config: SinkConfig
    cwd: str | None


def find_backlogs(spool: Path) -> list[Backlog]:
    """Look what waits in a spool, and change nothing.

    Raises:
        ConfigError: there is no such folder, it can't be read, or it is another kind of folder.
    """
    try:
        entries = sorted(spool.iterdir())
    except OSError as error:
        raise ConfigError(f"no spool: {error.strerror}; give the path of a broker's spool", str(spool)) from None
    folders = [entry for entry in entries if _is_of_sink(entry)]
    if entries and not folders:
        raise ConfigError("no spool: none of what is there is a sink's; give the path of a broker's spool", str(spool))
    return [look(folder) for folder in folders]


def _is_of_sink(folder: Path) -> bool:
    if not folder.is_dir() or folder.name.startswith("."):
        return False
    return (folder / "sink.json").exists() or any(folder.glob("*.jsonl")) or any(folder.glob("dead/*.jsonl"))


def look(folder: Path) -> Backlog:
    """Look what waits in the folder of one sink; see ``find_backlogs``."""
    found = Backlog(folder=folder, name=folder.name)
    try:
        found.sink = msgspec.json.decode((folder / "sink.json").read_bytes(), type=SpooledSink)
        found.name = found.sink.name
    except OSError as error:
        found.problem = f"{folder / 'sink.json'}: {error.strerror}"
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        found.problem = f"{folder / 'sink.json'}: {error}"
    for path in sorted(folder.glob("*.jsonl")):
        try:
            looked = Segment.look_at(path)
        except OSError as error:
            found.problem = found.problem or f"{path}: {error.strerror or error}"
            continue
        if looked is None:
            continue
        segment, is_held = looked
        with suppress(OSError, EventError):
            lines, _ = segment.read(1, 1)
            time_ = decode(lines[0]).header.timestamp if lines else None
            found.oldest = min((at for at in (found.oldest, time_) if at), default=None)
        found.held += segment.waiting if is_held else 0
        found.events += 0 if is_held else segment.waiting
        found.bytes += segment.size - segment.position
        segment.leave()
    for path in sorted(folder.glob("dead/*.jsonl")):
        with suppress(OSError):
            found.letters += path.read_bytes().count(b"\n")
    return found


def revive(backlog: Backlog) -> int:
    """Make dead letters wait again, and give how many. What is no event any more, or is held, stays a dead letter.

    Raises:
        OSError: they can't be written; they are dead letters still.
    """
    revived = 0
    for path in sorted(backlog.folder.glob("dead/*.jsonl")):
        letters = LinesFile.adopt(path)
        if letters is None:
            continue
        waiting: list[LinesFile] = []
        try:
            revived += _revive_file(backlog.folder, letters, waiting)
            letters.remove()
        except BaseException:
            for file in waiting:
                file.remove()
            raise
        finally:
            letters.leave()
        for file in waiting:
            file.leave()
    return revived


def _revive_file(folder: Path, letters: LinesFile, written: list[LinesFile]) -> int:
    segment: LinesFile | None = None
    rest: LinesFile | None = None
    count = at = 0
    while at < letters.size:
        lines, at = letters.read_from(at, 10_000, _REVIVE_BYTES)
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
                rest = LinesFile.create(letters.path.parent)
                written.append(rest)
            rest.append(others)
    return count


def _body_of(line: bytes) -> bytes:
    try:
        letter = msgspec.json.decode(line, type=DeadLetter)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    return b"" if letter.event is msgspec.UNSET else bytes(letter.event)


def plan(backlog: Backlog, type: type, configs: Sequence[SinkConfig] | None) -> Plan:
    """Decide how the sink of a backlog is built: as its broker built it, or as a newer config says.

    Args:
        type: the union of all sinks' configs.
        configs: the sinks of the newer config: of them the same one is taken, or the one of the same name, or the only
            one of the same type.

    Raises:
        ConfigError: it can't be told.
    """
    if configs is None:
        if backlog.sink is None:
            raise ConfigError(f"{backlog.problem}; give the sink's config with --config")
        try:
            return Plan(backlog, msgspec.json.decode(backlog.sink.sink, type=type), backlog.sink.folder)
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"{error}; another version of balog wrote it; give the sink's config with --config",
                str(backlog.folder / "sink.json"),
            ) from None
    for fits in (
        lambda config: lane_folder(config) == backlog.folder.name,
        lambda config: config.name == backlog.name,
        lambda config: config.name.split()[0] == backlog.name.split()[0],
    ):
        found = [config for config in configs if fits(config)]
        if len(found) == 1:
            return Plan(backlog, found[0], None)
        if found:
            break
    what = f"{len(found)} sinks" if found else "no sink"
    raise ConfigError(f"the config has {what} that {backlog.name} could be; there are {_names(configs)}")


def _names(configs: Sequence[SinkConfig]) -> str:
    return ", ".join(config.name for config in configs) or "none"


class Replay:
    """Sends backlogs to their sinks, all at once.

    Args:
        spool: the spool's folder.
        plans: what is sent where.
        say: takes one line for people.

    Raises:
        ConfigError: a sink can't be built.
    """

    def __init__(self, spool: Path, plans: Sequence[Plan], say: Callable[[str], None]) -> None:
        whole = Spool(SpoolConfig(path=str(spool), max_bytes=1 << 62))
        self._lanes = []
        for backlog, config, _ in plans:
            unfiltered = msgspec.structs.replace(config, where=None)  # type: ignore[type-var]
            self._lanes.append(Lane(unfiltered, say, spool=LaneSpool(whole, backlog.folder)))

    def run(
        self,
        deadline: float | None,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda sent: None,
    ) -> list[Figures]:
        """Send until nothing waits, the deadline has passed, or without one no sink takes anything any more.

        Args:
            deadline: seconds.
            on_progress: is given now and then how many events are done with.

        Returns:
            How it ended at each sink, in the order of the plans.
        """
        until = float("inf") if deadline is None else time.monotonic() + deadline
        for lane in self._lanes:
            lane.start()
            lane.drain(until)
        done, done_at = -1, time.monotonic()
        while any(lane.is_running for lane in self._lanes):
            time.sleep(_STEP)
            now = time.monotonic()
            sent = sum(figures.delivered + figures.dead for figures in (lane.figures() for lane in self._lanes))
            on_progress(sent)
            if sent != done:
                done, done_at = sent, now
            if should_stop() or now >= until or (deadline is None and now - done_at >= IDLE_SECONDS):
                for lane in self._lanes:
                    lane.drain(now)
                break
        for lane in self._lanes:
            lane.finish()
        return [lane.figures() for lane in self._lanes]


def enter(cwd: str | None, say: Callable[[str], None]) -> None:
    """Go where a broker ran, so that relative paths mean what they meant there."""
    if cwd is None or cwd == os.getcwd():
        return
    try:
        os.chdir(cwd)
    except OSError as error:
        say(f"the broker ran in {cwd}: {error.strerror}; relative paths in its config begin here instead")
