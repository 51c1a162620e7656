"""Streams of files, compared with what was written into them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap import Tap
from balog.tap.endpoints import FileStream
from balog.tap.errors import SourceError, TapError
from balog.tap.patterns import file_formats
from balog.tap.patterns.file_formats import BadRow, ReadOptions, read_rows
from balog.tap.schema.types import integer, obj, string
from tests.tap.syncs import sync

ROWS = [{"id": "1", "text": 'a,"b"\nc'}, {"id": "2", "text": ""}, {"id": "3", "text": "ä 🎉"}]
SCHEMA = obj({"id": string(), "text": string()})


def as_csv(rows: list[dict[str, str]], delimiter: str = ",") -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_parquet(rows: list[dict[str, str]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def as_excel(rows: list[dict[str, str]]) -> bytes:
    from openpyxl import Workbook

    book, file = Workbook(), io.BytesIO()
    for row in (list(rows[0]), *(list(row.values()) for row in rows)):
        book.active.append(row)
    book.save(file)
    return file.getvalue()


WRITTEN: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "jsonl": lambda rows: b"\n".join(json.dumps(row).encode() for row in rows),
    "json": lambda rows: json.dumps(rows).encode(),
    "parquet": as_parquet,
    "xlsx": as_excel,
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def rows_in(data: bytes, name: str, **options: Any) -> list[Any]:
    return [row for _, row in read_rows(io.BytesIO(data), name, ReadOptions(**options))]


class TestFormats:
    @pytest.mark.parametrize("packed", PACKED)
    @pytest.mark.parametrize("format", WRITTEN)
    def test_each_format_and_compression(self, format: str, packed: str) -> None:
        if format == "xlsx":
            pytest.importorskip("openpyxl")
        data = PACKED[packed](WRITTEN[format](ROWS))
        expected = [{**row, "text": row["text"] or None} for row in ROWS] if format == "xlsx" else ROWS

        assert rows_in(data, f"rows.{format}{packed}") == expected

    @settings(max_examples=40, deadline=None)
    @given(
        rows=st.lists(
            st.fixed_dictionaries(
                {name: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")) for name in "ab"}
            ),
            min_size=1,
            max_size=8,
        ),
        name=st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet"]),
        packed=st.sampled_from(list(PACKED)),
    )
    def test_any_text_comes_back(self, rows: Any, name: str, packed: str) -> None:
        assert rows_in(PACKED[packed](WRITTEN[name](rows)), f"x.{name}{packed}") == rows

    def test_numbers_keep_their_digits(self) -> None:
        (row,) = rows_in(b'{"n": 1234567890123456789.123, "x": 0.10}', "n.jsonl")
        assert (str(row["n"]), str(row["x"])) == ("1234567890123456789.123", "0.10")

    def test_bad_rows_are_marked_and_the_others_come(self) -> None:
        assert rows_in(b"a,b\n1,2\n1\n\n3,4\n", "x.csv") == [
            {"a": "1", "b": "2"},
            BadRow(["1"], "has 1 values for 2 columns"),
            {"a": "3", "b": "4"},
        ]
        first, second, third = rows_in(b'{"a":1}\n{"a":\n[1]\n', "x.jsonl")
        assert first == {"a": 1}
        assert second.reason.startswith("is not JSON: ")
        assert third == BadRow([1], "is not an object")

    def test_an_unpaired_quote_swallows_no_row_silently(self) -> None:
        found = rows_in(b'a,b\n1,"abc\n2,"x"\n3,c\n', "x.csv")
        assert found == [BadRow('1,"abc\n2,"x"\n', "line 3: ',' expected after '\"'"), {"a": "3", "b": "c"}]

    def test_a_number_that_a_float_has_not_costs_its_record(self) -> None:
        first, second = rows_in(b'{"a":1e999}\n{"a":1e-999}\n', "x.jsonl")
        assert (first["a"].value, first["a"].reason) == ("1e999", "is a number beyond those that 64 bits have")
        assert str(second["a"]) == "1E-999"

    @pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "json"])
    def test_a_byte_order_mark_is_skipped(self, format: str) -> None:
        assert rows_in(b"\xef\xbb\xbf" + WRITTEN[format](ROWS), f"x.{format}") == ROWS

    def test_a_sheet_with_gaps_loses_no_value(self) -> None:
        openpyxl = pytest.importorskip("openpyxl")
        book, file = openpyxl.Workbook(), io.BytesIO()
        for row in ([], [None, "id", None, "v"], [None, 1, None, "z"], [], [None, 2, "lost"], [None, 3, None, None, 4]):
            book.active.append(row)
        book.save(file)
        first, second, third = rows_in(file.getvalue(), "x.xlsx")
        assert first == {"id": 1, "v": "z"}
        assert second == BadRow([None, 2, "lost", None, None], "has a value in a column without a name")
        assert third.raw == [None, 3, None, None, 4]

    def test_nanoseconds_of_parquet_are_kept(self) -> None:
        import pyarrow
        from pyarrow import parquet

        at, file = [1_700_000_000_123_456_789, None], io.BytesIO()
        columns = {zone or "none": pyarrow.array(at, pyarrow.timestamp("ns", zone)) for zone in (None, "Europe/Berlin")}
        parquet.write_table(pyarrow.table({**columns, "clock": pyarrow.array([1, 2], pyarrow.time64("ns"))}), file)
        first, second = rows_in(file.getvalue(), "x.parquet")
        when = "2023-11-14T22:13:20.123456789Z"
        assert first == {"none": when, "Europe/Berlin": when, "clock": "00:00:00.000000001"}
        assert second["none"] is None

    def test_blank_lines_are_no_rows_and_no_header(self) -> None:
        assert rows_in(b"\n\n", "x.csv") == []
        assert rows_in(b"\n\na,b\n\n1,2\n", "x.csv") == [{"a": "1", "b": "2"}]

    @pytest.mark.parametrize(
        ("name", "data", "options", "reason"),
        [
            ("x.bin", b"", {}, "x.bin: its format is unknown; set format to one of csv, "),
            ("x.csv", b"a,a\n", {}, "x.csv: the first line has a name twice"),
            ("x.csv", b"a\n\xff\n", {}, "x.csv: is not utf-8"),
            ("x.csv", b"a\n" + b"1\n" * 50, {"max_bytes": 20}, "has more than 20 bytes"),
            ("x.csv.gz", gzip.compress(b"a\n" * 99, mtime=0)[:-9], {}, "is cut off"),
            ("x.json", b"{", {}, "x.json: is not JSON"),
            (
                "x.csv",
                b'a,b\n1,2\n3,"abc\n4,5\n',
                {},
                "x.csv: is cut off: a quoted value in the row of line 3 has no end",
            ),
            ("x.parquet", b"PAR1 no", {}, "x.parquet: is damaged"),
        ],
    )
    def test_what_cannot_be_read_is_one_line(self, name: str, data: bytes, options: Any, reason: str) -> None:
        with pytest.raises(SourceError) as error:
            rows_in(data, name, **options)
        assert reason in str(error.value)
        assert "\n" not in str(error.value)

    def test_lines_and_documents_are_bounded(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(file_formats, "MAX_LINE", 10)
        monkeypatch.setattr(file_formats, "MAX_DOCUMENT", 10)
        for name in ("x.jsonl", "x.json"):
            with pytest.raises(SourceError, match="more than 10 bytes"):
                rows_in(b'{"a": "123456789"}', name)

    def test_a_workbook_that_is_a_bomb_is_refused_before_it_is_unpacked(self) -> None:
        pytest.importorskip("openpyxl")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("sheet1.xml", b"0" * (100 << 20))
        with pytest.raises(SourceError, match="times as large; set max_bytes"):
            rows_in(file.getvalue(), "x.xlsx")


class Files:
    """A tap of one folder, whose runs go on from the last state that was written."""

    def __init__(self, folder: Path, pattern: str = "*", **options: Any) -> None:
        self.folder = folder
        self.tap = Tap("tap-folder")
        self.stream = self.tap.add(
            FileStream("rows", folder=str(folder), pattern=pattern, **{"schema": SCHEMA, **options})
        )
        self.state: dict[str, Any] = {}
        self.rows: dict[Any, Any] = {}

    def write(self, name: str, *ids: Any, at: float = 1_000_000_000) -> None:
        path = self.folder / name
        path.write_bytes(as_csv([{"id": str(id), "text": name} for id in ids]))
        os.utime(path, (at, at))

    def run(self, seen: int | None = None) -> list[str]:
        ran = sync(self.tap, self.state)
        assert ran.code == 0, ran.failures
        found = []
        for message in ran.messages[:seen]:
            if message["type"] == "STATE":
                self.state = message["value"]
            elif message["type"] == "RECORD":
                record = message["record"]
                self.rows[record["_sdc_source_file"], record["_sdc_source_lineno"]] = record["id"]
                found.append(record["id"])
        return found


class TestSelected:
    def test_a_link_to_a_folder_above_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        other = tmp_path.with_name(tmp_path.name + "-other")
        other.mkdir()
        for link, target in [("loop", tmp_path), ("sub/up", tmp_path), ("sub/self", tmp_path / "sub"), ("in", other)]:
            (tmp_path / link).symlink_to(target)
        files = Files(tmp_path, "*.csv")
        files.write("a.csv", 1)
        files.write("sub/b.csv", 2)
        files.write("in/c.csv", 3)
        assert sorted(files.run()) == ["1", "2", "3"]

    def test_own_columns_that_are_replaced_are_a_warning(self, tmp_path: Path, capsys: Any) -> None:
        files = Files(tmp_path, "*.csv")
        (tmp_path / "a.csv").write_text("id,_sdc_source_file\n1,mine\n")
        assert files.run() == ["1"]
        assert "a.csv has _sdc_source_file, which the stream replaces" in capsys.readouterr().err

    def test_a_stream_without_files_does_not_stop_the_others(self, tmp_path: Path, capsys: Any, tap: Tap) -> None:
        tap.add(FileStream("full", folder=str(tmp_path), pattern="a*.jsonl"))
        tap.add(FileStream("empty", folder=str(tmp_path), pattern="b*"))
        (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 1e999}\n')
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(SystemExit) as ended:
            tap.run(["--config", str(tmp_path / "config.json")])
        assert ended.value.code == 1
        out, err = capsys.readouterr()
        assert '"record":{"n":1,' in out
        assert "empty: its schema could not be read: there are no records to infer it from; declare a schema" in err

    def test_files_come_by_time_and_once(self, tmp_path: Path) -> None:
        files = Files(tmp_path, "*.csv")
        files.write("b.csv", 1, 2, at=1_000_000_000)
        files.write("a.csv", 3, at=1_000_000_001.25)
        files.write("a.txt", 9)
        files.write(".hidden.csv", 9)
        assert files.run() == ["1", "2", "3"]
        assert files.run() == []
        assert files.state["bookmarks"]["rows"]["_sdc_source_modified"] == "2001-09-09T01:46:41.250000Z"

    def test_a_file_of_the_same_time_that_comes_later_is_read(self, tmp_path: Path) -> None:
        files = Files(tmp_path)
        files.write("b.csv", 1)
        assert files.run() == ["1"]
        files.write("a.csv", 2)
        assert files.run() == ["2"]
        assert files.run() == []

    def test_a_file_that_grew_is_read_again_even_in_the_same_moment(self, tmp_path: Path) -> None:
        files = Files(tmp_path)
        files.write("a.csv", 1)
        files.run()
        files.write("a.csv", 1, 2)
        assert files.run() == ["1", "2"]
        files.write("a.csv", 1, 2, 3, at=1_000_000_005)
        assert files.run() == ["1", "2", "3"]
        assert list(files.rows.values()) == ["1", "2", "3"]

    @settings(max_examples=25, deadline=None)
    @given(
        written=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6),
        kills=st.lists(st.integers(1, 20), max_size=5),
    )
    def test_any_kills_leave_the_target_with_all_rows(self, tmp_path_factory: Any, written: Any, kills: Any) -> None:
        files = Files(tmp_path_factory.mktemp("kills"))
        expected = {}
        for number, (at, count) in enumerate(written):
            ids = [f"{number}-{row}" for row in range(count)]
            if ids:
                files.write(f"f{number}.csv", *ids, at=1_000_000_000 + at)
            expected |= {(f"f{number}.csv", row): id for row, id in enumerate(ids, 1)}
            files.run(seen=kills.pop() if kills else None)
        for kill in kills:
            files.run(seen=kill)
        late = max(at for at, _ in written)
        if any(at < late for at, _ in written):  # written with a time before the bookmark: as if they had not come
            expected = {key: id for key, id in expected.items() if key in files.rows}
        files.run()
        assert {key: files.rows.get(key) for key in expected} == expected

    def test_a_full_table_needs_no_times(self, tmp_path: Path) -> None:
        files = Files(tmp_path, replication_method="FULL_TABLE")
        files.write("a.csv", 1)
        assert files.run() == ["1"]
        assert files.run() == ["1"]

    def test_a_store_by_url(self, tap: Tap) -> None:
        import fsspec

        system = fsspec.filesystem("memory")
        system.pipe_file("/exports/x/a.csv", b"id,text\n1,a\n")
        try:
            tap.add(FileStream("rows", folder="memory://exports", pattern="x/*.csv", schema=SCHEMA))
            (record,) = sync(tap).records()
            assert (record["id"], record["_sdc_source_file"]) == ("1", "x/a.csv")
        finally:
            system.rm("/exports", recursive=True)


class TestStream:
    def test_values_fit_a_declared_schema_and_bad_rows_are_set_aside(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        folder = tmp_path / "in"
        folder.mkdir()
        files = Files(folder, schema=obj({"id": integer(null=False), "text": string()}))
        (folder / "a.csv").write_bytes(b"id,text\n1,a\n2\nx,y\n3,b\n")
        assert files.run() == [1, 3]
        kept = (tmp_path / "state/balog/quarantine/tap-folder-rows.jsonl").read_text()
        assert len(kept.splitlines()) == 2
        assert "row 2: has 1 values for 2 columns" in kept

    def test_a_policy_of_fail_ends_the_stream_at_a_bad_row(self, tmp_path: Path) -> None:
        files = Files(tmp_path, policy="fail")
        (tmp_path / "a.csv").write_bytes(b"id,text\n1\n")
        with pytest.raises(AssertionError, match="row 1: has 1 values"):
            files.run()

    def test_wrong_settings_are_refused_at_the_declaration(self) -> None:
        with pytest.raises(TapError, match="has no folder"):
            FileStream("rows")
        with pytest.raises(TapError, match="format='xml': expected csv or tsv or"):
            FileStream("rows", folder="x", format="xml")

    def test_a_folder_that_is_not_there_fails(self, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match="No such file"):
            Files(tmp_path / "gone").run()
