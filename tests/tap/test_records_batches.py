"""BATCH of a tap: files that are whole before they are named, read back by the readers of BATCH."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from balog.broker.batches.config import BatchConfig
from balog.broker.batches.reader import BatchReader
from balog.common.errors import ConfigError
from balog.singer.batch.dialects import read_batch
from balog.singer.batch.files import Limits, read_rows
from balog.tap import Tap
from balog.tap.errors import RecordError
from balog.tap.records import Output
from balog.tap.records.batches import read_batch_config
from tests.tap.programs import Ran

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}


def config(folder, format="jsonl", compression="gzip", **more):
    return {
        "encoding": {"format": format, "compression": compression},
        "storage": {"root": f"file://{folder}", "prefix": "raw-"},
        **more,
    }


def messages(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def rows(message):
    batch = read_batch(json.dumps(message).encode())
    found = []
    for file in batch.files:
        path = Path(urlsplit(file).path if "://" in file else file)
        with path.open("rb") as data:
            found += map(json.loads, read_rows(data, batch, SCHEMA, Limits()))
    return found


@pytest.mark.parametrize(
    ("format", "compression"), [("jsonl", "gzip"), ("jsonl", "none"), ("csv", "gzip"), ("parquet", "none")]
)
@pytest.mark.parametrize("dialect", ["sdk", "proposal", "pipelinewise"])
def test_files_have_so_many_rows_and_come_before_the_state(tmp_path, capsys, format, compression, dialect):
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    output = Output()
    output.write_batches(config(tmp_path, format, compression, batch_size=2, dialect=dialect))
    write = output.records("users")
    output.schema("users", SCHEMA, ["id"], [])
    given = [{"id": number, "name": None if number % 2 else f"né {number}"} for number in range(5)]
    assert write.page(given) == 5
    output.state({"bookmarks": {}})
    said = messages(capsys)
    assert [message["type"] for message in said] == ["SCHEMA", "BATCH", "BATCH", "BATCH", "STATE"]
    assert [rows(message) for message in said[1:4]] == [given[:2], given[2:4], given[4:]]
    if dialect == "sdk":
        assert said[1]["encoding"] == {"format": format, "compression": compression}
        assert said[1]["manifest"][0].startswith(f"file://{tmp_path}/raw-users-")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_record_that_a_file_cannot_hold_is_refused(tmp_path, capsys):
    output = Output()
    output.write_batches(config(tmp_path))
    write = output.records("users")
    with pytest.raises(RecordError, match="half of a surrogate pair"):
        write({"name": "\ud800"})
    output.state({})
    assert [message["type"] for message in messages(capsys)] == ["STATE"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({}, "$.batch_config"),
        ({"storage": {"root": ""}}, "$.batch_config.storage.root"),
        ({"storage": {"root": "/x", "prefix": "a/b"}}, "$.batch_config.storage.prefix"),
        ({"storage": {"root": "/x"}, "encoding": {"format": "xml"}}, "$.batch_config.encoding.format"),
        ({"storage": {"root": "https://example.com/x"}}, "$.batch_config.storage.root"),
    ],
)
def test_a_config_that_cannot_be_says_where(said, path):
    with pytest.raises(ConfigError) as caught:
        read_batch_config(said)
    assert caught.value.path == path


def test_every_problem_of_a_config_is_a_line_with_its_file_and_place(tmp_path, capsys):
    tap = Tap("tap-cool")
    tap.stream("users", key_properties=["id"], schema={"type": "object", "properties": {"id": {}}})(lambda: [{"id": 1}])
    said = {"encoding": {"format": "xml", "packed": "gzip"}, "storage": {"rot": "x"}, "batch_size": 0}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"batch_config": said}))
    ran = Ran(capsys, tap, "--config", str(path))
    assert ran.code == 2
    assert sorted(line.removeprefix(f"tap-cool: {path}: $.batch_config").partition(": ")[0] for line in ran.lines) == [
        ".batch_size",
        ".encoding",
        ".encoding.format",
        ".storage",
        ".storage",
    ]


def test_a_tap_does_so_by_its_config(tmp_path, capfd):
    tap = Tap("tap-cool")

    @tap.stream("users", key_properties=["id"], replication_key="id", schema=SCHEMA)
    def users(context):
        yield [{"id": "1"}, {"id": 2, "name": "b"}]

    (tmp_path / "config.json").write_text(json.dumps({"batch_config": config(tmp_path / "out")}))
    ran = Ran(capfd, tap, "--config", str(tmp_path / "config.json"))
    assert ran.code == 0
    (batch,) = ran.of("BATCH")
    assert rows(batch) == [{"id": 1}, {"id": 2, "name": "b"}]
    assert not ran.records
    assert ran.messages[-1]["value"]["bookmarks"]["users"]["id"] == 2


def test_the_broker_makes_records_of_it_again(tmp_path, capsys):
    output = Output()
    output.write_batches(config(tmp_path))
    output.schema("users", SCHEMA, ["id"], [])
    write = output.records("users")
    output.state({})  # nothing was begun: no file
    write({"id": 1, "name": "é"})
    output.state({"bookmarks": {}})
    reader = BatchReader(BatchConfig(to="records"), None, None, print)
    said = capsys.readouterr().out.encode().splitlines(keepends=True)
    (batch,) = [line for line in said if b'"BATCH"' in line]
    records = [json.loads(line) for kind, line in reader.edit("BATCH", batch) if kind == "RECORD"]
    assert records == [{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "é"}}]
