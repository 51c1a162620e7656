"""The memory that a BATCH takes does not grow with its rows."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, resource, sys
from balog.broker.batches.config import BatchConfig
from balog.broker.batches.reader import BatchReader
from balog.broker.batches.writer import BatchWriter
from balog.broker.editor import Chain

folder, format = sys.argv[1:]
properties = {"id": {"type": "integer"}, "name": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}
schema = {"properties": properties}
schema_line = json.dumps({"type": "SCHEMA", "stream": "a", "schema": schema, "key_properties": []}).encode()
writer = BatchWriter(BatchConfig(to="batch", location=folder, format=format, max_records=10**7), None, print)
reader = BatchReader(BatchConfig(to="records"), None, None, print)
for editor in (reader, writer):
    editor.edit("SCHEMA", schema_line)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def go(rows):
    for number in range(rows):
        row = b'{"id":%d,"name":"%01000d","at":"2026-11-20T07:46:12.123456Z"}' % (number, number)
        line = b'{"type":"RECORD","stream":"a","record":%b}' % row
        assert not writer.edit("RECORD", line)
    ((_, batch),) = writer.end()
    return sum(1 for _ in reader.edit("BATCH", batch))

assert go(20_000) == 20_000
before = peak()
assert go(100_000) == 100_000
print(peak() - before)
"""


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_five_times_the_rows_take_no_more_memory(tmp_path: Path, format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), format], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 24, "MiB more, where the rows are 80 MiB more"
