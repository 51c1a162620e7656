"""BATCH between balog and real programs: a tap and a target on the Meltano SDK, and PipelineWise's library.

Each runs in an environment of its own; what it writes goes through the editors of a broker, and what they write goes to
it.
"""

import gzip
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from balog.broker.batches.config import BatchConfig
from balog.broker.batches.reader import BatchReader
from balog.broker.batches.writer import BatchWriter
from balog.broker.editor import Chain, Editor
from balog.singer.batch.dialects import read_batch
from tests.programs import environment_without, run_program
from tests.services.servers.s3 import running_s3
from tests.services.test_taps_on_balog import environment_with

pytestmark = pytest.mark.service

ROWS = [
    {
        "id": number,
        "name": f"name {number}" if number % 3 else None,
        "price": round(1.1 * number, 2),
        "is_new": number % 2 == 0,
        "place": {"x": number, "tags": ["a", "b"]},
        "at": "2026-11-20T07:46:12.123456Z",
    }
    for number in range(10)
]

TAP = f"""
from decimal import Decimal
from singer_sdk import Stream, Tap
from singer_sdk import typing as th

class Users(Stream):
    name = "users"
    primary_keys = ("id",)
    schema = th.PropertiesList(
        th.Property("id", th.IntegerType, required=True),
        th.Property("name", th.StringType),
        th.Property("price", th.NumberType),
        th.Property("is_new", th.BooleanType),
        th.Property("place", th.ObjectType(
            th.Property("x", th.IntegerType), th.Property("tags", th.ArrayType(th.StringType))
        )),
        th.Property("at", th.DateTimeType),
    ).to_dict()

    def get_records(self, context):
        yield from {ROWS!r}

class TapLittle(Tap):
    name = "tap-little"
    config_jsonschema = th.PropertiesList().to_dict()

    def discover_streams(self):
        return [Users(self)]

TapLittle.cli()
"""

TARGET = """
import json
from singer_sdk import Target
from singer_sdk import typing as th
from singer_sdk.sinks import BatchSink

class Rows(BatchSink):
    def process_batch(self, context):
        with open("rows.jsonl", "a") as file:
            for record in context["records"]:
                file.write(json.dumps(record, default=str) + "\\n")

class TargetLittle(Target):
    name = "target-little"
    config_jsonschema = th.PropertiesList().to_dict()
    default_sink_class = Rows

TargetLittle.cli()
"""

PIPELINEWISE = """
import sys
import singer
if sys.argv[1] == "write":
    batch = singer.BatchMessage(stream="users", filepath="users.jsonl.gz", compression="gzip", batch_size=10)
    singer.write_message(batch)
else:
    message = singer.parse_message(sys.stdin.read())
    print(message.stream, message.filepath, message.format, message.compression, message.batch_size)
"""


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(tmp_path_factory.mktemp("sdk"), "singer-sdk[parquet]==0.54.9")


@pytest.fixture(scope="module")
def pipelinewise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(tmp_path_factory.mktemp("pipelinewise"), "realit-singer-python==5.0.3")


def run(*command: str | Path, cwd: Path, input: bytes = b"") -> bytes:
    variables = environment_without("BALOG_", "SINGER_")
    return run_program(*command, cwd=cwd, env=variables, feed=input.decode()).stdout.encode()


def through(stream: bytes, **config: Any) -> bytes:
    """Give what a broker of this config makes of a stream."""
    read = BatchConfig(**config)
    editors: list[Editor] = [BatchReader(read, None, None, print)]
    if read.location is not None:
        editors.append(BatchWriter(read, None, print))
    chain = Chain(editors)
    out: list[bytes] = []
    for line in stream.splitlines(keepends=True):
        kind = json.loads(line)["type"]
        edited = chain.edit(kind, line) if kind in chain.types else None
        out += [line] if edited is None else [made for _, made in edited]
    return b"".join([*out, *(line for _, line in chain.end())])


def records(stream: bytes) -> list[Any]:
    messages = [json.loads(line) for line in stream.splitlines()]
    return [message["record"] for message in messages if message["type"] == "RECORD"]


def plain(rows: Iterable[Any]) -> list[Any]:
    """Numbers as numbers, instants as instants: what a target that is not balog's made of them."""

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: of(item) for key, item in value.items()}
        if isinstance(value, str) and value.startswith("2026-11-20"):
            return value.replace("+00:00", "Z").replace(" ", "T")
        return value

    return [of({**row, "price": float(Decimal(row["price"]))}) for row in rows]


class TestMeltanoSdk:
    @pytest.mark.parametrize(
        ("format", "compression"), [("jsonl", "gzip"), ("jsonl", "none"), ("parquet", "gzip"), ("parquet", "none")]
    )
    def test_what_its_tap_writes_becomes_records(
        self, sdk: Path, tmp_path: Path, format: str, compression: str
    ) -> None:
        storage = {"root": f"file://{tmp_path}/out", "prefix": "p-"}
        batch = {"encoding": {"format": format, "compression": compression}, "storage": storage, "batch_size": 4}
        (tmp_path / "tap.py").write_text(TAP)
        (tmp_path / "config.json").write_text(json.dumps({"batch_config": batch}))
        stream = run(sdk / "python", "tap.py", "--config", "config.json", cwd=tmp_path)
        assert stream.count(b'"type":"BATCH"') == 3
        assert plain(records(through(stream, to="records"))) == ROWS

    @pytest.mark.parametrize(
        ("format", "compression"), [("jsonl", "gzip"), ("jsonl", "none"), ("parquet", "gzip"), ("parquet", "zstd")]
    )
    def test_its_target_reads_what_records_become(
        self, sdk: Path, tmp_path: Path, format: str, compression: str
    ) -> None:
        (tmp_path / "tap.py").write_text(TAP)
        (tmp_path / "target.py").write_text(TARGET)
        stream = run(sdk / "python", "tap.py", cwd=tmp_path)
        assert records(stream)
        made = through(
            stream, to="batch", location=str(tmp_path / "new"), format=format, compression=compression, max_records=4
        )
        assert records(made) == []
        run(sdk / "python", "target.py", cwd=tmp_path, input=made)
        assert plain(json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()) == ROWS

    def test_its_target_reads_what_another_dialect_and_format_becomes(self, sdk: Path, tmp_path: Path) -> None:
        (tmp_path / "tap.py").write_text(TAP)
        (tmp_path / "target.py").write_text(TARGET)
        stream = run(sdk / "python", "tap.py", cwd=tmp_path)
        as_csv = through(
            stream, to="batch", location=str(tmp_path / "csv"), format="csv", compression="zstd", dialect="pipelinewise"
        )
        as_jsonl = through(
            as_csv, to="batch", location=str(tmp_path / "new"), format="jsonl", compression="gzip", dialect="sdk"
        )
        run(sdk / "python", "target.py", cwd=tmp_path, input=as_jsonl)
        assert plain(json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()) == ROWS


class TestPipelineWise:
    def test_what_its_library_writes_becomes_records(self, pipelinewise: Path, tmp_path: Path) -> None:
        (tmp_path / "peer.py").write_text(PIPELINEWISE)
        (tmp_path / "users.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, ROWS)).encode()))
        stream = run(pipelinewise / "python", "peer.py", "write", cwd=tmp_path)
        assert records(through(stream, to="records", root=str(tmp_path))) == ROWS

    def test_its_library_reads_what_records_become(self, pipelinewise: Path, tmp_path: Path) -> None:
        (tmp_path / "peer.py").write_text(PIPELINEWISE)
        stream = b"".join(
            json.dumps({"type": "RECORD", "stream": "users", "record": row}).encode() + b"\n" for row in ROWS
        )
        made = through(stream, to="batch", location=str(tmp_path), dialect="pipelinewise", format="csv")
        batch = read_batch(made)
        assert batch.dialect == "pipelinewise"
        read = run(pipelinewise / "python", "peer.py", "read", cwd=tmp_path, input=made).decode()
        assert read.split() == ["users", *batch.files, "csv", "gzip", "10"]


class TestS3:
    @pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
    def test_rows_through_a_bucket_and_by_pre_signed_urls(
        self, monkeypatch: pytest.MonkeyPatch, s3: Any, format: str
    ) -> None:
        """Given files in a bucket, then the store and a signed URL give their rows, and a spoilt signature none."""

        s3.environment(monkeypatch)
        bucket = f"batches-{format}"
        s3.bucket(bucket)
        schema = {"properties": {"id": {"type": "integer"}, "name": {"type": ["string", "null"]}}}
        rows = [{"id": row["id"], "name": row["name"]} for row in ROWS]
        messages: list[dict[str, Any]] = [{"type": "SCHEMA", "stream": "a", "schema": schema, "key_properties": []}]
        messages += [{"type": "RECORD", "stream": "a", "record": row} for row in rows]
        stream = b"".join(json.dumps(message).encode() + b"\n" for message in messages)

        made = through(
            stream, to="batch", dialect="proposal", location=f"s3://{bucket}/new", options=s3.options(), format=format
        )
        assert records(through(made, to="records", allowed=[f"s3://{bucket}"], options=s3.options())) == rows


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server
