"""No row is lost, doubled or moved past another of its stream, and no STATE past a row, whatever the order."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker.batches import writer as batch_writer
from balog.broker.batches.config import BatchConfig
from balog.broker.batches.writer import BatchWriter

streams = st.sampled_from(["a", "b", "c"])
messages = st.one_of(
    st.builds(
        lambda stream, version: {"type": "RECORD", "stream": stream, "version": version}, streams, st.integers(0, 1)
    ),
    st.builds(lambda stream: {"type": "RECORD", "stream": stream}, streams),
    st.just({"type": "STATE"}),
    st.builds(lambda stream: {"type": "SCHEMA", "stream": stream, "schema": {}, "key_properties": []}, streams),
    st.builds(lambda stream: {"type": "ACTIVATE_VERSION", "stream": stream, "version": 1}, streams),
    st.just({"type": "DUE"}),
)


def rows_in(message: dict[str, Any]) -> list[int]:
    return [
        json.loads(line)["n"]
        for file in message["manifest"]
        for line in gzip.decompress(Path(file.removeprefix("file://")).read_bytes()).splitlines()
    ]


@settings(deadline=None)
@given(st.lists(messages, max_size=30), st.integers(1, 4), st.integers(1, 5))
def test_rows_and_states_keep_their_order(sent, max_records, min_records):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_writer, "MAX_AGE", 1e-9)
        config = BatchConfig(to="batch", location=folder, max_records=max_records, min_records=min_records)
        writer = BatchWriter(config, None, lambda line: None)
        out: list[dict[str, Any]] = []
        for number, message in enumerate(sent):
            if message["type"] == "DUE":
                out += [json.loads(line) for _, line in writer.due()]
                continue
            whole = {**message, **({"record": {"n": number}} if message["type"] == "RECORD" else {"value": number})}
            line = json.dumps(whole).encode() + b"\n"
            edited = writer.edit(message["type"], line)
            out += [json.loads(made) for _, made in ([("", line)] if edited is None else edited)]
        out += [json.loads(line) for _, line in writer.end()]

        gone: dict[str, list[int]] = {"a": [], "b": [], "c": []}
        states = []
        for message in out:
            if message["type"] == "BATCH":
                gone[message["stream"]] += rows_in(message)
            elif message["type"] == "RECORD":  # one of a version
                gone[message["stream"]].append(message["record"]["n"])
            elif message["type"] == "STATE":
                states.append(message["value"])
                before = {n for n in range(message["value"]) if sent[n]["type"] == "RECORD"}
                assert before <= set().union(*gone.values())
            else:
                before = {n for n in range(message["value"]) if sent[n].get("stream") == message["stream"]}
                before = {n for n in before if sent[n]["type"] == "RECORD"}
                assert before == set(gone[message["stream"]])
    for stream, numbers in gone.items():
        assert numbers == [n for n, m in enumerate(sent) if m["type"] == "RECORD" and m["stream"] == stream]
    assert states == sorted(states)
    assert states[-1:] == [n for n, message in enumerate(sent) if message["type"] == "STATE"][-1:]
