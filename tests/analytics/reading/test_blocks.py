import gzip
import os
import random
import tracemalloc
import zlib
from codecs import BOM_UTF8
from pathlib import Path

import pytest
import zstandard

from balog.analytics.reading import blocks
from balog.analytics.reading.blocks import BadLine, Block, Damage, new_buffer, read_blocks
from balog.analytics.reading.tasks import Slice
from balog.event import MAX_EVENT_BYTES


def read(path: Path, data: bytes) -> list[Block | BadLine | Damage]:
    path.write_bytes(data)
    found = []
    for part in read_blocks(Slice(str(path)), new_buffer()):
        found.append(Block(part.offset, memoryview(bytes(part.data))) if isinstance(part, Block) else part)
    return found


def joined(parts: list[Block | BadLine | Damage]) -> bytes:
    return b"".join(bytes(part.data) for part in parts if isinstance(part, Block))


TEXT = b"".join(b'{"n":%d}\n' % number for number in range(5000))


def test_several_gzip_members_and_zeros_behind_them_are_one_file(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT[:1000]) + gzip.compress(b"") + gzip.compress(TEXT[1000:]) + bytes(512)
    parts = read(tmp_path / "a.gz", packed)
    assert joined(parts) == TEXT
    assert not [part for part in parts if not isinstance(part, Block)]


def test_gzip_is_told_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    assert joined(read(tmp_path / "a.jsonl", gzip.compress(TEXT))) == TEXT
    assert joined(read(tmp_path / "b.jsonl.gz", TEXT)) == TEXT


@pytest.mark.parametrize("keep", [1, 0.999, 0.5, 0.01])
def test_a_truncated_gzip_gives_what_can_be_read_and_one_damage(tmp_path: Path, keep: float) -> None:
    packed = gzip.compress(TEXT)
    cut = packed[: len(packed) - 4 if keep == 1 else int(len(packed) * keep)]
    *good, damage = read(tmp_path / "a.gz", cut)
    expected = zlib.decompressobj(31).decompress(cut)
    assert isinstance(damage, Damage)
    assert joined(good) + damage.tail == expected
    assert damage.offset == len(joined(good))
    assert "ends early" in damage.reason


def test_a_corrupt_byte_in_a_gzip_loses_nothing_before_it(tmp_path: Path) -> None:
    source = random.Random(7)
    text = b"".join(b'{"n":"%032x"}\n' % source.getrandbits(128) for _ in range(20_000))
    packed = bytearray(gzip.compress(text))
    packed[len(packed) // 2] ^= 0xFF
    *good, damage = read(tmp_path / "a.gz", bytes(packed))
    assert isinstance(damage, Damage)
    assert len(joined(good)) > len(text) // 3
    assert joined(good)[: len(text) // 3] == text[: len(text) // 3]


def test_garbage_behind_a_gzip_member_is_damage_behind_all_its_lines(tmp_path: Path) -> None:
    *good, damage = read(tmp_path / "a.gz", gzip.compress(TEXT) + b"garbage")
    assert joined(good) == TEXT
    assert isinstance(damage, Damage)
    assert damage.offset == len(TEXT)


def test_a_line_that_is_too_long_is_put_aside_and_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    length = 3 * MAX_EVENT_BYTES
    with open(path, "wb") as file:
        file.write(TEXT + b"x" * length + b"\n" + TEXT)
    buffer = new_buffer()
    tracemalloc.start()
    got, bad = 0, []
    for part in read_blocks(Slice(str(path)), buffer):
        if isinstance(part, Block):
            got += len(part.data)
        else:
            bad.append(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got == 2 * len(TEXT)
    assert [(line.offset, line.reason) for line in bad] == [(len(TEXT), "longer than 16 MiB")]
    assert peak < MAX_EVENT_BYTES


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def test_several_zstd_frames_are_one_file_whatever_it_is_called(tmp_path: Path) -> None:
    empty = b"\x5a\x2a\x4d\x18\4\0\0\0size"  # a frame that holds no data, as pzstd writes it before the others
    packed = empty + zstd(TEXT[:1000]) + zstd(b"") + empty + zstd(TEXT[1000:]) + empty
    parts = read(tmp_path / "a.jsonl", packed)
    assert joined(parts) == TEXT
    assert not [part for part in parts if not isinstance(part, Block)]


@pytest.mark.parametrize("keep", [0.999, 0.5, 0.01])
def test_a_truncated_zstd_gives_what_can_be_read_and_one_damage(tmp_path: Path, keep: float) -> None:
    packed = b"".join(zstd(TEXT[start : start + 1000]) for start in range(0, len(TEXT), 1000))
    *good, damage = read(tmp_path / "a.zst", packed[: int(len(packed) * keep)])
    assert isinstance(damage, Damage)
    found = joined(good) + damage.tail
    assert TEXT.startswith(found)
    assert len(found) >= int(len(TEXT) * keep) - 2000
    assert "ends early" in damage.reason


def test_a_corrupt_zstd_frame_loses_nothing_before_it(tmp_path: Path) -> None:
    second = bytearray(zstd(TEXT))
    second[len(second) // 2] ^= 0xFF
    *good, damage = read(tmp_path / "a.zst", zstd(TEXT) + bytes(second))
    assert isinstance(damage, Damage)
    assert (joined(good) + damage.tail).startswith(TEXT)
    assert damage.reason == "is damaged: its zstd stream can't be read"


def test_a_zstd_bomb_takes_little_memory(tmp_path: Path) -> None:
    packed = zstd(bytes(1 << 30))
    assert len(packed) < 1 << 17
    (tmp_path / "a.zst").write_bytes(packed)
    tracemalloc.start()
    try:
        for _ in read_blocks(Slice(str(tmp_path / "a.zst")), new_buffer()):
            pass
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_line_that_is_too_long_at_the_end_of_a_gzip_is_put_aside_too(tmp_path: Path) -> None:
    parts = read(tmp_path / "a.gz", gzip.compress(TEXT + b"x" * (2 * MAX_EVENT_BYTES)))
    assert joined(parts) == TEXT
    assert [part.offset for part in parts if isinstance(part, BadLine)] == [len(TEXT)]


def test_blocks_end_at_lines_wherever_the_buffer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 1000)
    monkeypatch.setattr(blocks, "_READ", 77)
    lines = [os.urandom(random.Random(n).randrange(200)).hex().encode() for n in range(300)]
    text = b"\n".join(lines)
    parts = read(tmp_path / "a.jsonl", text)
    assert len(parts) > 20
    assert joined(parts) == text + b"\n"
    assert all(bytes(part.data).endswith(b"\n") for part in parts if isinstance(part, Block))


def test_a_mark_at_the_beginning_is_left_out_and_counted(tmp_path: Path) -> None:
    (block,) = read(tmp_path / "a.jsonl", BOM_UTF8 + TEXT)
    assert (block.offset, bytes(block.data)) == (3, TEXT)
    (damage,) = read(tmp_path / "a.jsonl", gzip.compress(BOM_UTF8 + b"half")[:-1])
    assert (damage.offset, damage.tail) == (3, b"half")
