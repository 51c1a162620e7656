"""Tests of ``balog.common.storage.local_files``."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from balog.common.storage.local_files import (
    create_file,
    create_locked,
    is_at,
    lock,
    make_folder,
    replace_file,
    replacing,
    sync_folders,
)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths that were synced."""
    found: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: found.append(Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
    return found


class TestReplacing:
    def test_the_bytes_and_the_name_are_on_disk(self, tmp_path: Path, synced: list[Path]) -> None:
        replace_file(tmp_path / "a", b"new")
        assert (tmp_path / "a").read_bytes() == b"new"
        assert [path.suffix for path in synced] == [".part", ""]
        assert synced[1] == tmp_path

    def test_the_name_is_not_synced_when_asked_not_to(self, tmp_path: Path, synced: list[Path]) -> None:
        replace_file(tmp_path / "a", b"new", syncs_folder=False)
        assert len(synced) == 1

    def test_a_block_that_raises_leaves_the_old_file_alone(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"old")
        with suppress(KeyError), replacing(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyError
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]

    def test_the_mode_is_that_of_the_new_file(self, tmp_path: Path) -> None:
        replace_file(tmp_path / "a", b"", 0o600)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600

    def test_a_name_of_the_largest_length_can_be_replaced(self, tmp_path: Path) -> None:
        replace_file(tmp_path / ("a" * 255), b"new")
        assert [path.name for path in tmp_path.iterdir()] == ["a" * 255]


class TestCreating:
    def test_a_file_that_exists_is_not_replaced(self, tmp_path: Path) -> None:
        assert create_file(tmp_path / "a", b"first")
        assert not create_file(tmp_path / "a", b"second")
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]

    def test_folders_are_made_with_their_parents_and_synced(self, tmp_path: Path, synced: list[Path]) -> None:
        make_folder(tmp_path / "a" / "b", 0o700)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
        assert synced == [tmp_path, tmp_path / "a"]


class TestLocks:
    def test_one_descriptor_at_a_time_has_it(self, tmp_path: Path) -> None:
        with open(tmp_path / "a", "wb") as one, open(tmp_path / "a", "rb") as other:
            assert lock(one)
            assert not lock(other, wait=False)
            assert not lock(other, wait=False, shared=True)
        with open(tmp_path / "a", "rb") as other, open(tmp_path / "a", "rb") as third:
            assert lock(other, shared=True)
            assert lock(third, wait=False, shared=True)

    def test_a_new_file_that_was_removed_before_its_lock_is_made_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, path = fcntl.flock, tmp_path / "a"

        def remove_first(file: int, how: int) -> None:
            monkeypatch.setattr(fcntl, "flock", real)
            path.unlink()
            real(file, how)

        monkeypatch.setattr(fcntl, "flock", remove_first)
        descriptor = create_locked(path)
        assert is_at(path, descriptor)
        os.close(descriptor)

    def test_an_exclusive_creation_fails_where_a_file_is(self, tmp_path: Path) -> None:
        (tmp_path / "a").touch()
        with pytest.raises(FileExistsError):
            create_locked(tmp_path / "a")


def test_many_folders_are_synced_each_and_a_missing_one_is_an_error(tmp_path: Path, synced: list[Path]) -> None:
    folders = [tmp_path / str(number) for number in range(100)]
    for folder in folders:
        folder.mkdir()
    sync_folders(folders)
    assert sorted(synced) == sorted(folders)
    with pytest.raises(FileNotFoundError):
        sync_folders([tmp_path, tmp_path / "nowhere"])
