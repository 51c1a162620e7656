"""Lines of archives, of both forms, from files that may be anything."""

import gzip
import io
import os

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.singer.batch.dialects import BatchError
from balog.topics import archives
from balog.topics.archives import Line, day_of, derive_id, read_lines


def lines(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


class TestLines:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
    def test_a_file_is_read_by_what_it_is_and_not_by_its_name(self, pack) -> None:
        assert [(line.number, line.data) for line in lines(pack(b"a\n\nbc\r\nlast"))] == [
            (1, b"a"),
            (3, b"bc\r"),
            (4, b"last"),
        ]

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"x")), max_size=20), st.integers(1, 9))
    def test_a_line_is_where_it_says_whatever_the_blocks_are(self, texts: list[bytes], size: int) -> None:
        data = b"p" + b"\n".join(texts)  # no magic bytes in front
        longest = 12

        def blocks(*_: object):
            yield from (data[start : start + size] for start in range(0, len(data), size))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(archives, "decompress", blocks)
            patch.setattr(archives, "MAX_EVENT_BYTES", longest)
            found = lines(b"")
        texts = data.split(b"\n")
        assert [line.number for line in found] == [n for n, text in enumerate(texts, 1) if text.strip()]
        for line in found:
            text = texts[line.number - 1]
            assert line.is_whole == (len(text) <= longest)
            assert line.data == text if line.is_whole else text.startswith(line.data)

    def test_a_file_that_is_cut_off_gives_what_is_before_that(self) -> None:
        packed = gzip.compress(b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(100_000)))
        source = read_lines(io.BytesIO(packed[:-50_000]))
        found: list[Line] = []
        with pytest.raises(BatchError, match="cut off"):
            found.extend(source)  # keeps what came before it raises
        assert 0 < len(found) < 100_000

    def test_a_file_that_holds_too_much_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "LIMITS", archives.LIMITS._replace(decompressed=1000))
        with pytest.raises(BatchError, match="holds more"):
            lines(gzip.compress(b"x\n" * 1000))


class TestDays:
    @pytest.mark.parametrize("folder", ["date=2026-11-20", "a/b/date=2026-11-20"])
    def test_a_folder_of_a_day_is_known(self, folder: str) -> None:
        assert str(day_of(folder)) == "2026-11-20"

    @pytest.mark.parametrize("folder", ["", "orders", "date=2026-13-20", "date=2026-11-20/x", "update=2026-11-20"])
    def test_any_other_folder_has_no_day(self, folder: str) -> None:
        assert day_of(folder) is None


class TestIds:
    def test_an_id_follows_from_the_file_s_name_the_place_and_the_content(self) -> None:
        line = b"1577880000\tc\t{}"
        first = derive_id("s3://b/2020/x.gz", 10, line)
        assert derive_id("/copies/x.gz", 10, line) == derive_id("/unpacked/x", 10, line) == first
        others = [derive_id("x.gz", 11, line), derive_id("y.gz", 10, line), derive_id("x.gz", 10, line + b" ")]
        assert len({first, *others}) == 4
