"""The inputs of a reader: its parsed options, and the tasks planned for them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from balog.analytics.reading.discovery import Pruner, find_files
from balog.analytics.reading.forms import read_form
from balog.analytics.reading.remote import StoragePool, is_remote, is_secret, store_options
from balog.analytics.reading.tasks import Slice, SourceFile, plan
from balog.analytics.reading.topics import bounds, is_topic, split_bounds
from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.filters.functions import parse_time

_WHERE = "format('balog')"

OPTIONS = (
    *("path", "paths", "since", "until", "form", "cls_type", "schemas", "rollup"),
    *("parallel", "files", "storage_options", "endpoint_url", "state", "maxBytesPerTrigger"),
)
"""The options of the data source, for reads and streams."""

EMPTY = "a path is empty; give a file, a folder or a URL, or . for the working folder"
"""The reason of an error."""


class Inputs(NamedTuple):
    """What a reader reads; Spark sends it to its workers.

    Attributes:
        paths: files, folders, globs, URLs and topics.
        storages: opens stores.
        parallel: the number of workers to plan for.
        since, until: omit files outside of this time, see ``Pruner``; events are not filtered.
        form: the form of the files; "auto" detects that of each.
        listed: files that are listed already, instead of paths.
    """

    paths: tuple[str, ...]
    storages: StoragePool
    parallel: int = 1
    since: datetime | None = None
    until: datetime | None = None
    form: str = "auto"
    listed: tuple[SourceFile, ...] | None = None

    @property
    def topics(self) -> list[str]:
        """The URLs of topics among the paths."""
        return [path for path in self.paths if is_topic(path)]

    def files(self, *, is_growing: bool = False) -> list[SourceFile]:
        """Return the files, see ``find_files``."""
        if self.listed is not None:
            return Pruner(self.storages, self.since, self.until).keep(self.listed)
        paths = [path for path in self.paths if not is_topic(path)]
        return find_files(paths, self.storages, self.since, self.until, is_growing=is_growing)

    def tasks(self) -> list[list[Slice]]:
        """Plan tasks for the existing files and messages.

        Raises:
            ConfigError: a path or topic does not exist or can't be listed.
            StorageError: a store does not answer.
            TopicError: a topic does not answer.
        """
        topics = [piece for url in self.topics for piece in split_bounds(url, bounds(url), self.parallel)]
        return [[piece] for piece in topics] + plan(self.files(), self.parallel)

    def narrow(self, since: datetime | None, until: datetime | None) -> Inputs:
        """Return inputs with a shorter time range: the later ``since`` and the earlier ``until``."""
        later = max(filter(None, (self.since, since)), default=None)
        return self._replace(since=later, until=min(filter(None, (self.until, until)), default=None))


def check_options(options: Iterable[str]) -> None:
    """Reject unknown options of the data source, ignoring case.

    Raises:
        ConfigError: an option is unknown; the message names a similar option, or all.
    """
    names = {name.lower() for name in OPTIONS}
    for option in options:
        if option.lower() not in names and not is_secret(option):  # ``store_options`` has a better message for secrets
            raise ConfigError(f"no option {option!r:.60}{suggest(option, OPTIONS)}", _WHERE)


def absolute(path: str) -> str:
    """Return an absolute path, so that workers in other folders find it; URLs and topics are unchanged.

    Raises:
        ConfigError: the path is empty, which would be the working folder.
    """
    if not path.strip():
        raise ConfigError(EMPTY, "the sources")
    return path if is_remote(path) or path.startswith("file:") or is_topic(path) else os.path.abspath(path)


def read_inputs(options: Mapping[str, str]) -> Inputs:
    """Read the data source's options about its inputs.

    - ``path`` or ``paths``: see ``find_files``; for topics, see ``balog.analytics.reading.topics``.
    - ``since`` and ``until``: times in ISO 8601, in UTC unless they name a zone.
    - ``parallel``: the number of workers to plan for; this machine's cores by default.
    - ``files``: instead of paths, an earlier result of ``find_files``, as a JSON list of ``[path, size, modified]``. A
      file that has vanished since becomes a row of quarantine.
    - ``form``: see ``docs/reference/event-forms.md``.
    - the options of ``store_options``.

    Raises:
        ConfigError: there is no path, or a value is not valid.
    """
    return Inputs(
        tuple(_paths(options)),
        StoragePool(store_options(options)),
        read_number(options, "parallel", os.cpu_count() or 1),
        _moment(options, "since"),
        _moment(options, "until"),
        read_form(options),
        tuple(SourceFile(*file) for file in json.loads(options["files"])) if "files" in options else None,
    )


def _paths(options: Mapping[str, str]) -> Sequence[str]:
    if "files" in options:
        return []
    several = options.get("paths")
    paths = [str(path) for path in json.loads(several)] if several else [options.get("path", "")]
    if all(path.strip() for path in paths):
        return paths
    if several:
        raise ConfigError(EMPTY, "the sources")
    raise ConfigError("no path; use .load(path)", _WHERE)


def read_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Parse an option that is a positive integer.

    Raises:
        ConfigError: it is not a positive integer.
    """
    text = options.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise ConfigError(f"option {name} is {text!r:.40}; give a number from 1", _WHERE)
    return int(text) if text else default


def _moment(options: Mapping[str, str], name: str) -> datetime | None:
    text = options.get(name, "")
    moment = parse_time(text) if text else None
    if text and moment is None:
        raise ConfigError(f"option {name} is {text!r:.40}; expected a time such as 2026-11-20T07:46:12Z", _WHERE)
    return moment
