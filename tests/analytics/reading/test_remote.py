"""Files on stores, with fsspec's memory in the place of a server."""

import gzip
import os
import pickle
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.reading import remote
from balog.analytics.reading.blocks import Block, Damage, new_buffer, read_blocks
from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.remote import StoragePool, store_options
from balog.analytics.reading.tasks import Slice
from balog.common.backoff import Backoff
from balog.common.errors import ConfigError
from balog.common.storage import StorageError
from balog.common.storage.remote import RemoteStorage

BUFFER = new_buffer()
TEXT = b"".join(b"%d %s\n" % (number, b"." * (number % 97)) for number in range(3000))


@pytest.fixture
def folder() -> Any:
    """A folder in memory; gives its URL."""
    name = f"balog-{uuid4().hex}"
    yield f"memory://{name}"
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


def put(url: str, data: bytes) -> str:
    fsspec.filesystem("memory").pipe_file(url.removeprefix("memory:/"), data)
    return url


def read(pieces: list[Slice], storages: StoragePool) -> list[Any]:
    return [
        bytes(part.data) if isinstance(part, Block) else part
        for piece in pieces
        for part in read_blocks(piece, BUFFER, storages)
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, len(TEXT)), max_size=6), st.integers(1, 5000))
def test_whatever_the_cuts_and_ranges_each_line_is_read_once(cuts: list[int], first: int) -> None:
    url = put("memory://balog-cuts/a.jsonl", TEXT)
    ends = sorted({0, *cuts})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "_FIRST_RANGE", first)
        pieces = [Slice(url, start, end) for start, end in zip(ends, [*ends[1:], None])]
        assert b"".join(read(pieces, StoragePool())) == TEXT


def test_a_packed_file_belongs_to_its_first_slice_whoever_cut_it(folder: str) -> None:
    url = put(f"{folder}/a.jsonl", gzip.compress(TEXT))
    assert read([Slice(url, 0, 100), Slice(url, 100, None)], StoragePool()) == [TEXT]


def test_folders_and_globs_are_listed_once_with_sizes_and_times(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1.jsonl", "a/b/2.jsonl.gz", "a/.3.jsonl", "_x/4.jsonl", "c/5.txt.bak", "c/6.jsonl"):
        put(f"{folder}/{name}", b"12345")
    listed = []
    real = RemoteStorage.entries
    monkeypatch.setattr(RemoteStorage, "entries", lambda self, name="": listed.append(name) or real(self, name))

    def names(*paths: str) -> list[str]:
        return [file.path.removeprefix(f"{folder}/") for file in find_files(paths)]

    assert names(folder) == ["a/1.jsonl", "a/b/2.jsonl.gz", "c/6.jsonl"]
    assert len(listed) == 1
    assert names(f"{folder}/a") == ["a/1.jsonl", "a/b/2.jsonl.gz"]
    assert names(f"{folder}/*/*.jsonl") == ["a/1.jsonl", "c/6.jsonl"]
    assert names(f"{folder}/**/*.gz") == ["a/b/2.jsonl.gz"]
    assert names(f"{folder}/[!a]*") == ["c/6.jsonl"]
    assert names(f"{folder}/c/?.txt.bak", f"{folder}/a/1.jsonl") == ["a/1.jsonl", "c/5.txt.bak"]
    (file,) = find_files(f"{folder}/a/1.jsonl")
    assert file.size == 5
    assert file.modified > 1e9
    with pytest.raises(ConfigError, match="no such file"):
        find_files(f"{folder}/nothing")
    with pytest.raises(ConfigError, match="bucket or host must be named"):
        find_files("s3://buck*/a")


def test_trouble_is_tried_again_and_a_store_that_gave_up_once_costs_later_files_one_try(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        put(f"{folder}/{name}", b"1\n")
    troubles = 0
    asked: list[str] = []
    real = RemoteStorage.read_range

    def read_range(self: RemoteStorage, start: int, end: int, name: str = "") -> bytes:
        nonlocal troubles
        asked.append(name)
        if troubles:
            troubles -= 1
            raise StorageError(f"{self.url}/{name}: Slow Down: 503")
        return real(self, start, end, name)

    monkeypatch.setattr(RemoteStorage, "read_range", read_range)
    monkeypatch.setattr(remote, "TRIES", 3)
    monkeypatch.setattr(remote, "BACKOFF", Backoff(0.0))
    monkeypatch.setattr(remote, "_failing_stores", set())
    storages, a, b = StoragePool(), Slice(f"{folder}/a"), Slice(f"{folder}/b")
    troubles = 2
    assert read([a], storages) == [b"1\n"]
    troubles = 4
    assert read([a, b, b], storages) == [
        Damage(0, "can't be read: Slow Down: 503", b""),
        Damage(0, "can't be read: Slow Down: 503", b""),
        b"1\n",
    ]
    assert len(asked) == 3 + 3 + 1 + 1


def test_a_file_that_went_away_or_is_not_ours_is_damage_at_its_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = str(tmp_path / "gone.jsonl")
    assert read([Slice(gone), Slice(gone, 7, 9)], StoragePool()) == [
        Damage(0, "can't be read: No such file or directory", b""),
        Damage(7, "can't be read: No such file or directory", b""),
    ]

    def refuse(self: StoragePool, path: str) -> Any:
        raise PermissionError(13, os.strerror(13), path)

    monkeypatch.setattr(StoragePool, "open", refuse)
    assert read([Slice(gone)], StoragePool()) == [Damage(0, "can't be read: Permission denied", b"")]


def test_places_travel_to_workers_without_their_connections(folder: str) -> None:
    storages = StoragePool({"key": {"env": "NAME_OF_A_KEY"}})
    put(f"{folder}/a", b"1\n")
    assert read([Slice(f"{folder}/a")], StoragePool()) == [b"1\n"]
    assert pickle.loads(pickle.dumps(storages)).options == storages.options


@pytest.mark.parametrize(
    "options",
    [
        {"key": "hunter2"},
        {"aws_secret_access_key": "hunter2"},
        {"fs.s3a.access.key": "hunter2"},
        {"session_token": "hunter2"},
        {"Password": "hunter2"},
        {"endpoint_url": "https://user:hunter2@host"},
        {"storage_options": '{"endpoint_url": "https://user:hunter2@host"}'},
        {"storage_options": "hunter2"},
    ],
)
def test_a_secret_or_a_value_that_is_none_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        store_options(options)
    assert "hunter2" not in str(caught.value)


def test_options_become_what_a_store_is_opened_with() -> None:
    given = {"endpoint_url": "http://h:1", "path": "x"}
    assert store_options({**given, "storage_options": '{"client_kwargs": {"verify": "ca"}}'}) == {
        "endpoint_url": "http://h:1",
        "client_kwargs": {"verify": "ca"},
    }
