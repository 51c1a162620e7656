"""Events of SCHEMA messages: `schemas` in the config of ``balog run``."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker.messages.schema_reader import MAX_SCHEMA_BYTES, SchemaReader
from balog.broker.sidecar.tap_stream import TapStream
from balog.singer import parse_log, to_event

DATA = Path(__file__).parent.parent / "data"


def schema(stream: str, **properties: Any) -> bytes:
    message = {"type": "SCHEMA", "stream": stream, "schema": {"properties": properties}, "key_properties": ["id"]}
    return json.dumps(message).encode()


def test_each_schema_of_a_run_is_an_event_and_the_data_passes(tmp_path: Path) -> None:
    lines = [
        schema("orders", id={"type": "integer"}),
        b'{"type": "RECORD", "stream": "orders", "record": {"type": "SCHEMA"}}',
        schema("orders", id={"type": "integer"}),
        b'{"stream": "users", "type": "SCHEMA", "schema": {"type": "object"}}',
        b'{"type": "STATE", "value": {"type": "SCHEMA"}}',
        schema("orders", id={"type": "string"}, password={"type": "string"}),
    ]
    data = b"\n".join(lines) + b"\n"
    (tmp_path / "data.singer").write_bytes(data)
    (tmp_path / "run.json").write_text('{"schemas": true, "in_band": true}')
    command = [sys.executable, "-m", "balog", "run", "--config", str(tmp_path / "run.json"), "--name", "tap-shop"]
    done = subprocess.run([*command, "--", "cat", str(tmp_path / "data.singer")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    logs = [log for line in done.stdout.splitlines() if (log := parse_log(line)) is not None]
    events = [event for log in logs if (event := to_event(log)[0]).cls_type == "stream_schema"]
    rest = b"".join(line for line in done.stdout.splitlines(keepends=True) if parse_log(line) is None)
    assert rest == data
    assert [(event.payload["stream"], event.header.channel) for event in events] == [
        ("orders", "tap-shop.schema"),
        ("users", "tap-shop.schema"),
        ("orders", "tap-shop.schema"),
    ]
    assert events[0].payload["schema"] == {"properties": {"id": {"type": "integer"}}}
    assert events[0].payload["key_properties"] == ["id"]
    assert events[0].header.context["run_id"]


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(
        st.sampled_from(["SCHEMA", "schema", "RECORD", "STATE", "BATCH", "ACTIVATE_VERSION", "LOG", "", "torn"]),
        max_size=12,
    ),
    spaces=st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]),
    is_first=st.booleans(),
    cuts=st.lists(st.integers(0, 2000), max_size=6),
)
def test_it_finds_the_lines_that_a_parser_finds(
    kinds: list[str], spaces: Any, is_first: bool, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = []
    for number, kind in enumerate(kinds):
        message = {"type": kind, "stream": "s", "schema": {"n": number}, "x": {"type": "SCHEMA"}}
        if not is_first:
            message = dict(reversed(message.items()))
        text = json.dumps(message, separators=spaces)
        lines.append(text[:20] if kind == "torn" else text)
    data = "\n".join(lines).encode()
    found: list[bytes] = []
    with (tmp_path_factory.getbasetemp() / "out").open("wb") as target:
        stream = TapStream(target.fileno(), print, on_schema=found.append)
        places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
        for start, end in pairwise(places):
            stream.take(data[start:end])
        stream.end(lambda: None)
    wanted = [line.encode() for line, kind in zip(lines, kinds, strict=True) if kind.upper() == "SCHEMA"]
    assert found == wanted


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "SCHEMA", "stream": "a"}',
        b'{"type": "SCHEMA", "stream": "a", "schema": []}',
        b'{"type": "SCHEMA", "stream": 5, "schema": {}}',
        b"{",
        b'{"type": "SCHEMA", "stream": "a", "schema": {"x": "' + b"x" * MAX_SCHEMA_BYTES + b'"}}',
    ],
)
def test_what_cannot_be_read_is_no_event(line: bytes) -> None:
    assert SchemaReader().read(line) is None
