"""Which files a path means, and how they are shared out among tasks."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from balog.errors import ConfigError

__all__ = ["ENDINGS", "Slice", "find", "packing", "plan"]

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
"""The names that a folder is searched for; a file that is named itself may be called anything."""

_PACKED_RATIO = 8  # what a byte of compressed JSON lines about weighs against a plain one
_CUTS = 2  # pieces of plain files are so much smaller than a task, so that tasks come out alike
_SMALLEST_TASK = 8 * 1024 * 1024
_LARGEST_TASK = 512 * 1024 * 1024


class Slice(NamedTuple):
    """Bytes ``start`` to ``end`` of a file; ``end`` None is its end. A compressed file is always whole."""

    path: str
    start: int = 0
    end: int | None = None


def find(paths: str | Sequence[str]) -> list[str]:
    """Give the files that paths mean, sorted, each once.

    Args:
        paths: files, folders (with everything below them), globs (``**`` too), ``file:`` URLs; one string may hold
            several with commas between. Names in a folder or from a glob that begin with ``.`` or ``_`` are left out:
            they are still being written.

    Raises:
        ConfigError: a path that does not exist, or a glob that matches nothing.
    """
    found: set[str] = set()
    for path in _separate([paths] if isinstance(paths, str) else paths):
        if os.path.isdir(path):
            found.update(_below(path))
        elif os.path.exists(path):
            found.add(path)
        elif glob.has_magic(path):
            matches = [match for match in glob.glob(path, recursive=True) if not _is_hidden(os.path.basename(match))]
            if not matches:
                raise ConfigError("no file matches; check the pattern", path)
            for match in matches:
                found.update(_below(match) if os.path.isdir(match) else [match])
        else:
            raise ConfigError(
                "no such file or folder; give an archive's folder, a .jsonl or .jsonl.gz file, or a glob", path
            )
    return sorted(found)


def _separate(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        pieces = [path] if os.path.exists(_local(path)) else [piece for piece in path.split(",") if piece]
        yield from map(_local, pieces)


def _local(path: str) -> str:
    if not path.startswith("file:"):
        return path
    return unquote(urlsplit(path).path)


def _below(folder: str) -> Iterable[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (os.path.join(here, name) for name in names if name.endswith(ENDINGS) and not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def packing(path: str) -> str:
    """Tell by its first bytes how a file is compressed, whatever it is called: "gzip", "zstd", or "" if it isn't."""
    with open(path, "rb") as file:
        first = file.read(4)
    return "gzip" if first.startswith(b"\x1f\x8b") else "zstd" if first == b"\x28\xb5\x2f\xfd" else ""


def plan(files: Sequence[str], parallel: int) -> list[list[Slice]]:
    """Share files out: about two tasks for each of ``parallel`` workers, and more when a task would grow too large.

    Small files come together in a task; large plain ones are cut (at any byte: who reads a slice takes the lines that
    begin in it).
    """
    sizes = {path: Path(path).stat().st_size for path in files}
    packed = {path for path in files if packing(path)}
    total = sum(size * (_PACKED_RATIO if path in packed else 1) for path, size in sizes.items())
    share = max(_SMALLEST_TASK, min(_LARGEST_TASK, -(-total // (2 * max(parallel, 1)))))
    pieces: list[tuple[int, Slice]] = []
    for path, size in sizes.items():
        if path in packed:
            pieces.append((size * _PACKED_RATIO, Slice(path)))
            continue
        count = max(1, -(-size * _CUTS // share))
        cuts = [size * number // count for number in range(count)]
        for start, end in zip(cuts, [*cuts[1:], None]):
            pieces.append(((size if end is None else end) - start, Slice(path, start, end)))
    count = -(-total // share)
    if count > parallel:
        count = -(-count // parallel) * parallel  # no worker waits for another's last task
    return _packed(pieces, max(1, count))


def _packed(pieces: list[tuple[int, Slice]], count: int) -> list[list[Slice]]:
    """Put the heaviest piece first, each to the task that has the least."""
    tasks: list[tuple[int, list[Slice]]] = [(0, []) for _ in range(min(count, len(pieces)))]
    for weight, piece in sorted(pieces, key=lambda item: (-item[0], item[1].path, item[1].start)):
        lightest = min(range(len(tasks)), key=lambda number: tasks[number][0])
        tasks[lightest] = (tasks[lightest][0] + weight, [*tasks[lightest][1], piece])
    return [slices for _, slices in tasks if slices]
