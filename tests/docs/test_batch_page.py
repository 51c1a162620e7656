"""The configs on the page about BATCH do what the page says."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import docs_page, run_task
from tests.programs import run_program

PAGE = docs_page("batch-messages.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ROWS = [
    {"id": number, "email": f"{number}@example.org", "country": "DE" if number < 2 else "FR"} for number in range(4)
]


def broker(config: dict[str, Any], stream: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    (folder / "broker.json").write_text(json.dumps(config))
    lines = "".join(json.dumps(message) + "\n" for message in stream)
    done = run_program(sys.executable, "-m", "balog", "broker", "--config", "broker.json", cwd=folder, feed=lines)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def batch(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return {"type": "BATCH", "stream": "users", "manifest": [str(tmp_path / "rows.jsonl")], "size": 4}


STATE = {"type": "STATE", "value": 1}
RECORDS = [{"type": "RECORD", "stream": "orders", "record": row} for row in ROWS]


def test_the_how_to_reads_writes_and_masks_batches(tmp_path):
    to_records, to_batch, masked = run_task("batch.md", tmp_path)
    assert [json.loads(line)["type"] for line in to_records.splitlines()] == ["SCHEMA", "RECORD", "RECORD", "STATE"]
    assert json.loads(to_batch.splitlines()[1])["encoding"] == {"format": "jsonl", "compression": "gzip"}
    assert json.loads(masked.splitlines()[-1]) == {"id": 1, "email": "[redacted]", "country": "DE"}


def test_to_batch(tmp_path):
    block = BLOCKS[0].replace("/var/tmp/batches", str(tmp_path / "new"))
    made, state = broker(json.loads(block), [*RECORDS[:2], STATE, *RECORDS[2:], STATE], tmp_path)
    assert (made["encoding"], state) == ({"format": "jsonl", "compression": "gzip"}, STATE)
    assert broker({"sinks": [], "batch": {"to": "records"}}, [made], tmp_path) == RECORDS


def test_masks_and_filters_inside(batch, tmp_path):
    config = json.loads(BLOCKS[1])
    config["batch"] = {"location": str(tmp_path / "new")}
    (made,) = broker(config, [batch], tmp_path)
    assert made["size"] == 2
    records = broker({"sinks": [], "batch": {"to": "records"}}, [made], tmp_path)
    assert [message["record"] for message in records] == [{**row, "email": "[redacted]"} for row in ROWS[:2]]


def test_another_dialect_and_format(batch, tmp_path):
    block = BLOCKS[2].replace("/var/tmp/batches", str(tmp_path / "new"))
    (made,) = broker(json.loads(block), [batch], tmp_path)
    assert (made["format"], made["batch_size"]) == ("parquet", 4)
    assert Path(made["filepath"]).read_bytes()[:4] == b"PAR1"


def test_without_a_word_a_batch_passes(batch, tmp_path):
    assert broker({"sinks": []}, [batch], tmp_path) == [batch]
