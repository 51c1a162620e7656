import gc
import gzip
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from balog.broker.batches import writer as batch_writer
from balog.broker.batches.config import BatchConfig
from balog.broker.batches.reader import BatchReader
from balog.broker.batches.writer import BatchWriter
from balog.broker.editor import Chain, Editor, Line, PipeError
from balog.broker.quarantine import Quarantine, QuarantineConfig
from balog.common.errors import ConfigError

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "at": {"type": ["string", "null"], "format": "date-time"},
    }
}


class Masks:
    """Stands for the editor of records: keeps odd ids of users, and nobody's name."""

    is_strict = True
    types = frozenset({"RECORD"})
    streams: frozenset[str] | None = frozenset({"users"})

    def rules_for(self, stream: str) -> object | None:
        return self if stream == "users" else None

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        message = json.loads(line)
        if message["stream"] != "users":
            return None
        if message["record"]["id"] % 2 == 0:
            return ()
        message["record"]["name"] = "***"
        return [("RECORD", json.dumps(message).encode() + b"\n")]

    def due(self) -> Iterable[Line]:
        return ()

    def end(self) -> Iterable[Line]:
        return ()


class Stream:
    """A stream that goes through the editors of a config, one message after the other."""

    def __init__(self, *, records: Masks | None = None, quarantine: Quarantine | None = None, **config: Any) -> None:
        self.said: list[str] = []
        self.config = BatchConfig(**config)
        editors: list[Editor] = [BatchReader(self.config, records, quarantine, self.said.append)]
        editors += [records] if records else []
        if self.config.location is not None:
            editors.append(BatchWriter(self.config, quarantine, self.said.append))
        self.chain = Chain(editors)
        self.out: list[dict[str, Any]] = []
        self.raw: list[bytes] = []

    def put(self, **message: Any) -> "Stream":
        return self.put_line(json.dumps(message).encode() + b"\n", message["type"])

    def put_line(self, line: bytes, kind: str) -> "Stream":
        edited = self.chain.edit(kind, line) if kind in self.chain.types else None
        self._take([(kind, line)] if edited is None else edited)
        return self

    def end(self) -> "Stream":
        self._take(self.chain.end())
        return self

    def _take(self, lines: Iterable[Line]) -> None:
        for kind, line in lines:
            message = json.loads(line)
            assert (message["type"], line[-1:], line.count(b"\n")) == (kind, b"\n", 1)
            self.out.append(message)
            self.raw.append(line)

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.out]

    def batches(self) -> list[dict[str, Any]]:
        return [message for message in self.out if message["type"] == "BATCH"]

    def records(self) -> list[Any]:
        return [message["record"] for message in self.out if message["type"] == "RECORD"]


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"name {number}"}


@pytest.mark.parametrize(
    ("to", "location", "collects"),
    [("batch", "files", True), ("batch", None, False), ("records", "files", False), ("pass", "files", False)],
)
def test_records_become_files_only_where_a_location_is_and_the_config_asks_for_it(
    to: Any, location: str | None, collects: bool
) -> None:
    assert BatchConfig(to=to, location=location).collects is collects


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., str]:
    """Writes a file of rows, and gives its path."""

    def write(*numbers: int, name: str = "rows.jsonl", pack: bool = False) -> str:
        data = "".join(json.dumps(row(number)) + "\n" for number in numbers).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if pack else data)
        return str(path)

    return write


@pytest.fixture
def quarantine(tmp_path: Path) -> Iterable[Quarantine]:
    opened = Quarantine(QuarantineConfig(path=str(tmp_path / "quarantine.jsonl")), lambda _: None)
    yield opened
    opened.close()


def quarantined(tmp_path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (tmp_path / "quarantine.jsonl").read_text().splitlines()]


def rows_in(message: dict[str, Any]) -> list[Any]:
    """Read the files that a BATCH of any dialect names, JSON lines with or without gzip."""
    found = []
    for file in message.get("manifest") or [message["filepath"]]:
        data = Path(file.removeprefix("file://")).read_bytes()
        found += (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines()
    return [json.loads(line) for line in found]


class TestToRecords:
    @pytest.mark.parametrize(
        "batch",
        [
            {"manifest": ["{}"], "size": 3},
            {"manifest": ["file://{}"], "encoding": {"format": "jsonl", "compression": "gzip"}},
            {"filepath": "{}", "compression": "gzip", "format": "jsonl", "batch_size": 3},
        ],
    )
    def test_rows_of_every_dialect_go_on_as_records(self, rows, batch):
        path = rows(1, 2, 3, pack=True)
        batch = json.loads(json.dumps(batch).replace("{}", path))
        stream = Stream(to="records").put(type="BATCH", stream="users", **batch).put(type="STATE", value=1)
        assert stream.kinds() == ["RECORD", "RECORD", "RECORD", "STATE"]
        assert stream.records() == [row(1), row(2), row(3)]

    def test_a_row_keeps_its_bytes(self, tmp_path):
        text = b'{"n": 1.10,  "big":123456789012345678901234567890, "\xc3\xa9": "\\u00e9"}'
        (tmp_path / "a").write_bytes(text)
        stream = Stream(to="records").put(type="BATCH", stream='a"b', manifest=[str(tmp_path / "a")])
        assert stream.raw == [b'{"type":"RECORD","stream":"a\\"b","record":' + text + b"}\n"]

    def test_what_the_batch_says_of_its_rows_stays_with_them(self, rows):
        message = {
            "type": "BATCH",
            "stream": "a",
            "manifest": [rows(1)],
            "version": 7,
            "time_extracted": "2020-01-01T00:00:00Z",
        }
        (record,) = Stream(to="records").put(**message).out
        assert (record["version"], record["time_extracted"]) == (7, "2020-01-01T00:00:00Z")

    def test_csv_has_the_types_of_the_schema_before_it(self, tmp_path):
        (tmp_path / "a.csv").write_text("id\tname\n1\t'x'\n")
        format = {"name": "csv", "options": {"delimiter": "\t", "quote_char": "'"}}
        stream = Stream(to="records").put(type="SCHEMA", stream="a", schema=SCHEMA, key_properties=[])
        stream.put(type="BATCH", stream="a", format=format, manifest=[str(tmp_path / "a.csv")])
        assert stream.records() == [{"id": 1, "name": "x"}]

    def test_other_streams_pass_byte_for_byte(self, rows):
        line = b'{"type": "BATCH",  "stream": "b", "manifest": ["/nowhere"]}\n'
        assert Stream(to="records", streams=["a*", "c"]).put_line(line, "BATCH").raw == [line]

    def test_the_rules_of_records_are_for_its_rows_too(self, rows):
        stream = Stream(to="records", records=Masks()).put(type="BATCH", stream="users", manifest=[rows(1, 2, 3)])
        assert stream.records() == [{"id": 1, "name": "***"}, {"id": 3, "name": "***"}]

    def test_rows_are_read_one_at_a_time(self, rows, tmp_path):
        """Given a file that breaks after two rows, when a row is asked for, then only that one has been read."""
        path = tmp_path / "a"
        path.write_bytes(json.dumps(row(1)).encode() + b"\n" + b"x" * (1 << 21))
        reader = BatchReader(BatchConfig(to="records"), None, None, lambda _: None)
        line = json.dumps({"type": "BATCH", "stream": "a", "manifest": [str(path)]}).encode()
        lines = iter(reader.edit("BATCH", line) or ())
        assert b'"id": 1' in next(lines)[1]
        with pytest.raises(PipeError):
            next(lines)


class TestPass:
    def test_a_batch_passes_byte_for_byte_and_unread(self):
        line = b'{"type": "BATCH",  "stream": "b", "manifest": ["/nowhere"], "encoding": {"format": "arrow"}}\n'
        assert Stream().put_line(line, "BATCH").raw == [line]

    def test_record_rules_are_not_gone_around(self, rows):
        with pytest.raises(PipeError, match=r"would go on past the stream's record rules.*batch\.location"):
            Stream(records=Masks()).put(type="BATCH", stream="users", manifest=[rows(1)])

    def test_streams_without_record_rules_pass(self):
        assert Stream(records=Masks()).put(type="BATCH", stream="b", manifest=["/nowhere"]).kinds() == ["BATCH"]


class TestRewritten:
    @pytest.mark.parametrize(
        "batch",
        [
            {"manifest": ["{}"], "size": 100, "time_extracted": "2020-01-01T00:00:00Z", "part": 1},
            {"manifest": ["file://{}"], "encoding": {"format": "jsonl", "compression": None}, "version": 3},
            {"filepath": "{}", "format": "jsonl", "batch_size": 3},
        ],
    )
    def test_rules_are_applied_inside_and_the_message_says_the_new_files(self, rows, tmp_path, batch):
        path = rows(1, 2, 3)
        batch = json.loads(json.dumps(batch).replace("{}", path))
        stream = Stream(location=str(tmp_path / "new"), records=Masks())
        stream.put(type="BATCH", stream="users", **batch)
        (message,) = stream.out
        assert rows_in(message) == [{"id": 1, "name": "***"}, {"id": 3, "name": "***"}]
        (new,) = (tmp_path / "new").iterdir()
        url = f"file://{new}"
        assert message == {
            "type": "BATCH",
            "stream": "users",
            **batch,
            **({"filepath": str(new), "batch_size": 2} if "filepath" in batch else {"manifest": [url]}),
            **(
                {
                    "size": 2,
                    "format": {"name": "jsonl", "options": {}},
                    "compression": {"name": None, "options": {}, "enabled": False},
                }
                if "size" in batch
                else {}
            ),
            **({"encoding": {"format": "jsonl", "compression": "none"}} if "encoding" in batch else {}),
        }
        assert Path(path).exists()

    def test_one_of_which_no_row_stays_is_gone(self, rows, tmp_path):
        stream = Stream(location=str(tmp_path / "new"), records=Masks())
        stream.put(type="BATCH", stream="users", manifest=[rows(2, 4)]).end()
        assert stream.out == []
        assert list((tmp_path / "new").glob("*")) == []

    def test_other_records_stay_records(self, tmp_path):
        stream = Stream(location=str(tmp_path), records=Masks())
        stream.put(type="RECORD", stream="users", record=row(1)).put(type="RECORD", stream="b", record=row(2)).end()
        assert stream.kinds() == ["RECORD", "RECORD"]

    def test_a_fault_takes_all_of_it_back(self, rows, tmp_path, quarantine):
        """Given a BATCH whose second file is broken, then none of its rows goes on and the BATCH is in quarantine."""
        bad = tmp_path / "bad"
        bad.write_bytes(b'{"id": 3}\n{"id":')
        stream = Stream(location=str(tmp_path / "new"), records=Masks(), quarantine=quarantine, max_records=1)
        message = {"type": "BATCH", "stream": "users", "manifest": [rows(1, 3, 5), str(bad)]}
        stream.put(**message).put(type="RECORD", stream="users", record=row(7)).end()
        assert stream.records() == [{"id": 7, "name": "***"}]
        assert stream.kinds() == ["RECORD"]
        assert list((tmp_path / "new").iterdir()) == []
        (entry,) = quarantined(tmp_path)
        assert json.loads(entry["raw"]) == message
        assert entry["reason"] == f"a BATCH of stream 'users' names the file {bad}, which line 2 is not a JSON object"

    def test_several_files_of_one_batch_come_in_their_order(self, rows, tmp_path):
        stream = Stream(location=str(tmp_path / "new"), records=Masks(), max_records=2)
        stream.put(type="BATCH", stream="users", manifest=[rows(*range(0, 20, 1))], size=20)
        assert [message["size"] for message in stream.out] == [2, 2, 2, 2, 2]
        assert [found["id"] for message in stream.out for found in rows_in(message)] == list(range(1, 20, 2))

    def test_a_schema_that_comes_with_the_rows_keeps_its_place(self, rows, tmp_path):
        class Enriches(Masks):
            def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
                if json.loads(line)["record"]["id"] != 2:
                    return None
                schema = {"type": "SCHEMA", "stream": "users", "schema": {}, "key_properties": []}
                return [("SCHEMA", json.dumps(schema).encode() + b"\n"), ("RECORD", line)]

        stream = Stream(location=str(tmp_path / "new"), records=Enriches())
        stream.put(type="BATCH", stream="users", manifest=[rows(1, 2, 3)])
        assert stream.kinds() == ["BATCH", "SCHEMA", "BATCH"]
        assert [len(rows_in(message)) for message in stream.batches()] == [1, 2]


class TestToBatch:
    def test_records_become_files_and_a_state_never_overtakes_them(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path))
        for number in range(5):
            stream.put(type="RECORD", stream="users" if number % 2 else "b", record=row(number))
        stream.put(type="STATE", value=5).put(type="RECORD", stream="b", record=row(9)).end()
        assert stream.kinds() == ["BATCH", "BATCH", "STATE", "BATCH"]
        assert [rows_in(message) for message in stream.batches()] == [
            [row(0), row(2), row(4)],
            [row(1), row(3)],
            [row(9)],
        ]
        assert stream.out[0]["encoding"] == {"format": "jsonl", "compression": "gzip"}
        assert stream.out[0]["manifest"][0].startswith(f"file://{tmp_path}/b-LG")
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.parametrize("kind", ["SCHEMA", "ACTIVATE_VERSION", "BATCH"])
    def test_what_is_about_a_stream_waits_for_its_rows_and_for_no_others(self, tmp_path, kind):
        message = {
            "SCHEMA": {"schema": {}, "key_properties": []},
            "ACTIVATE_VERSION": {"version": 1},
            "BATCH": {"manifest": []},
        }
        stream = Stream(to="batch", location=str(tmp_path))
        stream.put(type="RECORD", stream="a", record=row(1)).put(type="RECORD", stream="b", record=row(2))
        stream.put(type=kind, stream="a", **message[kind])
        assert [(found["type"], found["stream"]) for found in stream.out] == [("BATCH", "a"), (kind, "a")]
        stream.end()
        assert rows_in(stream.out[-1]) == [row(2)]

    def test_rows_of_a_version_stay_records_for_the_sdk_whose_targets_would_delete_them(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path))
        stream.put(type="RECORD", stream="a", record=row(1))
        for number in (2, 3):
            stream.put(type="RECORD", stream="a", record=row(number), version=7)
        stream.put(type="ACTIVATE_VERSION", stream="a", version=7)
        assert stream.kinds() == ["BATCH", "RECORD", "RECORD", "ACTIVATE_VERSION"]
        assert [message["version"] for message in stream.out[1:]] == [7, 7, 7]
        (said,) = stream.said
        assert "stay RECORDs" in said

    @pytest.mark.parametrize("dialect", ["proposal", "sdk", "pipelinewise"])
    def test_full_files_go_on_and_say_how_many_rows_they_have(self, tmp_path, dialect):
        stream = Stream(to="batch", location=str(tmp_path), max_records=2, dialect=dialect)
        for number in range(5):
            version = {} if dialect == "sdk" else {"version": 4}
            stream.put(type="RECORD", stream="a", record=row(number), time_extracted="2020-01-01T00:00:00Z", **version)
        assert len(stream.out) == 2
        stream.end()
        assert [len(rows_in(message)) for message in stream.out] == [2, 2, 1]
        if dialect != "sdk":
            assert [message["version"] for message in stream.out] == [4, 4, 4]
            sizes = [message.get("size", message.get("batch_size")) for message in stream.out]
            assert sizes == [2, 2, 1]
            assert stream.out[0]["time_extracted"] == "2020-01-01T00:00:00Z"

    def test_files_are_full_by_bytes_too(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), max_bytes=1024)
        for _ in range(4):
            stream.put(type="RECORD", stream="a", record={"a": "x" * 600})
        assert [len(rows_in(message)) for message in stream.out] == [2, 2]

    def test_rows_of_another_version_are_in_another_file(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), dialect="proposal")
        for version in (1, 1, 2):
            stream.put(type="RECORD", stream="a", record=row(version), version=version)
        stream.end()
        assert [(message["version"], len(rows_in(message))) for message in stream.out] == [(1, 2), (2, 1)]

    def test_a_state_waits_for_enough_rows_and_the_last_one_counts(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), min_records=3)
        stream.put(type="STATE", value=0)
        for number in range(1, 5):
            stream.put(type="RECORD", stream=f"s{number % 2}", record=row(number)).put(type="STATE", value=number)
        stream.put(type="RECORD", stream="s0", record=row(6)).put(type="STATE", value=6).end()
        assert [message.get("value", "BATCH") for message in stream.out] == [0, "BATCH", "BATCH", 3, "BATCH", 6]

    def test_a_state_that_waits_goes_on_when_nothing_is_left_to_wait_for(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), min_records=3, max_records=2)
        stream.put(type="RECORD", stream="a", record=row(1)).put(type="STATE", value=1)
        stream.put(type="ACTIVATE_VERSION", stream="a", version=1)
        assert stream.kinds() == ["BATCH", "STATE", "ACTIVATE_VERSION"]

    def test_a_state_that_waits_is_never_behind_a_later_one(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), min_records=3, max_records=2)
        for number in (1, 2):
            stream.put(type="RECORD", stream="a", record=row(number)).put(type="STATE", value=number)
        stream.put(type="STATE", value=3).end()
        assert [message.get("value", "BATCH") for message in stream.out] == ["BATCH", 1, 2, 3]

    def test_a_state_never_overtakes_rows_of_another_stream(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), min_records=3, max_records=2)
        stream.put(type="RECORD", stream="a", record=row(1)).put(type="STATE", value=1)
        stream.put(type="RECORD", stream="b", record=row(2)).put(type="RECORD", stream="b", record=row(3))
        assert stream.kinds() == ["BATCH"]
        stream.put(type="RECORD", stream="b", record=row(4)).end()
        assert stream.kinds() == ["BATCH", "BATCH", "BATCH", "STATE"]

    def test_rows_do_not_wait_for_ever(self, tmp_path, monkeypatch):
        monkeypatch.setattr(batch_writer, "MAX_AGE", 0.001)
        stream = Stream(to="batch", location=str(tmp_path)).put(type="RECORD", stream="a", record=row(1))
        assert stream.out == []
        while not (due := list(stream.chain.due())):
            pass
        assert [kind for kind, _ in due] == ["BATCH"]

    def test_what_is_no_record_passes(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path))
        for line in (b"junk\n", b'{"type": "RECORD", "stream": 1, "record": {}}\n'):
            assert stream.chain.edit("RECORD", line) is None

    def test_a_record_that_is_no_row_of_a_table_does_not_go_into_csv(self, tmp_path, quarantine):
        config = {"to": "batch", "location": str(tmp_path / "new"), "format": "csv"}
        with pytest.raises(PipeError, match="not a JSON object"):
            Stream(**config).put(type="RECORD", stream="a", record=[1])
        stream = Stream(quarantine=quarantine, **config).put(type="RECORD", stream="a", record=[1])
        stream.put(type="RECORD", stream="a", record={"a": 1}).end()
        assert stream.kinds() == ["BATCH"]
        assert json.loads(quarantined(tmp_path)[0]["raw"])["record"] == [1]

    def test_many_streams_keep_few_files_open(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path))
        for number in range(40):
            stream.put(type="RECORD", stream=f"s{number}", record=row(number))
        assert len(list(tmp_path.glob(".*.part"))) == 16
        stream.end()
        assert [found for message in stream.out for found in rows_in(message)] == [row(number) for number in range(40)]

    def test_a_name_that_is_no_file_name_stays_in_the_folder(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path / "new"))
        stream.put(type="RECORD", stream="../../a/é\n", record=row(1)).end()
        (file,) = (tmp_path / "new").iterdir()
        assert file.name.startswith("a-LG")
        assert rows_in(stream.out[0]) == [row(1)]

    def test_a_disk_that_is_full_ends_the_stream_before_its_state(self, tmp_path, monkeypatch):
        stream = Stream(to="batch", location=str(tmp_path)).put(type="RECORD", stream="a", record=row(1))

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(PipeError, match=r"for stream 'a' can't be written to .*: No space left"):
            stream.put(type="STATE", value=1)
        assert stream.out == []
        assert list(tmp_path.iterdir()) == []

    def test_what_a_stream_that_broke_off_has_begun_is_gone(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path)).put(type="RECORD", stream="a", record=row(1))
        assert len(list(tmp_path.iterdir())) == 1
        del stream
        gc.collect()
        assert list(tmp_path.iterdir()) == []

    def test_what_a_killed_writer_left_is_gone_with_the_next_and_what_a_live_one_has_is_not(self, tmp_path):
        live = Stream(to="batch", location=str(tmp_path)).put(type="RECORD", stream="a", record=row(1))
        (tmp_path / ".a-LG0000.jsonl.part").write_bytes(b"{}")
        (tmp_path / ".mine.part").write_bytes(b"{}")
        Stream(to="batch", location=str(tmp_path)).put(type="RECORD", stream="b", record=row(2)).end()
        assert (tmp_path / ".mine.part").exists()
        assert not (tmp_path / ".a-LG0000.jsonl.part").exists()
        assert rows_in(live.end().out[0]) == [row(1)]

    def test_a_wider_column_is_told_once(self, tmp_path):
        stream = Stream(to="batch", location=str(tmp_path), format="parquet")
        stream.put(type="SCHEMA", stream="a", schema=SCHEMA, key_properties=[])
        for at in ("2020-01-01T00:00:00Z", "yesterday", "today"):
            stream.put(type="RECORD", stream="a", record={"id": 1, "at": at})
        stream.end()
        assert stream.kinds() == ["SCHEMA", "BATCH", "BATCH"]
        assert stream.said == ["stream 'a': a value of 'at' is not of its SCHEMA's type; its files hold plain text"]


class TestConversion:
    @pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
    @pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
    @pytest.mark.parametrize("dialect", ["proposal", "sdk", "pipelinewise"])
    def test_records_to_any_batch_and_back(self, tmp_path, dialect, format, compression):
        sent = [row(number) for number in range(5)]
        there = Stream(to="batch", location=str(tmp_path), dialect=dialect, format=format, compression=compression)
        there.put(type="SCHEMA", stream="a", schema=SCHEMA, key_properties=["id"])
        for record in sent:
            there.put(type="RECORD", stream="a", record=record)
        there.put(type="STATE", value=1).end()
        assert there.kinds() == ["SCHEMA", "BATCH", "STATE"]

        back = Stream(to="records")
        for line, message in zip(there.raw, there.out):
            back.put_line(line, message["type"])
        assert back.kinds() == ["SCHEMA", *["RECORD"] * 5, "STATE"]
        assert [{key: value for key, value in found.items() if value is not None} for found in back.records()] == sent

    def test_only_the_message_is_rewritten_where_the_files_can_stay(self):
        stream = Stream(to="batch", dialect="proposal", format="jsonl", compression="gzip")
        stream.put(type="BATCH", stream="a", encoding={"format": "jsonl", "compression": "gzip"}, manifest=["s3://a/b"])
        (message,) = stream.out
        assert (message["manifest"], message["compression"]["name"]) == (["s3://a/b"], "gzip")

    @pytest.mark.parametrize("config", [{"format": "csv"}, {"compression": "zstd"}])
    def test_files_that_can_not_stay_need_a_location(self, config):
        encoding = {"format": "jsonl", "compression": "gzip"}
        with pytest.raises(PipeError, match=r"no batch\.location"):
            Stream(to="batch", **config).put(type="BATCH", stream="a", encoding=encoding, manifest=["/a"])

    def test_options_that_a_dialect_can_not_say_need_new_files(self, tmp_path):
        (tmp_path / "a.csv").write_text("id|name\n1|x\n")
        format = {"name": "csv", "options": {"delimiter": "|"}}
        stream = Stream(to="batch", dialect="sdk", location=str(tmp_path / "new"))
        stream.put(type="SCHEMA", stream="a", schema=SCHEMA, key_properties=[])
        stream.put(type="BATCH", stream="a", format=format, manifest=[str(tmp_path / "a.csv")])
        (path,) = stream.out[1]["manifest"]
        assert Path(path.removeprefix("file://")).read_text() == '"id","name","at"\n1,"x",\n'

    def test_parquet_to_gzipped_jsonl(self, tmp_path):
        there = Stream(to="batch", location=str(tmp_path), format="parquet")
        there.put(type="SCHEMA", stream="a", schema=SCHEMA, key_properties=[])
        there.put(type="RECORD", stream="a", record={"id": 1, "at": "2020-01-01T00:00:00Z"}).end()
        onward = Stream(to="batch", location=str(tmp_path), format="jsonl", compression="gzip", dialect="pipelinewise")
        for line, message in zip(there.raw, there.out):
            onward.put_line(line, message["type"])
        assert rows_in(onward.out[1]) == [{"id": 1, "name": None, "at": "2020-01-01T00:00:00Z"}]


class TestRefusals:
    @pytest.mark.parametrize(
        ("batch", "problem"),
        [
            ({"manifest": ["{}"], "size": 2}, "has more than the 2 rows that its BATCH says"),
            ({"filepath": "{}", "batch_size": 4}, "has 3 rows, and its BATCH says 4"),
            ({"manifest": ["{}", "{}"]}, "names a file twice"),
            ({"manifest": ["{}.gone"]}, "No such file"),
            ({"manifest": ["/tmp/../etc/passwd"]}, "has .. in its path"),
            ({"manifest": ["file:///tmp/%2e%2e/etc/passwd"]}, "has .. in its path"),
            ({"manifest": ["/dev/null"]}, "no regular file"),
            ({"manifest": ["/a\u0000b"]}, "null character"),
            ({"manifest": ["/tmp"]}, "no regular file"),
            ({"manifest": ["s3://bucket/a"]}, "lies where no file of a BATCH may"),
            ({"manifest": ["https://host/a?X-Amz-Signature=hidden"]}, "the file https://host/a, which lies where"),
            ({"manifest": ["https://me:hidden@host/a"]}, "has credentials in it, at $.manifest[0]"),
            ({"manifest": ["{}"], "options": {"aws_secret_access_key": "hidden"}}, "$.options.aws_secret_access_key"),
            ({"manifest": ["{}"], "compression": {"name": "gzip"}}, "should be gzip and is not compressed"),
            ({"manifest": ["{}"], "format": "parquet"}, "is no Parquet file"),
            ({"manifest": "{}"}, "can't be read: $.manifest"),
        ],
    )
    def test_one_line_says_what_and_where(self, rows, tmp_path, quarantine, batch, problem):
        batch = json.loads(json.dumps(batch).replace("{}", rows(1, 2, 3)))
        with pytest.raises(PipeError) as caught:
            Stream(to="records").put(type="BATCH", stream="users", **batch)
        assert problem in str(caught.value)
        assert str(caught.value).isprintable()

        stream = Stream(to="records", quarantine=quarantine).put(type="BATCH", stream="users", **batch)
        stream.put(type="STATE", value=1)
        assert stream.kinds()[-1] == "STATE"
        (entry,) = quarantined(tmp_path)
        assert problem in entry["reason"]
        assert "hidden" not in entry["reason"] + str(caught.value)

    def test_a_file_at_an_http_server_is_refused(self):
        stream = Stream(to="records", allowed=["https://host"])
        with pytest.raises(PipeError, match="the file https://host/a, which is at an HTTP server"):
            stream.put(type="BATCH", stream="a", manifest=["https://host/a?X-Amz-Signature=hidden"])

    def test_credentials_do_not_go_to_quarantine(self, tmp_path, quarantine):
        stream = Stream(quarantine=quarantine)
        stream.put(type="BATCH", stream="a", manifest=["s3://key:hidden@b/c"], options={"token": "hidden"})
        assert stream.out == []
        assert "hidden" not in (tmp_path / "quarantine.jsonl").read_text()

    def test_an_empty_file_where_rows_should_be_is_refused(self, tmp_path):
        (tmp_path / "a").touch()
        with pytest.raises(PipeError, match="has no rows, and its BATCH says up to 5"):
            Stream(to="records").put(type="BATCH", stream="a", manifest=[str(tmp_path / "a")], size=5)

    def test_rows_before_a_fault_are_counted(self, tmp_path):
        (tmp_path / "a").write_bytes(b'{"id":1}\n{"id":')
        with pytest.raises(PipeError, match="1 of its rows have gone on"):
            Stream(to="records").put(type="BATCH", stream="a", manifest=[str(tmp_path / "a")])

    def test_a_fifo_does_not_hold_up_the_stream(self, tmp_path):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(PipeError, match="no regular file"):
            Stream(to="records").put(type="BATCH", stream="a", manifest=[str(tmp_path / "fifo")])

    def test_a_bomb_is_refused(self, tmp_path):
        (tmp_path / "a.gz").write_bytes(gzip.compress(b'{"id":"%b"}\n' % (b"0" * (1 << 20)) * 100))
        with pytest.raises(PipeError, match="more than 250 times"):
            Stream(to="records").put(type="BATCH", stream="a", compression="gzip", manifest=[str(tmp_path / "a.gz")])


class TestPlaces:
    def test_relative_paths_begin_at_the_root(self, rows, tmp_path):
        rows(1)
        stream = Stream(to="records", root=str(tmp_path))
        for file in ("rows.jsonl", "./rows.jsonl", "file://rows.jsonl"):
            stream.put(type="BATCH", stream="a", manifest=[file])
        assert stream.records() == [row(1)] * 3

    def test_only_what_is_allowed_is_read(self, rows, tmp_path):
        (tmp_path / "in").mkdir()
        (tmp_path / "inner").mkdir()
        inside, beside = rows(1, name="in/a"), rows(2, name="inner/a")
        (tmp_path / "in" / "link").symlink_to(beside)
        stream = Stream(to="records", allowed=[str(tmp_path / "in")]).put(type="BATCH", stream="a", manifest=[inside])
        assert stream.records() == [row(1)]
        for file in (beside, str(tmp_path / "in" / "link"), "s3://b/a"):
            with pytest.raises(PipeError, match=r"batch\.allowed"):
                stream.put(type="BATCH", stream="a", manifest=[file])

    def test_a_link_does_not_lead_out_of_the_root(self, rows, tmp_path):
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "link").symlink_to(rows(1))
        with pytest.raises(PipeError, match="by a link"):
            Stream(to="records", root=str(tmp_path / "in")).put(type="BATCH", stream="a", manifest=["link"])

    @pytest.mark.parametrize(
        "file",
        [
            "s3://bucket/export-other/a",
            "s3://bucket/export/../a",
            "s3://bucket/export/%2e%2e/a",
            "s3://bucket2/export/a",
            "gs://bucket/export/a",
        ],
    )
    def test_a_url_is_allowed_by_whole_segments(self, file):
        with pytest.raises(PipeError, match=r"batch\.allowed"):
            Stream(to="records", allowed=["s3://bucket/export"]).put(type="BATCH", stream="a", manifest=[file])

    def test_a_store_of_fsspec(self, tmp_path):
        there = Stream(to="batch", location="memory://batches/new", format="jsonl", compression="zstd")
        there.put(type="RECORD", stream="a", record=row(1)).end()
        (url,) = there.out[0]["manifest"]
        assert url.startswith("memory://batches/new/a-LG")
        stream = Stream(to="records", allowed=["memory://batches"]).put(**there.out[0])
        assert stream.records() == [row(1)]

    def test_parquet_in_a_store(self):
        there = Stream(to="batch", location="memory://batches/new", format="parquet")
        there.put(type="RECORD", stream="a", record=row(1)).end()
        assert Stream(to="records", allowed=["memory://batches"]).put(**there.out[0]).records() == [row(1)]

    @pytest.mark.parametrize(
        ("config", "path"),
        [
            ({"allowed": ["s3://"]}, "$.batch.allowed"),
            ({"location": "https://host/a"}, "$.batch.location"),
            ({"location": "nothing://host/a"}, "$.batch.location"),
            ({"location": "s3://me:secret@host/a"}, "$.batch.location"),
            ({"location": "/tmp/a", "options": {"key": "x"}}, "$.batch.options"),
        ],
    )
    def test_places_that_are_none_are_refused_before_anything_runs(self, config, path):
        with pytest.raises(ConfigError) as caught:
            Stream(**config)
        assert caught.value.path == path
        assert "secret" not in str(caught.value)
