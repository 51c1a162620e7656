"""Lines of archives, of both forms, from files that may be anything."""

import gzip
import io
import os

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.errors import EventError
from balog.event import Event, encode
from balog.singer.batch.dialects import BatchError
from balog.topics import archives
from balog.topics.archives import Line, day_of, read_event, read_lines


def lines(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


def read(text: str, file: str = "old.gz", number: int = 1, offset: int = 0) -> Event:
    return read_event(Line(number, offset, text.encode()), file)


class TestLines:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
    def test_a_file_is_read_by_what_it_is_and_not_by_its_name(self, pack) -> None:
        assert [(line.number, line.offset, line.data) for line in lines(pack(b"a\n\nbc\r\nlast"))] == [
            (1, 0, b"a"),
            (3, 3, b"bc\r"),
            (4, 7, b"last"),
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
            assert line.offset == sum(len(before) + 1 for before in texts[: line.number - 1])
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


class TestEvents:
    def test_an_event_is_read_as_it_is(self) -> None:
        event = Event.new("a.b", {"x": 1})
        assert encode(read(encode(event).decode())) == encode(event)

    @pytest.mark.parametrize(
        "when",
        ["1577880000", "1577880000.0", "2020-01-01T12:00:00", "2020-01-01 12:00:00.000", "2020-01-01T13:00:00+01:00"],
    )
    def test_an_older_line_becomes_an_event(self, when: str) -> None:
        event = read(f'{when}\ttap.users.done\t{{"rows": "a\\tb"}}')
        assert (event.schema, event.header.channel, event.level) == ("0.0.1", "tap.users.done", None)
        assert event.header.timestamp.isoformat() == "2020-01-01T12:00:00+00:00"
        assert event.payload == {"rows": "a\tb"}

    def test_its_id_follows_from_file_place_and_content(self) -> None:
        line = "1577880000\tc\t{}"
        first = read(line, "s3://b/2020/x.gz", offset=10).header.id
        assert read(line, "/copies/x.gz", number=7, offset=10).header.id == first
        assert read(line, "/unpacked/x", offset=10).header.id == first
        others = [read(line, "x.gz", offset=11), read(line, "y.gz", offset=10), read(line + " ", "x.gz", offset=10)]
        assert len({first, *(event.header.id for event in others)}) == 4

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("yesterday\tc\t{}", r"\$\.header\.timestamp.*not a time"),
            ("1577880000\t\t{}", r"\$\.header\.channel"),
            ("1577880000\tc\t[]", r"\$\.payload: want an object"),
            ('1577880000\tc\t{"a":', r"\$\.payload: not JSON"),
            ("1577880000\tc", r"^\$: "),
            ("99999999999999\tc\t{}", "not a time"),
            ("words", "not JSON"),
            ("{}", "missing"),
        ],
    )
    def test_what_is_none_is_refused_with_its_place(self, text: str, why: str) -> None:
        with pytest.raises(EventError, match=why) as caught:
            read(text)
        assert "\n" not in str(caught.value)

    def test_a_line_that_is_too_long_is_refused(self) -> None:
        with pytest.raises(EventError, match="longer than"):
            read_event(Line(1, 0, b"{", is_whole=False), "x")

    @given(st.binary(max_size=200))
    def test_any_bytes_are_an_event_or_refused(self, data: bytes) -> None:
        try:
            event = read_event(Line(1, 0, data), "x")
        except EventError:
            return
        assert read_event(Line(1, 0, data), "x").header.id == event.header.id
