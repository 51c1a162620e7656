import base64
import errno
import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.editor import PipeError
from balog.broker.quarantine import Quarantine, QuarantineConfig
from balog.common.errors import ConfigError
from balog.singer import quarantine_file


def build(path, said=None, **more):
    return Quarantine(QuarantineConfig(path=str(path), **more), (said if said is not None else []).append)


def entries(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_is_kept_with_its_time_and_the_reason(tmp_path):
    quarantine = build(tmp_path / "q.jsonl")
    quarantine.put("not JSON", b'{"torn\n')
    quarantine.close()
    (entry,) = entries(tmp_path / "q.jsonl")
    assert entry["reason"] == "not JSON"
    assert entry["raw"] == '{"torn'
    assert entry["time"].endswith("Z")


@given(line=st.binary(max_size=200))
def test_any_bytes_come_back_as_they_were(line, tmp_path_factory):
    path = tmp_path_factory.mktemp("q") / "q.jsonl"
    quarantine = build(path)
    quarantine.put("x", line + b"\n")
    quarantine.close()
    (entry,) = entries(path)
    kept = entry["raw"].encode() if "raw" in entry else base64.b64decode(entry["raw_base64"])
    assert kept == line


def test_only_the_owner_may_read_it(tmp_path):
    build(tmp_path / "deep" / "q.jsonl").close()
    assert stat.S_IMODE(os.stat(tmp_path / "deep" / "q.jsonl").st_mode) == 0o600


def test_the_first_reason_and_the_count_are_said(tmp_path):
    said = []
    quarantine = build(tmp_path / "q.jsonl", said)
    for number in range(3):
        quarantine.put(f"reason {number}", b"x\n")
    quarantine.close()
    path = tmp_path / "q.jsonl"
    assert said == [f"a line went to quarantine, {path}: reason 0", f"3 lines went to quarantine, {path}"]


def test_a_full_quarantine_ends_the_stream_and_stays_whole(tmp_path):
    path = tmp_path / "q.jsonl"
    quarantine = build(path, max_bytes=4096)
    for _ in range(4):
        quarantine.put("not JSON", b"x" * 900)
    with pytest.raises(PipeError, match=r"q\.jsonl is full, 4096 bytes; look at it and move it away"):
        quarantine.put("not JSON", b"x" * 900)
    assert path.stat().st_size <= 4096
    assert len(entries(path)) == quarantine.count == 4


def test_a_full_disk_ends_the_stream_and_tears_nothing(tmp_path, monkeypatch):
    path = tmp_path / "q.jsonl"
    quarantine = build(path)
    quarantine.put("first", b"x")

    def torn(target, data):
        os.write(target, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(quarantine_file, "write_all", torn)
        with pytest.raises(PipeError, match="No space left on device; second"):
            quarantine.put("second", b"a secret")
    quarantine.put("third", b"x")
    assert [entry["reason"] for entry in entries(path)] == ["first", "third"]


def test_what_a_killed_writer_left_torn_spoils_no_line_after_it(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"time":"2026-')
    quarantine = build(path)
    quarantine.put("x", b"y")
    quarantine.close()
    assert json.loads(path.read_bytes().splitlines()[1])["raw"] == "y"


def test_several_brokers_share_a_file(tmp_path):
    path = tmp_path / "q.jsonl"
    one, two = build(path), build(path)
    for number in range(10):
        (one, two)[number % 2].put("x", b"%d" % number)
    assert [entry["raw"] for entry in entries(path)] == [str(number) for number in range(10)]


@pytest.mark.parametrize("name", ["", "file/q.jsonl"])
def test_a_file_that_cannot_be_opened_is_a_config_error(tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"^\$\.quarantine\.path: .* cannot be opened: "):
        build(tmp_path / name)


def test_what_is_no_file_is_a_config_error():
    with pytest.raises(ConfigError, match="/dev/null is no file"):
        build("/dev/null")
