"""The runs of a tap, each made on first access, by the thread that first asks for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from balog.singer.bookmarks import is_after, middle_of
from balog.tap.verify.catalogs import (
    DiscoveryOutput,
    Document,
    as_properties,
    entries,
    id_of,
    is_selected,
    name_of,
    read_discovery,
    replication_key_of,
    select,
    spare_property,
)
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.output_reader import KnownStreams, StateLine
from balog.tap.verify.runs import CommandRun, Options, Runner, Skip, SyncRun, TapRun, made_once
from balog.tap.verify.tap_command import TapCommand, parse_command, read_json

_FIRST = "sync"
RESUMED = "resume from the STATE"
"""Begins the names of the runs from an emitted state."""

_SHORT_RUN = 30.0  # seconds for a tap to reject its input
FOREIGN_STATE = {"bookmarks": {"a_stream_of_another_tap": {"a_key": "2020-01-01T00:00:00Z"}}, "a_key": 1}
"""A well-formed state of a stream that the tap does not have."""


class Trials:
    """A tap and its runs. As a context manager, it removes the folder with the files of the runs.

    Several threads may ask for runs. The first sync precedes all others: one that hangs is not repeated, and one that
    changes the config shows that the others cannot go side by side.

    Args:
        command: the tap's command line.
        options: limits and selection of rules.
        on_run: called with the name of each run before it starts.

    Attributes:
        runner: makes the runs.
        is_older: the tap supports only ``--properties``, not ``--catalog``.

    Raises:
        ConfigError: the program does not exist, or a file of its command does not exist or is not JSON.
    """

    def __init__(
        self, command: Sequence[str], options: Options | None = None, on_run: Callable[[str], None] | None = None
    ) -> None:
        self.options = options or Options()
        self.command: TapCommand = parse_command(command)
        self.config = read_json(self.command.config, "--config") if self.command.config else None
        self.given_state = read_json(self.command.state, "--state") if self.command.state else None
        given = self.command.catalog or self.command.properties
        self._given_catalog: Document | None = read_json(given, "--catalog") if given else None
        self.leaks = Leaks(self.config)
        self.is_older = False
        self.runner = Runner(self.command, self.options, self.config, on_run or (lambda name: None))
        self._locks: dict[str, threading.RLock] = {}

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    @property
    def made(self) -> list[TapRun]:
        """The finished runs, in the order of their starts."""
        return self.runner.made

    def lock_of(self, name: str) -> threading.RLock:
        """Return the lock of a property that is made once."""
        return self._locks.setdefault(name, threading.RLock())

    @made_once
    def discovery(self) -> CommandRun:
        """The run with ``--discover``."""
        return self._ask("discover", "--discover")

    @made_once
    def discovered(self) -> DiscoveryOutput:
        """The output of ``--discover``."""
        return read_discovery(bytes(self.discovery.output.data))

    @made_once
    def second_discovery(self) -> DiscoveryOutput:
        """The output of a second ``--discover``."""
        return read_discovery(bytes(self._ask("discover again", "--discover").output.data))

    @made_once
    def catalog(self) -> Document | None:
        """The catalog of the syncs: the given one with its selection, else all discovered streams."""
        given = self._given_catalog
        if given is not None:
            return select(given, [id_of(entry) for entry in entries(given) if is_selected(entry)])
        document = self.discovered.document
        return None if document is None else select(document)

    @made_once
    def entries(self) -> dict[str, Document]:
        """The selected entries of the catalog, by stream name in messages."""
        return {name_of(entry): entry for entry in entries(self.catalog) if is_selected(entry)}

    @made_once
    def by_catalog(self) -> SyncRun:
        """A sync of all selected streams, from the beginning or from the given state."""
        return self._sync(_FIRST, self.catalog, state=self.given_state)

    @made_once
    def sync(self) -> SyncRun:
        """The sync that most rules judge, with ``--catalog``, or ``--properties`` if the tap supports only that."""
        run = self.by_catalog
        if self.catalog is None or not run.is_whole or run.output.lines or not self.by_properties.output.records:
            return run
        self.is_older = True
        return self.by_properties

    @made_once
    def by_properties(self) -> SyncRun:
        """The same sync with ``--properties``."""
        properties = as_properties(self._catalog())
        return self._sync("sync by --properties", None, properties=properties, state=self.given_state)

    @made_once
    def by_both(self) -> SyncRun:
        """The same sync with both ``--catalog`` and ``--properties``."""
        return self._sync("sync by both", self._catalog(), properties=as_properties(self._catalog()))

    @made_once
    def nothing(self) -> SyncRun:
        """A sync with a catalog that selects nothing."""
        return self._sync("sync of nothing", select(self._catalog(), ()))

    @made_once
    def alone(self) -> tuple[str, SyncRun]:
        """The name and the sync of one stream alone: the first stream with records."""
        self._catalog()
        if len(self.entries) < 2:
            raise Skip("there is only one stream")
        seen = self.sync.output.streams
        name = next((name for name in self.entries if name in seen and seen[name].records), next(iter(self.entries)))
        return name, self._sync(f"sync of {name} alone", select(self._catalog(), [id_of(self.entries[name])]))

    @made_once
    def deselected(self) -> tuple[dict[str, str], SyncRun]:
        """One deselected property by stream name, and the sync."""
        self._catalog()
        left_out = {name: spare for name, entry in self.entries.items() if (spare := spare_property(entry))}
        if not left_out:
            raise Skip("no stream has a property that can be deselected")
        by_id = {id_of(self.entries[name]): spare for name, spare in left_out.items()}
        ids = [id_of(entry) for entry in self.entries.values()]
        return left_out, self._sync("sync of deselected properties", select(self._catalog(), ids, by_id))

    @made_once
    def resumed(self) -> list[tuple[StateLine, SyncRun]]:
        """Syncs from emitted states of the first sync: the first, the last, and others evenly between."""
        sync = self.sync.output
        if sync.last_state is None:
            raise Skip("no STATE was written")
        if self.options.states < 1:
            raise Skip("resuming is turned off: the option states is 0")
        states = [state for state in sync.states if state.line != sync.last_state.line]
        wanted = min(self.options.states - 1, len(states))
        chosen = [states[index * len(states) // wanted] for index in range(wanted)] if wanted else []
        return [
            (state, self._sync(f"{RESUMED} in line {state.line}", self.catalog, state=state.value))
            for state in [*chosen, sync.last_state]
        ]

    @made_once
    def signalled(self) -> SyncRun:
        """A sync that receives SIGTERM after half of the first sync's records."""
        half = self.sync.output.records // 2
        if not half:
            raise Skip("there are too few records to interrupt a run")
        return self._sync("interrupted sync", self.catalog, state=self.given_state, interrupt_after=half)

    @property
    def interrupted(self) -> SyncRun:
        """The same sync, if it ended before all records were written."""
        run = self.signalled
        if run.result.stopped != "interrupt" or run.output.records >= self.sync.output.records:
            raise Skip("the tap ended before it could be interrupted")
        return run

    @made_once
    def after_interruption(self) -> SyncRun:
        """A sync from the last STATE of the interrupted sync, or from the beginning without one."""
        last = self.interrupted.output.last_state
        return self._sync("resume after the interruption", self.catalog, state=last.value if last else self.given_state)

    @made_once
    def foreign_state(self) -> SyncRun:
        """A sync from a state of another tap."""
        return self._sync("state of another tap", self.catalog, state=FOREIGN_STATE)

    @made_once
    def broken_state(self) -> SyncRun:
        """A sync from a state that is not JSON."""
        return self._sync("broken state", self.catalog, state_text='{"bookmarks": {', timeout=_SHORT_RUN)

    @made_once
    def missing_config(self) -> SyncRun:
        """A sync with a config that does not exist."""
        self._with_config()
        missing = self.runner.write("config.json", "").with_name("no-such-config.json")
        return self._sync("missing config", self.catalog, config=missing, timeout=_SHORT_RUN)

    @made_once
    def broken_config(self) -> SyncRun:
        """A sync with a config that is not JSON: the tap's own, truncated."""
        self._with_config()
        text = json.dumps(self.config)
        broken = self.runner.write("config.json", text[: len(text) // 2])
        return self._sync("broken config", self.catalog, config=broken, timeout=_SHORT_RUN)

    @made_once
    def bare_config(self) -> SyncRun:
        """A sync with a config that has only the secrets."""
        self._with_config()
        if not isinstance(self.config, dict):
            raise Skip("the config is not an object")
        kept = {
            key: value
            for key, value in self.config.items()
            if any(path == f"$.{key}" or path.startswith((f"$.{key}.", f"$.{key}[")) for path in self.leaks.secrets)
        }
        return self._sync("bare config", self.catalog, config=self.runner.write("config.json", json.dumps(kept)))

    @made_once
    def later_start(self) -> tuple[str, list[str], SyncRun]:
        """A ``start_date`` in the middle of the records of as many streams as can be, these, and the sync from it."""
        self._with_config()
        config = self.config if isinstance(self.config, dict) else {}
        given = config.get("start_date")
        if not isinstance(given, str):
            raise Skip("the config has no start_date")
        if self.given_state is not None:
            raise Skip("a state was given")
        incremental = {name: stream for name, stream in self.sync.output.streams.items() if stream.replication_key}
        middles = {middle_of(stream.lowest, stream.highest, given) for stream in incremental.values()} - {""}
        if not middles:
            raise Skip("no stream has replication values far enough apart in start_date's format")
        streams_after = {
            middle: [
                name
                for name, stream in incremental.items()
                if is_after(middle, stream.lowest) and is_after(stream.highest, middle)
            ]
            for middle in sorted(middles)
        }
        middle, streams = max(streams_after.items(), key=lambda each: len(each[1]))
        path = self.runner.write("config.json", json.dumps({**config, "start_date": middle}))
        return middle, streams, self._sync("later start_date", self.catalog, config=path)

    @made_once
    def version(self) -> CommandRun:
        """The run with ``--version``."""
        return self._ask("--version", "--version", timeout=_SHORT_RUN, bare=True)

    @made_once
    def about(self) -> CommandRun:
        """The run with ``--about``."""
        return self._ask("--about", "--about", timeout=_SHORT_RUN, bare=True)

    def _catalog(self) -> Document:
        if self.catalog is None:
            raise Skip("there is no catalog")
        first = self.by_catalog
        if first.result.stopped == "timeout" and not first.output.lines:
            # Other syncs would take as long.
            raise Skip(f"a sync wrote nothing in {first.result.seconds:.0f} s")
        return self.catalog

    def _with_config(self) -> None:
        if self.command.config is None:
            raise Skip("the command has no --config")

    def _sync(
        self,
        name: str,
        catalog: Document | None,
        *,
        properties: Document | None = None,
        state: Any = None,
        state_text: str = "",
        config: Path | None = None,
        interrupt_after: int = 0,
        timeout: float | None = None,
    ) -> SyncRun:
        if name != _FIRST:
            _ = self.by_catalog
        arguments: list[str] = []
        if self.is_older and catalog and not properties:
            properties, catalog = as_properties(catalog), None
        for option, value in (("catalog", catalog), ("properties", properties), ("state", state)):
            text = state_text if option == "state" and state_text else json.dumps(value) if value is not None else ""
            if text:
                arguments += [f"--{option}", str(self.runner.write(f"{option}.json", text))]
        known = KnownStreams(
            replication_keys={stream: replication_key_of(entry) for stream, entry in self.entries.items()},
            ids={stream: id_of(entry) for stream, entry in self.entries.items()},
            state=state,
        )
        line = self.command.line(*arguments, config=config)
        return self.runner.sync(name, line, known, interrupt_after=interrupt_after, timeout=timeout)

    def _ask(self, name: str, *arguments: str, timeout: float | None = None, bare: bool = False) -> CommandRun:
        line = [*self.command.base, *arguments] if bare else self.command.line(*arguments)
        return self.runner.ask(name, line, timeout=timeout)
