"""Messages on stdout: whole lines in their order, whoever writes beside them; what happens when nobody reads."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from balog.log.outputs.streams import write_data_line
from balog.tap.errors import OutputError, RecordError
from balog.tap.records import Output

ROOT = Path(__file__).parents[2]


def run(code, **more):
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_messages_are_what_singer_has(capsys):
    output = Output()
    output.schema("s", {"type": "object"}, ["id"], ["at"])
    output.records("s")({"id": 1})
    output.records("s", 7)({"id": 2})
    output.activate_version("s", 7)
    output.state({"bookmarks": {}})
    assert lines(capsys) == [
        {
            "type": "SCHEMA",
            "stream": "s",
            "schema": {"type": "object"},
            "key_properties": ["id"],
            "bookmark_properties": ["at"],
        },
        {"type": "RECORD", "stream": "s", "record": {"id": 1}},
        {"type": "RECORD", "stream": "s", "record": {"id": 2}, "version": 7},
        {"type": "ACTIVATE_VERSION", "stream": "s", "version": 7},
        {"type": "STATE", "value": {"bookmarks": {}}},
    ]


def test_what_json_cannot_write_is_refused_without_a_word_of_it(capsys):
    output = Output()
    refused = []
    write = output.records("s", refuse=lambda record, error: refused.append((record, error)))
    assert write.page([{"a": 1}, {"a": "secret \ud800"}, {"a": object()}, {"a": 2}]) == 2
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert write({"a": deep}) is False
    output.flush()
    assert [message["record"] for message in lines(capsys)] == [{"a": 1}, {"a": 2}]
    assert len(refused) == 3
    assert "secret" not in str(refused[0][1])
    with pytest.raises(RecordError, match="half of a surrogate pair"):
        output.records("s")({"a": "\ud800"})


def test_other_lines_of_data_keep_their_place(capsys):
    output = Output()
    write = output.records("s")
    with output.in_order():
        for number in range(3):
            write({"id": number})
            write_data_line(b'{"log":%d}\n' % number)
    found = [message.get("log", message.get("record", {}).get("id")) for message in lines(capsys)]
    assert found == [0, 0, 1, 1, 2, 2]


def test_lines_of_many_threads_stay_whole(capsys):
    output = Output()

    def work(thread):
        write = output.records(f"s{thread}")
        for number in range(300):
            write({"id": number, "text": "x" * 400})
            if number % 50 == 0:
                write_data_line(b'{"stream":"log"}\n')

    with output.in_order():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = lines(capsys)
    for thread in range(4):
        assert [m["record"]["id"] for m in found if m["stream"] == f"s{thread}"] == list(range(300))
    assert sum(m["stream"] == "log" for m in found) == 24


def test_what_waits_is_written_while_the_source_waits():
    code = """
import sys, time
from balog.tap.records import Output
output = Output()
with output.in_order():
    output.records("s")({"id": 1})
    sys.stdin.readline()
"""
    with run(code, stdin=subprocess.PIPE) as tap:
        assert json.loads(tap.stdout.readline())["record"] == {"id": 1}  # while it still reads its stdin
        tap.communicate("go on\n")
    assert tap.returncode == 0


def test_who_writes_next_is_told_that_the_reader_has_gone(monkeypatch):
    """Given a slow source, then it does not go on until it has filled a piece of the output."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(os.dup(writer), "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        output = Output()
        output.write(b"{}\n")
        with pytest.raises(OutputError):
            output.flush()
        with pytest.raises(OutputError, match="its reader has closed it"):
            output.write(b"{}\n")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stdout.fileno())
    os.close(null)
    os.close(writer)


def test_a_pipe_that_somebody_made_non_blocking_gets_every_byte():
    code = """
import os
from balog.tap.records import Output
os.set_blocking(1, False)
output = Output()
write = output.records("s")
with output.in_order():
    for number in range(2000):
        write({"id": number, "text": "x" * 500})
"""
    with run(code) as tap:
        time.sleep(0.05)
        found = [json.loads(line)["record"]["id"] for line in tap.stdout]
    assert found == list(range(2000))


def test_a_state_is_in_its_file_before_its_message_and_after_the_records(tmp_path, monkeypatch, capsys):
    path = tmp_path / "state.json"
    output = Output(path)
    output.records("s")({"id": 1})
    output.state({"bookmarks": {"s": {"at": 1}}})
    assert json.loads(path.read_bytes()) == {"bookmarks": {"s": {"at": 1}}}
    assert [message["type"] for message in lines(capsys)] == ["RECORD", "STATE"]
    path.unlink()
    path.mkdir()
    with pytest.raises(OutputError, match=r"the state's file: .* is a folder"):
        output.state({})
    assert capsys.readouterr().out == ""


def test_a_child_process_does_not_write_what_waits_again():
    code = """
import os
from balog.tap.records import Output
output = Output()
with output.in_order():
    output.records("s")({"id": 1})
    if os.fork() == 0:
        output.flush()
        os._exit(0)
    os.wait()
"""
    with run(code) as tap:
        assert [json.loads(line)["record"] for line in tap.stdout] == [{"id": 1}]
