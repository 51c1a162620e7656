import gzip
import os
from codecs import BOM_UTF8
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given
from hypothesis import strategies as st

from balog.analytics.reading.blocks import Block, new_buffer, read_blocks
from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.tasks import Slice, plan
from balog.common.errors import ConfigError


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"{}\n")


def test_a_folder_means_all_event_files_below_it_but_those_still_being_written(tmp_path: Path) -> None:
    put(tmp_path, "t/date=2026-01-01/a.jsonl", "t/date=2026-01-02/b.jsonl.gz", "README.md")
    put(tmp_path, "t/date=2026-01-02/.c.jsonl.gz.part", "t/.d.jsonl", "_work/e.jsonl", ".git/f.jsonl", "t/_SUCCESS")
    assert [os.path.basename(file.path) for file in find_files(str(tmp_path))] == ["a.jsonl", "b.jsonl.gz"]


def test_a_file_that_is_named_may_be_called_anything(tmp_path: Path) -> None:
    put(tmp_path, ".odd name", "a,b.jsonl")
    for name in (".odd name", "a,b.jsonl"):
        assert [file.path for file in find_files(str(tmp_path / name))] == [str(tmp_path / name)]


def test_globs_lists_and_file_urls_come_together_each_file_once(tmp_path: Path) -> None:
    put(tmp_path, "a/1.jsonl", "a/2.jsonl", "a/.3.jsonl", "b c/4.jsonl")
    several = [f"{tmp_path}/a/*.jsonl", f"{tmp_path}/a/1.jsonl", f"file://{tmp_path}/b%20c"]
    assert [os.path.relpath(file.path, tmp_path) for file in find_files(several)] == [
        "a/1.jsonl",
        "a/2.jsonl",
        "b c/4.jsonl",
    ]


def test_a_file_has_one_name_however_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "[x]/a/1.jsonl", "b/2.jsonl")
    (tmp_path / "[x]/up").symlink_to(tmp_path / "b")
    monkeypatch.chdir(tmp_path / "[x]")
    here = f"{tmp_path}/[x]"
    named = ["a/1.jsonl", "./a//1.jsonl", "a", "a/", ".//a", "?/*", f"{here}/a/1.jsonl", f"file://{tmp_path}/%5Bx%5D/a"]
    assert [file.path for file in find_files(named)] == [f"{here}/a/1.jsonl"]
    assert [file.path for file in find_files("up/../b/*.jsonl")] == [f"{here}/up/../b/2.jsonl"]


def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl")
    os.mkfifo(tmp_path / "p.jsonl")
    for path in (tmp_path, tmp_path / "*.jsonl"):
        assert [os.path.basename(file.path) for file in find_files(str(path))] == ["a.jsonl"]
    with pytest.raises(ConfigError, match="is not a regular file"):
        find_files(str(tmp_path / "p.jsonl"))


def test_a_link_to_nothing_is_left_to_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nothing")
    for path in (tmp_path, tmp_path / "*.jsonl"):
        assert [(os.path.basename(file.path), file.size) for file in find_files(str(path))] == [("gone.jsonl", 0)]


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a valid glob"):
        find_files("memory://lake/a**b")


@pytest.mark.parametrize("name", ["nothing", "no*thing"])
def test_what_is_not_there_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"thing: no (such file|file matches)"):
        find_files(str(tmp_path / name))


def test_an_empty_folder_means_no_file(tmp_path: Path) -> None:
    assert find_files(str(tmp_path)) == []
    assert plan([], 2) == []


def test_a_gzip_file_is_never_cut_and_small_files_share_a_task(tmp_path: Path) -> None:
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(os.urandom(3_000_000)))
    put(tmp_path, *(f"{number}.jsonl" for number in range(50)))
    tasks = plan(find_files(str(tmp_path)), 2)
    assert len(tasks) <= 4
    assert [piece for task in tasks for piece in task if piece.path == str(packed)] == [Slice(str(packed))]


def test_tasks_of_large_files_are_alike(tmp_path: Path) -> None:
    sizes = {"a": 100_000_000, "b": 3_000_000, "c": 41_000_000}
    for name, size in sizes.items():
        with open(tmp_path / f"{name}.jsonl", "wb") as file:
            file.truncate(size)
    tasks = plan(find_files(str(tmp_path)), 2)
    weights = [
        sum((os.path.getsize(piece.path) if piece.end is None else piece.end) - piece.start for piece in task)
        for task in tasks
    ]
    assert sum(weights) == sum(sizes.values())
    assert len(tasks) % 2 == 0
    assert max(weights) < 1.5 * min(weights)


def is_plain(line: bytes) -> bool:
    return b"\n" not in line and not line.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))  # else the file is packed


@given(st.lists(st.binary(max_size=6).filter(is_plain)), st.data())
def test_slices_cut_anywhere_give_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    text = b"\n".join(lines) + data.draw(st.sampled_from([b"", b"\n"]))
    assume(not text.startswith(BOM_UTF8))  # a byte order mark is no part of the first line
    path = tmp_path_factory.mktemp("cut") / "a.jsonl"
    path.write_bytes(text)
    cuts = sorted({0, *data.draw(st.lists(st.integers(0, len(text)), max_size=5))})
    buffer, got = new_buffer(), b""
    for start, end in zip(cuts, [*cuts[1:], None]):
        for block in read_blocks(Slice(str(path), start, end), buffer):
            assert isinstance(block, Block)
            assert text[block.offset : block.offset + len(block.data) - 1] == bytes(block.data)[:-1]
            got += bytes(block.data)
    assert got == text + (b"" if not text or text.endswith(b"\n") else b"\n")


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.ndjson.zst", "a.jsonl"])
def test_a_zstd_file_is_found_and_never_cut(tmp_path: Path, name: str) -> None:
    (tmp_path / "_manifest").mkdir()
    (tmp_path / "_manifest" / "a.jsonl").write_text("{}")
    (tmp_path / name).write_bytes(zstandard.compress(os.urandom(3_000_000)))
    files = find_files(str(tmp_path))
    assert [file.path for file in files] == [str(tmp_path / name)]
    assert plan(files, 4) == [[Slice(str(tmp_path / name))]]
