"""What real logging libraries printed, and the record that each line must become."""

import json
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from balog.log_lines.dialects import LogLine
from balog.log_lines.stderr import RecordAssembler, channel_of, payload_of

CORPUS = Path(__file__).parent.parent / "data" / "stderr-corpus"
NAMES = sorted(path.stem for path in CORPUS.glob("*.log"))
SAID = {
    "DEBUG": "starting up",
    "INFO": "reading orders",
    "WARNING": "rate limit: 3 left",
    "ERROR": "boom",
    "CRITICAL": "giving up",
}


def records_of(name: str) -> list[LogLine]:
    assembler: RecordAssembler[None] = RecordAssembler(timezone.utc)
    lines = (CORPUS / f"{name}.log").read_bytes().splitlines()
    return [record for line in lines for _, record in assembler.take(line, None)] + [
        record for _, record in assembler.finish()
    ]


def gist(record: LogLine) -> dict[str, Any]:
    payload = payload_of(record)
    if payload["cls_type"] == "metric":
        said = {key: payload[key] for key in ("type", "metric", "value", "tags")}
    else:
        keys = ("message", "fields", "exception")
        said = {key: payload[key] for key in keys if payload.get(key)}
    time = None if record.timestamp is None else record.timestamp.isoformat()
    return {"level": record.level, "channel": channel_of(record, "tap-x"), "time": time, **said}


@pytest.mark.parametrize("name", NAMES)
def test_each_line_becomes_the_record_that_it_means(name: str) -> None:
    expected = [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text().splitlines()]
    assert [gist(record) for record in records_of(name)] == expected


ALL_LEVELS = [
    name
    for name in NAMES
    if b"giving up" in (CORPUS / f"{name}.log").read_bytes() and name not in ("absl", "logging-lastresort")
]
"""Of programs that said one thing at each level, in a format that has those five levels."""


@pytest.mark.parametrize("name", ALL_LEVELS)
def test_what_the_program_logged_has_the_level_at_which_it_did(name: str) -> None:
    """Given a program that says one thing at each level, then no line has another one: held against the program."""
    for record in records_of(name):
        for level, text in SAID.items():
            if record.message.startswith((text, text.replace("orders", "%s").replace("3", "%s"))):
                assert record.level == level
        if record.message.startswith("sync failed"):
            assert record.level == "ERROR"
            assert (record.exception or {}).get("type") in ("KeyError", "Error")
            assert record.exc_text
