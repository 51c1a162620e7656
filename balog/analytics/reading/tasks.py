"""The files of a source, and the tasks that read slices of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition


class SourceFile(NamedTuple):
    """A file of a source.

    Attributes:
        path: its path or URL.
        size: in bytes.
        modified: seconds since the epoch; 0.0 if unknown.
    """

    path: str
    size: int
    modified: float = 0.0


class Slice(NamedTuple):
    """Bytes ``start`` to ``end`` of a file; ``end`` None is the file's end. A compressed file is always whole."""

    path: str
    start: int = 0
    end: int | None = None


COMPRESSED = (".gz", ".zst")
"""Suffixes of compressed files."""

_LINES = (".jsonl", ".ndjson")  # lines that were added to another file are not split: its form may span lines
COMPRESSED_WEIGHT = 8
"""How many bytes of JSON lines a compressed byte stands for, approximately."""

_OPENING = 64 * 1024  # the cost of opening a file, in bytes that could have been read instead
_CUTS = 2  # plain files are split into pieces of this fraction of a task, so that tasks are even
_SMALLEST_TASK = 8 * 1024 * 1024
_LARGEST_TASK = 512 * 1024 * 1024


def plan(files: Sequence[SourceFile], parallel: int) -> list[list[Slice]]:
    """Plan tasks: about two for each of ``parallel`` workers, and more when tasks would become too large.

    Small files share a task. Large plain files are split at any byte: the reader of a slice reads the lines that begin
    in it. A compressed file is recognized by its name; if the name does not show it, the worker recognizes it.
    """
    return plan_slices([Slice(file.path) for file in files], {file.path: file.size for file in files}, parallel)


def plan_slices(split_bounds: Sequence[Slice], sizes: dict[str, int], parallel: int) -> list[list[Slice]]:
    """Plan tasks for slices of files, as ``plan`` does for whole files; ``sizes`` are the files' sizes in bytes."""
    weights = [_weight(piece, sizes) for piece in split_bounds]
    total = sum(weights)
    share = max(_SMALLEST_TASK, min(_LARGEST_TASK, -(-total // (2 * max(parallel, 1)))))
    pieces: list[tuple[int, Slice]] = []
    for weight, piece in zip(weights, split_bounds):
        end = sizes[piece.path] if piece.end is None else piece.end
        count = -(-(end - piece.start) * _CUTS // share)
        is_growth = piece.end is not None and not piece.path.endswith(_LINES)
        if count <= 1 or is_growth or piece.path.endswith(COMPRESSED):
            pieces.append((weight, piece))
            continue
        cuts = [piece.start + (end - piece.start) * number // count for number in range(count)]
        for start, stop in zip(cuts, [*cuts[1:], None]):
            pieces.append(((end if stop is None else stop) - start, Slice(piece.path, start, stop or piece.end)))
    count = -(-total // share)
    if count > parallel:
        count = -(-count // parallel) * parallel  # no worker is idle while another one has a last task
    return _packed(pieces, max(1, count))


def partitions(tasks: Sequence[Sequence[Slice]]) -> list[InputPartition]:
    """Return a partition of Spark for each task, or an empty one if there is no task, because Spark needs one."""
    from pyspark.sql.datasource import InputPartition

    return [InputPartition([tuple(piece) for piece in task]) for task in tasks] or [InputPartition([])]


def _weight(piece: Slice, sizes: dict[str, int]) -> int:
    size = (sizes[piece.path] if piece.end is None else piece.end) - piece.start
    return max(0, size) * (COMPRESSED_WEIGHT if piece.path.endswith(COMPRESSED) else 1) + (
        0 if piece.start else _OPENING
    )


def _packed(pieces: list[tuple[int, Slice]], count: int) -> list[list[Slice]]:
    """Assign each piece, heaviest first, to the task with the least weight."""
    tasks: list[list[Slice]] = [[] for _ in range(min(count, len(pieces)))]
    heap = [(0, number) for number in range(len(tasks))]
    for weight, piece in sorted(pieces, key=lambda item: (-item[0], item[1].path, item[1].start)):
        lightest, number = heap[0]
        tasks[number].append(piece)
        heapq.heapreplace(heap, (lightest + weight, number))
    return [slices for slices in tasks if slices]
