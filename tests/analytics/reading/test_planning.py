"""Sharing files out among tasks."""

import builtins
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.tasks import Slice, SourceFile, plan, plan_slices

MIB = 1024 * 1024


def test_twenty_thousand_small_files_are_planned_without_opening_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2000):
        if number % 100 == 0:
            folder = tmp_path / f"date={number}"
            folder.mkdir()
        (folder / f"{number}.jsonl").write_bytes(b"{}\n")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(builtins, "open", refuse)
    files = find_files(str(tmp_path))
    files += [SourceFile(f"/more/{number}.jsonl.gz", 1000 + number % 7) for number in range(18_000)]
    tasks = plan(files, 4)
    monkeypatch.undo()
    assert sorted(piece.path for task in tasks for piece in task) == sorted(file.path for file in files)
    assert len(tasks) == 8
    assert {len(task) for task in tasks} == {2500}


@given(st.lists(st.tuples(st.integers(0, 300 * MIB), st.booleans()), max_size=20), st.integers(1, 8))
def test_whatever_the_sizes_each_byte_is_in_one_slice_and_packed_files_are_whole(
    sizes: list[tuple[int, bool]], parallel: int
) -> None:
    files = [SourceFile(f"{n}.jsonl{'.gz' * packed}", size) for n, (size, packed) in enumerate(sizes)]
    tasks = plan(files, parallel)
    pieces = sorted(piece for task in tasks for piece in task)
    assert all(tasks)
    for file in files:
        mine = [piece for piece in pieces if piece.path == file.path]
        assert (mine[0].start, mine[-1].end) == (0, None)
        assert all(a.end == b.start for a, b in itertools.pairwise(mine))
        assert len(mine) == 1 or not file.path.endswith(".gz")


def test_what_was_added_is_cut_only_where_lines_stand_for_themselves() -> None:
    grown = [Slice("a.jsonl", 10, 10 + 100 * MIB), Slice("b.log", 10, 10 + 100 * MIB)]
    pieces = sorted(
        piece for task in plan_slices(grown, {"a.jsonl": 200 * MIB, "b.log": 200 * MIB}, 4) for piece in task
    )
    lines = [piece for piece in pieces if piece.path == "a.jsonl"]
    assert len(lines) > 1
    assert (lines[0].start, lines[-1].end) == (10, 10 + 100 * MIB)
    assert [piece for piece in pieces if piece.path == "b.log"] == [grown[1]]
