"""Raw events in statements: ``balog."PATH"``, in Spark's SQL ``balog.`PATH```.

The path is a given source or lies in one.

A statement may come from somebody else than the command line, so it chooses among the sources of the command line and
the files in them, and can't name other files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from balog.common.errors import ConfigError
from balog.common.text import suggest

if TYPE_CHECKING:
    from balog.analytics.reading.tasks import SourceFile

RAW = "balog."
"""The beginning of the names of raw events; the path follows."""

MAX_SQL = 1 << 20
"""The longest statement, in characters."""

_ESCAPE = re.compile(r"(?:^|/)\.\.(?:/|$)|[,\x00-\x1f\x7f]")
"""A parent folder, a comma, or a control character."""


class RawSource(NamedTuple):
    """The raw events of a path in a statement.

    Attributes:
        name: the name of the table, ``balog.PATH``.
        files: the files.
        topic: the URL of a topic, instead of files.
    """

    name: str
    files: tuple[SourceFile, ...]
    topic: str = ""

    @property
    def options(self) -> dict[str, str]:
        """The options of the data source that reads them."""
        return {"path": self.topic} if self.topic else {"files": json.dumps(self.files)}


def check_length(sql: str) -> None:
    """Check the length of a statement.

    Raises:
        ConfigError: it is longer than ``MAX_SQL``.
    """
    if len(sql) > MAX_SQL:
        raise ConfigError(f"a statement of {len(sql):,} characters; at most {MAX_SQL:,} are read", "SQL")


def find_source(path: str, sources: Sequence[str], where: str = "") -> str:
    """Return the source that a path of a statement is, or lies in.

    Args:
        path: as the statement has it.
        sources: files, folders, globs, URLs and topics.
        where: the position, for the error.

    Raises:
        ConfigError: it lies in none of them.
    """
    from balog.analytics.reading.topics import is_topic
    from balog.singer.batch.dialects import shown

    if path in sources:
        return path
    if path.strip() and not is_topic(path) and not _ESCAPE.search(unquote(path)):
        for source in sources:
            if not is_topic(source) and _lies_in(_absolute(path), source):
                return source
    near = suggest(path, [shown(source) for source in sources], limit=20)
    raise ConfigError(f"no source {shown(path)!r:.200}{where}; --source PATH allows reading one{near}", "SQL")


def open_source(path: str, sources: Sequence[str]) -> RawSource:
    """List the files of a path in a statement.

    Raises:
        ConfigError: the path lies in no source, does not exist, or leads to files outside of its source.
        StorageError: a store does not answer.
    """
    from balog.analytics.reading.inputs import read_inputs
    from balog.analytics.reading.topics import is_topic

    source = find_source(path, sources)
    if is_topic(path):
        return RawSource(RAW + path, (), path)
    files = read_inputs({"paths": json.dumps([_absolute(path)])}).files()
    # A statement may not follow a link out of the source.
    outside = [] if path == source else [file for file in files if not _is_inside(file.path, source)]
    if outside:
        raise ConfigError(f"it leads to {outside[0].path!r:.200}, which is not in {source!r:.200}", path)
    return RawSource(RAW + path, tuple(files))


def _lies_in(path: str, source: str) -> bool:
    root = _absolute(source).rstrip("/")
    return path == root or path.startswith(f"{root}/")


def _is_inside(path: str, source: str) -> bool:
    """Return whether a file lies in a source, also after links are followed."""
    from balog.analytics.reading.remote import is_remote

    if is_remote(path) or not _lies_in(path, source):
        return _lies_in(path, source)
    return _lies_in(os.path.realpath(_absolute(path)), os.path.realpath(_absolute(source)))


def _absolute(path: str) -> str:
    from balog.analytics.reading.inputs import absolute
    from balog.analytics.reading.remote import local_path

    return absolute(local_path(path))
