"""Whatever a tap writes, the broker passes it on byte for byte, goes on, and says at most a line."""

import gzip
import hashlib
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from balog.broker.broker import run_broker
from balog.broker.config import BrokerConfig
from balog.common.config.tagged_config import convert
from balog.event import decode

RECORD = b'{"type": "RECORD", "stream": "users", "record": {"id": 1}}'
LOG = b'{"type": "LOG", "level": "INFO", "value": {"message": "fine"}}'

PASSES = {
    "text": b"Starting sync",
    "not UTF-8": b"\xff\xfe\xfa",
    "NULs": b"\0\0\0",
    "NULs in a record": b'{"type": "RECORD", "stream": "users", "record": {"id": "\0"}}',
    "UTF-8 that is cut": b'{"type": "RECORD", "stream": "users", "record": {"name": "\xc3"}}',
    "a carriage return": RECORD + b"\r",
    "spaces": b"   ",
    "a duplicate key": b'{"type": "RECORD", "stream": "users", "stream": "orders", "record": {}}',
    "a lower-case type": RECORD.replace(b"RECORD", b"record"),
    "an unknown type": b'{"type": "NOPE", "value": "LOG"}',
    "a type that is no text": b'{"type": 5}',
    "no type": b'{"record": {}}',
    "deep nesting": b'{"type": "RECORD", "stream": "users", "record": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep nesting in no message": b"[" * 100_000,
    "a SCHEMA after its RECORDs": b'{"type": "SCHEMA", "stream": "users", "schema": {}, "key_properties": []}',
    "a torn record": RECORD[:40],
    "a BATCH of nothing": b'{"type": "BATCH", "stream": "users", "manifest": ["file:///gone"]}',
    "a number too large": b'{"type": "STATE", "value": 1e999}',
    "half a pair": b'{"type": "STATE", "value": "\\ud800"}',
    "LOG without an end": LOG[:-1],
    "LOG too deep": b'{"type": "LOG", "level": "INFO", "value": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "LOG in another place": b'{"value": {"type": "LOG"}, "type": "STATE"}',
}
LOGS = {
    "no level": (b'{"type": "LOG", "value": {"message": "m"}}', "INFO"),
    "a wrong level": (b'{"type": "LOG", "level": "LOUD", "value": {"message": "m"}}', "INFO"),
    "a level that is no text": (b'{"type": "LOG", "level": 7, "value": {"message": "m"}}', "INFO"),
    "a lower-case type": (b'{"type": "log", "level": "warning", "value": {"message": "m"}}', "WARNING"),
    "a type given twice": (b'{"type": "LOG", "type": "ERROR", "value": {"message": "m"}}', "ERROR"),
    "no value": (b'{"type": "LOG", "level": "INFO"}', "INFO"),
    "a value of text": (b'{"type": "LOG", "level": "INFO", "value": "m"}', "INFO"),
    "a value with a NUL": (b'{"type": "LOG", "level": "INFO", "value": {"message": "\\u0000"}}', "INFO"),
    "half an event": (b'{"type": "LOG", "level": "ERROR", "value": {"header": {"id": 1}, "payload": {}}}', "ERROR"),
    "a payload that is no object": (
        b'{"type": "LOG", "level": "INFO", "value": {"schema": "0.1.0", "header": {}, "payload": 1}}',
        "INFO",
    ),
}


def broker(tmp_path, data, **config):
    """Run a broker in this process over these bytes."""
    sinks = [{"type": "store", "path": str(tmp_path / "archive"), "topic": "events"}]
    (tmp_path / "input").write_bytes(data)
    said = []
    with open(tmp_path / "input", "rb") as source, open(tmp_path / "output", "wb") as target:
        code = run_broker(
            convert({"sinks": sinks, **config}, BrokerConfig),
            source=source.fileno(),
            target=target.fileno(),
            say=lambda line: said.append(f"balog broker: {line}\n"),
        )
    return SimpleNamespace(returncode=code, stdout=(tmp_path / "output").read_bytes(), stderr="".join(said).encode())


def archived(tmp_path):
    files = tmp_path.glob("archive/events/date=*/*.jsonl.gz")
    return [decode(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def test_every_odd_line_passes_and_the_events_around_it_arrive(tmp_path):
    data = b"".join(LOG + b"\n" + RECORD + b"\n" + line + b"\n" for line in PASSES.values())
    done = broker(tmp_path, data)
    assert (done.returncode, done.stdout) == (0, data)
    not_json, unread = done.stderr.decode().splitlines()
    assert not_json.endswith("lines were passed unchanged: not a JSON object")
    assert unread.startswith("balog broker: 2 LOG lines were not sent to sinks: too long, nested too deep or torn")
    assert len(archived(tmp_path)) == len(PASSES)


@pytest.mark.parametrize("name", PASSES)
def test_an_odd_line_passes_as_the_last_without_a_newline(name, tmp_path):
    data = LOG + b"\n" + PASSES[name]
    done = broker(tmp_path, data)
    assert (done.returncode, done.stdout) == (0, data)
    assert len(done.stderr.splitlines()) <= 1
    assert len(archived(tmp_path)) == 1


def test_every_odd_log_becomes_an_event_and_passes(tmp_path):
    data = b"".join(line + b"\n" for line, _ in LOGS.values())
    done = broker(tmp_path, data)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")
    assert sorted(event.level for event in archived(tmp_path)) == sorted(level for _, level in LOGS.values())


def test_what_went_to_quarantine_is_not_said_to_have_passed(tmp_path):
    rules = {"records": [{"stream": "users", "mask": {"name": "null"}}]}
    done = broker(tmp_path, b"oops\n" + RECORD + b"\n", quarantine={"path": str(tmp_path / "quarantine")}, **rules)
    assert json.loads(done.stdout) == json.loads(RECORD)
    (said,) = done.stderr.decode().splitlines()
    assert "went to quarantine" in said


def test_a_log_that_cannot_be_read_is_no_data(tmp_path):
    """Given a target that can't read LOG, then no torn one reaches it either."""
    data = b"".join(PASSES[name] + b"\n" for name in ("LOG without an end", "LOG too deep")) + RECORD + b"\n"
    assert broker(tmp_path, data, strip=True).stdout == RECORD + b"\n"


@pytest.mark.parametrize("head", [RECORD[:-2], LOG[:-3], b"text "])
def test_a_line_of_200_megabytes_passes(head, tmp_path):
    """Given a line that no memory should hold, then it passes in pieces, and what comes after it is read."""
    size = 200_000_000
    path = tmp_path / "stream.singer"
    with path.open("wb") as out:
        out.write(head + b"x" * size + b"\n" + LOG + b"\n" + RECORD + b"\n")
    config = tmp_path / "broker.json"
    config.write_text(json.dumps({"sinks": [{"type": "store", "path": str(tmp_path / "archive"), "topic": "events"}]}))
    came = hashlib.sha256()
    with path.open("rb") as source:
        command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
        with subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while chunk := process.stdout.read(1 << 20):
                came.update(chunk)
            said = process.stderr.read().splitlines()
    assert process.returncode == 0
    assert len(said) <= 1
    with path.open("rb") as source:
        assert came.hexdigest() == hashlib.sha256(source.read()).hexdigest()
    assert len(archived(tmp_path)) == 1


def test_a_line_of_200_megabytes_that_must_be_masked_does_not_pass(tmp_path):
    data = RECORD + b"\n" + RECORD[:-2] + b"x" * 200_000_000 + b"}}\n"
    done = broker(tmp_path, data, records=[{"stream": "users", "mask": {"name": "null"}}])
    assert done.returncode == 1
    assert json.loads(done.stdout) == json.loads(RECORD)
    assert done.stderr.decode().splitlines() == [
        "balog broker: a message of more than 64 MiB can't be changed as the config says and was not passed on; "
        "have the tap write smaller ones, or leave its stream out of the rules"
    ]
