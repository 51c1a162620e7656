import gzip
import io
import json
import math
import zlib
from codecs import BOM_UTF8
from datetime import datetime
from decimal import Decimal
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from zstandard import COMPRESSOBJ_FLUSH_BLOCK

from balog.singer.batch.columns import Shape
from balog.singer.batch.compression import Limits
from balog.singer.batch.csv_rows import CsvOptions
from balog.singer.batch.dialects import BatchError, BatchManifest
from balog.singer.batch.files import COMPRESSIONS, FORMATS, read_rows, writer
from balog.singer.batch.rows import MAX_ROW_BYTES, DoesNotFit

SCHEMA: dict[str, Any] = {
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"], "multipleOf": 0.01},
        "ratio": {"type": ["null", "number"]},
        "name": {"type": ["string", "null"]},
        "is_new": {"type": ["boolean", "null"]},
        "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "day": {"type": ["string", "null"], "format": "date"},
        "place": {
            "type": ["object", "null"],
            "properties": {
                "x": {"type": ["integer", "null"]},
                "tags": {"type": ["array", "null"], "items": {"type": ["string", "null"]}},
            },
        },
        "marks": {"type": ["array", "null"], "items": {"type": ["number", "null"]}},
        "parts": {"type": ["object", "null"]},
    }
}


def write_files(rows: list[bytes], format: str, compression: str, schema: Any, options: CsvOptions) -> list[bytes]:
    """Write rows as a broker does: into a new file when one does not fit."""
    shape = Shape(schema)
    files: list[IO[bytes]] = [io.BytesIO()]
    into = writer(files[0], format, compression, options, shape)
    for row in rows:
        for _ in range(4):
            try:
                into.write(row)
                break
            except DoesNotFit:
                into.finish()
                files.append(io.BytesIO())
                into = writer(files[-1], format, compression, options, shape)
        else:
            raise AssertionError("no file takes the row")
    into.finish()
    return [file.getvalue() for file in files]  # type: ignore[attr-defined]


def read(data: bytes, schema: Any = None, limits: Limits | None = None, **batch: Any) -> list[bytes]:
    return list(read_rows(io.BytesIO(data), BatchManifest(stream="a", files=[], **batch), schema, limits or Limits()))


def values(rows: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(row, parse_float=Decimal) for row in rows]


def plain(value: Any, schema: Any = None) -> Any:
    """Give a value as it counts: a null is as good as nothing, a time is an instant, a number its double."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and len(value) >= 20 and value[4:5] == "-" and value[10:11] == "T":
        return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return value


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.decimals(-(10**9), 10**9, places=2) | st.integers(-(10**6), 10**6).map(Decimal)
doubles = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Decimal(repr(number)))
times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda when: when.isoformat() + "Z")
nested = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
places = st.fixed_dictionaries(
    {}, optional={"x": st.none() | st.integers(-(2**63), 2**63 - 1), "tags": st.lists(st.none() | text, max_size=3)}
)
good_rows = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1)},
    optional={
        "price": st.none() | numbers,
        "ratio": st.none() | doubles,
        "name": st.none() | text,
        "is_new": st.none() | st.booleans(),
        "at": st.none() | times,
        "day": st.none() | st.dates().map(str),
        "place": st.none() | places,
        "marks": st.none() | st.lists(st.none() | doubles, max_size=3),
        "parts": st.none() | st.dictionaries(text, nested, max_size=3),
    },
)
odd_rows = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "more", 'é,"']), nested | doubles, max_size=6)
options = st.sampled_from(
    [
        CsvOptions(),
        CsvOptions(delimiter="\t", quote_char="'"),
        CsvOptions(delimiter=";", escape_char="\\", null="\\N"),
        CsvOptions(delimiter="|", null="NULL"),
    ]
)


def dump(row: Any) -> bytes:
    def show(value: Any) -> str:
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, dict):
            return "{" + ",".join(f"{json.dumps(key)}:{show(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(show, value)) + "]"
        return json.dumps(value, ensure_ascii=False)

    return show(row).encode()


class TestRoundTrip:
    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(st.lists(good_rows, max_size=5), st.sampled_from(FORMATS), st.sampled_from(COMPRESSIONS), options)
    def test_rows_of_the_schema_come_back_from_every_format(self, rows, format, compression, options):
        written = [dump(row) for row in rows]
        (file,) = write_files(written, format, compression, SCHEMA, options)
        back = read(file, SCHEMA, format=format, compression=compression, options=msgspec.to_builtins(options))
        assert plain(values(back)) == plain(values(written))
        if format == "jsonl":
            assert back == written

    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(st.lists(odd_rows, max_size=6))
    @example([{"day": "", "name": "a"}, {"day": Decimal("0.0")}])  # the column widens twice
    @example([{"day": "2026-01-02"}, {"day": ""}, {"day": Decimal("0.0")}])
    def test_parquet_holds_rows_that_are_not_of_the_schema(self, rows):
        """Given values of any type, when they are written, then they come back, from as many files as needed."""
        written = [dump(row) for row in rows]
        files = write_files(written, "parquet", "zstd", SCHEMA, CsvOptions())
        back = [row for file in files for row in read(file, format="parquet")]
        assert plain(values(back)) == plain(values(written))

    @settings(deadline=None)
    @given(st.lists(st.fixed_dictionaries({"a": text, "b": text}), max_size=5), options)
    def test_csv_without_a_schema_is_text(self, rows, options):
        (file,) = write_files([dump(row) for row in rows], "csv", "none", None, options)
        assert values(read(file, format="csv", options=msgspec.to_builtins(options))) == rows

    def test_numbers_keep_their_digits_in_jsonl_and_csv(self):
        row = b'{"id":1,"ratio":1.1000000000000000000000000001,"price":1.10}'
        for format in ("jsonl", "csv"):
            (file,) = write_files([row], format, "none", SCHEMA, CsvOptions())
            (back,) = read(file, SCHEMA, format=format)
            assert b'"ratio":1.1000000000000000000000000001' in back
            assert b'"price":1.10' in back

    def test_decimals_keep_their_digits_in_parquet(self):
        row = b'{"id":1,"price":123456789012345678901234567890.10}'
        (file,) = write_files([row], "parquet", "none", SCHEMA, CsvOptions())
        assert b'"price":123456789012345678901234567890.10' in read(file, SCHEMA, format="parquet")[0]

    def test_what_pythons_json_writes_passes_through_jsonl(self):
        rows = [b'{"a":NaN}', b'{"a":"\\ud800"}', b'{"a":1,"a":2}']
        (file,) = write_files(rows, "jsonl", "gzip", None, CsvOptions())
        assert read(file) == rows

    def test_a_parquet_file_of_many_row_groups_is_read_in_its_order(self):
        rows = [dump({"id": number, "name": "x" * 2000}) for number in range(10_000)]
        (file,) = write_files(rows, "parquet", "gzip", SCHEMA, CsvOptions())
        assert pq.ParquetFile(io.BytesIO(file)).metadata.num_row_groups > 1
        assert [row["id"] for row in values(read(file, SCHEMA, format="parquet"))] == list(range(10_000))


class TestWhatIsNotWhatItSays:
    @pytest.mark.parametrize(
        ("data", "batch", "problem"),
        [
            (b'{"a":1}\n', {"compression": "gzip"}, "should be gzip and is not compressed"),
            (gzip.compress(b"{}", mtime=0), {"compression": "none"}, "should be not compressed and is gzip"),
            (gzip.compress(b"{}", mtime=0), {"compression": "zstd"}, "should be zstd and is gzip"),
            (b"", {"compression": "gzip"}, "should be gzip"),
            (b"PAR1....PAR1", {}, "line 1 is not a JSON object"),
            (b"PAR1....PAR1", {"compression": "gzip"}, "should be gzip and is parquet"),
            (b'{"a":1}\n', {"format": "parquet"}, "no Parquet file that can be read"),
            (gzip.compress(b"{}", mtime=0), {"format": "parquet"}, "no Parquet file that can be read"),
            (b"PAR1" + b"\0" * 100 + b"PAR1", {"format": "parquet"}, "no Parquet file that can be read"),
            (b'{"a":1}\nid,name\n', {}, "line 2 is not a JSON object"),
            (b'{"a":1}\n[1]\n', {}, "line 2 is not a JSON object"),
            (b'{"a":1}\n{"a":"\xff"}\n', {}, "line 2 is not a JSON object"),
            (b'{"a":1}\n{"a":', {}, "line 2 is not a JSON object"),
            (b"[" * 100_000, {}, "line 1 is not a JSON object"),
            (b'{"a":1}\n' + BOM_UTF8 + b'{"a":2}\n', {}, "line 2 is not a JSON object"),
            (BOM_UTF8 * 2 + b'{"a":1}\n', {}, "line 1 is not a JSON object"),
            ('{"a":1}'.encode("utf-16"), {}, "line 1 is not a JSON object"),
            (b"{}", {"format": "arrow"}, "'arrow'"),
            (b"{}", {"compression": "lzma"}, "lzma"),
            (b'{"id":1}\n', {"format": "csv"}, "line 1: a quote stands inside"),
            (b"a,b\n1,2,3\n", {"format": "csv"}, "line 2 has 3 values and there are 2 columns"),
            (b"a,b\n1\n", {"format": "csv"}, "line 2 has 1 values"),
            (b"a,a\n1,2\n", {"format": "csv"}, "twice"),
            (b'a,b\n"1,2\n3,4\n', {"format": "csv"}, "cut off: a quote is open"),
            (b"a,b\n\xff,2\n", {"format": "csv"}, "line 2 is not UTF-8"),
            (b"a", {"format": "csv", "options": {"delimiter": "ab"}}, "delimiter"),
            (b"a", {"format": "csv", "options": {"skip": 1}}, "unknown field `skip`; there are delimiter, quote_"),
            (b"a", {"format": "csv", "options": {"header": "no"}}, "header"),
            (b"a", {"format": "csv", "options": {"header": False}}, "no SCHEMA"),
            (b"a", {"format": "csv", "options": {"delimiter": '"'}}, "different characters"),
        ],
    )
    def test_it_is_refused_and_the_reason_said(self, data, batch, problem):
        with pytest.raises(BatchError) as caught:
            read(data, **batch)
        assert problem in str(caught.value)

    @pytest.mark.parametrize("text", [b'{"a":1}', b'{"a":NaN}'])
    def test_a_byte_order_mark_at_the_beginning_is_no_part_of_the_first_row(self, text):
        assert read(BOM_UTF8 + text + b"\n" + text + b"\n") == [text, text]

    def test_the_sdk_that_says_none_and_writes_gzip_is_read(self):
        assert read(gzip.compress(b"{}"), dialect="sdk", compression="none") == [b"{}"]

    @pytest.mark.parametrize("compression", ["gzip", "zstd"])
    @pytest.mark.parametrize("format", FORMATS)
    def test_one_that_is_cut_off_anywhere_is_refused(self, format, compression):
        rows = [dump({"id": number, "name": f"name {number}"}) for number in range(50)]
        (file,) = write_files(rows, format, compression, SCHEMA, CsvOptions())
        for end in range(0, len(file), max(len(file) // 50, 1)):
            with pytest.raises(BatchError):
                read(file[:end], SCHEMA, format=format, compression=compression)

    @pytest.mark.parametrize("compression", ["gzip", "zstd"])
    def test_one_bit_that_fell_over_is_found(self, compression):
        rows = [dump({"id": number, "name": f"name {number}"}) for number in range(500)]
        (file,) = write_files(rows, "jsonl", compression, SCHEMA, CsvOptions())
        spoilt = bytearray(file)
        spoilt[len(spoilt) // 2] ^= 0x10
        with pytest.raises(BatchError):
            read(bytes(spoilt), compression=compression)

    @pytest.mark.parametrize(("compression", "flush"), [("gzip", zlib.Z_SYNC_FLUSH), ("zstd", COMPRESSOBJ_FLUSH_BLOCK)])
    @pytest.mark.parametrize("is_cut", [True, False])
    def test_the_rows_before_a_damage_are_read_and_the_damage_is_reported(self, compression, flush, is_cut):
        packer = zlib.compressobj(wbits=31) if compression == "gzip" else zstandard.ZstdCompressor().compressobj()
        rows = [dump({"id": number}) for number in range(51)]
        *good, bad = [packer.compress(row + b"\n") + packer.flush(flush) for row in rows]
        file = io.BytesIO(b"".join(good) + bad[:2] + (b"" if is_cut else b"\xff" * 9))
        back = read_rows(file, BatchManifest(stream="s", files=[], compression=compression), None, Limits())
        assert [next(back) for _ in good] == rows[:50]
        with pytest.raises(BatchError, match="cut off" if is_cut else "damaged"):
            next(back)

    @settings(deadline=None)
    @given(
        st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"]),
        st.binary(max_size=300),
        st.sampled_from(FORMATS),
        st.sampled_from([None, *COMPRESSIONS]),
    )
    def test_noise_is_rows_or_a_refusal(self, magic, data, format, compression):
        try:
            rows = read(magic + data, SCHEMA, format=format, compression=compression)
        except BatchError:
            return
        assert all(isinstance(row, dict) for row in values(rows))

    @settings(deadline=None, max_examples=50)
    @given(st.data())
    def test_a_spoilt_parquet_file_is_rows_or_a_refusal(self, data):
        rows = [
            dump({"id": number, "place": {"x": 1, "tags": ["a"]}, "at": "2020-01-01T00:00:00Z"}) for number in range(20)
        ]
        spoilt = bytearray(write_files(rows, "parquet", "zstd", SCHEMA, CsvOptions())[0])
        for _ in range(3):
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
        try:
            rows = read(bytes(spoilt), SCHEMA, format="parquet")
        except BatchError:
            return
        assert all(isinstance(row, dict) for row in values(rows))


class TestBounds:
    @pytest.mark.parametrize("compression", ["gzip", "zstd"])
    def test_a_bomb_is_not_unpacked(self, compression):
        rows = (b'{"a":"' + b"x" * (1 << 20) + b'"}\n') * 200
        bomb = gzip.compress(rows) if compression == "gzip" else zstandard.ZstdCompressor().compress(rows)
        with pytest.raises(BatchError, match="times as large"):
            read(bomb, compression=compression)

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("format", ["jsonl", "csv"])
    def test_no_more_bytes_than_allowed(self, format, compression):
        rows = [dump({"id": number, "name": "x" * 100}) for number in range(1000)]
        (file,) = write_files(rows, format, compression, SCHEMA, CsvOptions())
        with pytest.raises(BatchError, match="more than 5000 bytes"):
            read(file, SCHEMA, Limits(5000), format=format, compression=compression)

    def test_no_more_bytes_of_parquet_than_allowed(self):
        (file,) = write_files([dump({"id": 1, "name": "x" * 10_000})] * 50, "parquet", "zstd", SCHEMA, CsvOptions())
        with pytest.raises(BatchError, match="more than"):
            read(file, SCHEMA, Limits(50_000), format="parquet")

    @pytest.mark.parametrize(
        ("data", "batch", "problem"),
        [
            (gzip.compress(b"") * 10_000, {"limits": Limits(50_000), "compression": "gzip"}, "more than"),
            (b"x" * (MAX_ROW_BYTES + 2), {"format": "jsonl"}, str(MAX_ROW_BYTES)),
            (b"x" * (MAX_ROW_BYTES + 2), {"format": "csv"}, str(MAX_ROW_BYTES)),
            (b'a,b\n"' + (b"x" * 999 + b"\n") * (MAX_ROW_BYTES // 1000 + 1), {"format": "csv"}, "a quote is open"),
        ],
        ids=["empty gzip streams", "a line", "a line of CSV", "a quote"],
    )
    def test_what_has_no_end_is_refused(self, data, batch, problem):
        with pytest.raises(BatchError, match=problem):
            read(data, **batch)

    def test_a_table_of_too_many_columns_is_refused(self):
        with pytest.raises(BatchError, match="columns"):
            write_files([dump({str(number): 1 for number in range(10_001)})], "csv", "none", None, CsvOptions())


class TestCsv:
    @pytest.mark.parametrize(
        ("line", "row"),
        [
            ("1,1.5,x,true", {"id": 1, "ratio": 1.5, "name": "x", "is_new": True}),
            ('"1","1.5","x","t"', {"id": 1, "ratio": 1.5, "name": "x", "is_new": True}),
            ("007,.5,1,0", {"id": 7, "ratio": 0.5, "name": "1", "is_new": False}),
            ("+5,1.,true,F", {"id": 5, "ratio": 1, "name": "true", "is_new": False}),
            ("1,,,", {"id": 1, "ratio": None, "name": None, "is_new": None}),
            ('1,"","",""', {"id": 1, "ratio": None, "name": "", "is_new": None}),
            (",,,", {"ratio": None, "name": None, "is_new": None}),  # an integer that may not be null is left out
            ('1,2,"a ""b"", c",', {"id": 1, "ratio": 2, "name": 'a "b", c', "is_new": None}),
            ("1,1e5,x,\r", {"id": 1, "ratio": 1e5, "name": "x", "is_new": None}),
        ],
    )
    def test_values_have_the_types_of_the_schema(self, line, row):
        (read_row,) = read(f"id,ratio,name,is_new\n{line}\n".encode(), SCHEMA, format="csv")
        assert json.loads(read_row) == row

    @pytest.mark.parametrize(
        ("column", "value"),
        [("id", "1.5"), ("id", "x"), ("ratio", "NaN"), ("is_new", "maybe"), ("place", "{"), ("marks", "x")],
    )
    def test_a_value_of_another_type_is_refused_and_not_shown(self, column, value):
        with pytest.raises(BatchError) as caught:
            read(f"{column},name\n{value},hidden\n".encode(), SCHEMA, format="csv")
        assert str(caught.value).startswith(f'line 2, column "{column}": a value is no ')
        assert "hidden" not in str(caught.value)

    def test_nested_values_are_json(self):
        file = b'id,place,marks\n1,"{""x"":1,\n ""tags"":[]}","[1.50]"\n'
        (row,) = read(file, SCHEMA, format="csv")
        assert b"\n" not in row
        assert b"1.50" in row
        assert json.loads(row) == {"id": 1, "place": {"x": 1, "tags": []}, "marks": [1.5]}

    def test_without_a_header_the_columns_are_those_of_the_schema(self):
        schema = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
        assert read(b"1,x\n2,\n", schema, format="csv", options={"header": False}) == [
            b'{"id":1,"name":"x"}',
            b'{"id":2,"name":""}',
        ]

    def test_a_bom_and_empty_lines_are_no_data(self):
        assert read(b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n\r\n", format="csv") == [b'{"a":"1","b":"2"}']

    def test_a_header_of_another_table_is_refused(self):
        with pytest.raises(BatchError, match="none of the columns"):
            read(b"x,y\n1,2\n", SCHEMA, format="csv")

    def test_a_new_column_wants_a_new_file(self):
        first, second = write_files([b'{"a":1}', b'{"b":2,"a":3}'], "csv", "none", None, CsvOptions())
        assert (first, second) == (b'"a"\n1\n', b'"a","b"\n3,2\n')


class TestParquet:
    def table(self, **columns: Any) -> bytes:
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file)
        return file.getvalue()

    def test_every_type_that_json_has_something_for(self):
        file = self.table(
            ns=pa.array([1_600_000_000_123_456_789], pa.timestamp("ns", "Europe/Berlin")),
            ms=pa.array([-1], pa.timestamp("ms")),
            day=pa.array([-719162], pa.date32()),
            time=pa.array([3_661_000_001], pa.time64("us")),
            many=pa.array([Decimal("12345678901234567890.123")], pa.decimal128(38, 3)),
            nan=pa.array([math.nan], pa.float64()),
            raw=pa.array([b"\xff\x00"], pa.binary()),
            word=pa.array(["x"]).dictionary_encode(),
            pairs=pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            deep=pa.array(
                [{"at": [{"t": 0}], "b": None}],
                pa.struct({"at": pa.list_(pa.struct({"t": pa.timestamp("s", "UTC")})), "b": pa.int8()}),
            ),
            gone=pa.array([None], pa.list_(pa.int64())),
        )
        (row,) = read(file, format="parquet")
        assert row == (
            b'{"ns":"2020-09-13T12:26:40.123456789Z","ms":"1969-12-31T23:59:59.999","day":"0001-01-01",'
            b'"time":"01:01:01.000001","many":12345678901234567890.123,"nan":null,"raw":"/wA=","word":"x",'
            b'"pairs":{"a":1},"deep":{"at":[{"t":"1970-01-01T00:00:00Z"}],"b":null},"gone":null}'
        )

    def test_the_schema_says_what_bytes_and_decimals_are(self):
        schema = {"properties": {"raw": {"type": "string"}, "sum": {"type": "string", "format": "x-singer.decimal"}}}
        file = self.table(raw=pa.array([b"x"]), sum=pa.array([Decimal("1.50")]))
        assert read(file, schema, format="parquet") == [b'{"raw":"x","sum":"1.50"}']
        with pytest.raises(BatchError, match="contentEncoding"):
            read(self.table(raw=pa.array([b"\xff"])), schema, format="parquet")

    def test_a_null_that_the_schema_does_not_allow_is_left_out(self):
        file = self.table(id=pa.array([None], pa.int64()), name=pa.array([None], pa.string()))
        assert read(file, SCHEMA, format="parquet") == [b'{"name":null}']

    def test_columns_have_the_types_of_the_schema(self):
        (file,) = write_files([b'{"id":1}'], "parquet", "zstd", SCHEMA, CsvOptions())
        schema = pq.read_schema(io.BytesIO(file))
        assert {name: str(schema.field(name).type) for name in schema.names} == {
            "id": "int64",
            "price": "decimal128(38, 2)",
            "ratio": "double",
            "name": "string",
            "is_new": "bool",
            "at": "timestamp[us, tz=UTC]",
            "day": "date32[day]",
            "place": "struct<x: int64, tags: list<element: string>>",
            "marks": "list<element: double>",
            "parts": "string",
        }

    @pytest.mark.parametrize(
        ("column", "value", "type"),
        [
            ("id", 2**63, "string"),
            ("id", "x", "string"),
            ("at", "yesterday", "string"),
            ("at", "2020-01-01T00:00:00", "string"),  # without a zone nobody knows which instant it is
            ("at", "0001-01-01T00:00:00+02:00", "string"),
            ("day", "2020-02-30", "string"),
            ("day", "2020-W01-1", "string"),
            ("price", Decimal("1.001"), "string"),
            ("ratio", 2**53 + 1, "string"),
            ("place", {"y": 1}, "string"),
            ("marks", ["x"], "string"),
        ],
    )
    def test_a_value_that_does_not_fit_makes_the_column_wider_in_a_new_file(self, column, value, type):
        rows = [dump({column: None, "name": "a"}), dump({column: value})]
        first, second = write_files(rows, "parquet", "none", SCHEMA, CsvOptions())
        assert str(pq.read_schema(io.BytesIO(second)).field(column).type) == type
        (back,) = read(second, format="parquet")
        assert values([back])[0][column] == values(rows)[1][column]
        assert read(first, format="parquet")

    @pytest.mark.parametrize("when", [-62_167_219_200_000, -62_200_000_000_000, 253_402_300_800_000, 2**62])
    def test_a_time_outside_of_the_calendar_is_refused(self, when):
        with pytest.raises(BatchError, match="outside of the years 1 to 9999"):
            read(self.table(at=pa.array([when], pa.timestamp("ms"))), format="parquet")
