import bz2
import io
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.reading.blocks import Block, Damage, DamagedError, decompress, new_buffer, packing, read_blocks
from balog.analytics.reading.tasks import Slice

_SOURCE = random.Random(7)
TEXT = b"".join(b'{"n":"%032x"}\n' % _SOURCE.getrandbits(128) for _ in range(8000))
SMALL = 100_000  # bytes of a block at compresslevel 1


def opened(packed: bytes) -> tuple[bytes, str]:
    """What came out, and what was said of the damage behind it."""
    found = []
    try:
        for chunk in decompress(io.BytesIO(packed), packing(packed[:4])):
            found.append(chunk)
    except DamagedError as error:
        return b"".join(found), str(error)
    return b"".join(found), ""


def test_several_bz2_streams_and_zeros_behind_them_are_one_file_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        bz2.compress(TEXT[:1000]) + bz2.compress(b"") + bz2.compress(TEXT[1000:]) + bytes(512)
    )
    parts = []
    for part in read_blocks(Slice(str(tmp_path / "a.jsonl")), new_buffer()):
        assert isinstance(part, Block)
        parts.append(bytes(part.data))
    assert b"".join(parts) == TEXT


@pytest.mark.parametrize("keep", [0.999, 0.5, 0.01])
def test_a_truncated_bz2_gives_its_whole_blocks_and_one_damage(tmp_path: Path, keep: float) -> None:
    packed = bz2.compress(TEXT, 1)
    (tmp_path / "a.bz2").write_bytes(packed[: int(len(packed) * keep)])
    good = b""
    for part in read_blocks(Slice(str(tmp_path / "a.bz2")), new_buffer()):
        if isinstance(part, Block):
            good += part.data
        else:
            damage = part
    assert isinstance(damage, Damage)
    assert damage.reason == "damaged bz2: it ends early"
    assert damage.offset == len(good)
    assert TEXT.startswith(good + damage.tail)
    assert len(good) >= int(len(TEXT) * keep) - 2 * SMALL


@settings(max_examples=25, deadline=None)
@given(st.floats(0.001, 0.999), st.integers(1, 255))
def test_of_a_damaged_bz2_comes_nothing_that_was_not_in_it(share: float, flip: int) -> None:
    packed = bytearray(bz2.compress(TEXT, 1))
    place = int(len(packed) * share)
    packed[place] ^= flip
    found, reason = opened(bytes(packed))
    assert TEXT.startswith(found)
    assert reason.startswith("damaged bz2")
    assert len(found) >= int(len(TEXT) * share) - 2 * SMALL


def test_garbage_behind_a_bz2_stream_is_damage_behind_all_that_is_in_it() -> None:
    assert opened(bz2.compress(TEXT) + b"garbage") == (TEXT, "damaged bz2: a block can't be read")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([b"\x1f\x8b\x08\x00", b"BZh9", b"BZh91AY&SY", b"\x28\xb5\x2f\xfd"]), st.binary(max_size=200))
def test_garbage_that_begins_like_something_packed_is_damage(magic: bytes, garbage: bytes) -> None:
    opened(magic + garbage)


def test_a_bz2_bomb_takes_little_memory() -> None:
    packed = bz2.compress(bytes(1 << 26))
    assert len(packed) < 1000
    tracemalloc.start()
    try:
        assert sum(map(len, decompress(io.BytesIO(packed), "bz2"))) == 1 << 26
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
