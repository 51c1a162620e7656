"""How files are shared out among tasks, and how even that came out."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from balog.analytics.reading.files import Slice, SourceFile

__all__ = ["Spread", "plan", "share_out", "spread"]

_PACKED = (".gz", ".zst", ".bz2")
_LINES = (".jsonl", ".ndjson")  # what was added to another file is not cut: its form may span lines
_PACKED_RATIO = 8  # what a byte of compressed JSON lines about weighs against a plain one
_OPENING = 64 * 1024  # what it costs to open a file, in bytes that could have been read instead
_CUTS = 2  # pieces of plain files are so much smaller than a task, so that tasks come out alike
_SMALLEST_TASK = 8 * 1024 * 1024
_LARGEST_TASK = 512 * 1024 * 1024


class Spread(NamedTuple):
    """How files came out in tasks.

    ``bytes`` are as they lie on disk. ``heaviest`` is how much more the heaviest task has than the mean one, after what
    its bytes weigh when they are decompressed: 1.0 is even; 3.0 says that a task takes about three times as long.
    """

    tasks: int
    files: int
    bytes: int
    heaviest: float


def plan(files: Sequence[SourceFile], parallel: int) -> list[list[Slice]]:
    """Share files out: about two tasks for each of ``parallel`` workers, and more when a task would grow too large.

    Small files come together in a task; large plain ones are cut (at any byte: who reads a slice takes the lines that
    begin in it). What is compressed is told by its name alone; where the name says nothing of it, the worker does.
    """
    return share_out([Slice(file.path) for file in files], {file.path: file.size for file in files}, parallel)


def share_out(stretches: Sequence[Slice], sizes: dict[str, int], parallel: int) -> list[list[Slice]]:
    """Share stretches of files out, as ``plan`` does with whole ones; ``sizes`` are those of the files, in bytes."""
    weights = [_weight(piece, sizes) for piece in stretches]
    total = sum(weights)
    share = max(_SMALLEST_TASK, min(_LARGEST_TASK, -(-total // (2 * max(parallel, 1)))))
    pieces: list[tuple[int, Slice]] = []
    for weight, piece in zip(weights, stretches):
        end = sizes[piece.path] if piece.end is None else piece.end
        count = -(-(end - piece.start) * _CUTS // share)
        is_growth = piece.end is not None and not piece.path.endswith(_LINES)
        if count <= 1 or is_growth or piece.path.endswith(_PACKED):
            pieces.append((weight, piece))
            continue
        cuts = [piece.start + (end - piece.start) * number // count for number in range(count)]
        for start, stop in zip(cuts, [*cuts[1:], None]):
            pieces.append(((end if stop is None else stop) - start, Slice(piece.path, start, stop or piece.end)))
    count = -(-total // share)
    if count > parallel:
        count = -(-count // parallel) * parallel  # no worker waits for another's last task
    return _packed(pieces, max(1, count))


def spread(tasks: Sequence[Sequence[Slice]], files: Sequence[SourceFile]) -> Spread:
    """Tell how even tasks came out that ``plan`` made of these files."""
    sizes = {file.path: file.size for file in files}
    weights = [sum(_weight(piece, sizes) for piece in slices) for slices in tasks]
    mean = sum(weights) / len(weights) if weights else 0
    return Spread(len(tasks), len(files), sum(sizes.values()), round(max(weights) / mean, 2) if mean else 1.0)


def _weight(piece: Slice, sizes: dict[str, int]) -> int:
    size = (sizes[piece.path] if piece.end is None else piece.end) - piece.start
    return max(0, size) * (_PACKED_RATIO if piece.path.endswith(_PACKED) else 1) + (0 if piece.start else _OPENING)


def _packed(pieces: list[tuple[int, Slice]], count: int) -> list[list[Slice]]:
    """Put the heaviest piece first, each to the task that has the least."""
    tasks: list[list[Slice]] = [[] for _ in range(min(count, len(pieces)))]
    heap = [(0, number) for number in range(len(tasks))]
    for weight, piece in sorted(pieces, key=lambda item: (-item[0], item[1].path, item[1].start)):
        lightest, number = heap[0]
        tasks[number].append(piece)
        heapq.heapreplace(heap, (lightest + weight, number))
    return [slices for slices in tasks if slices]
