import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from balog.log.outputs.file import FileOutput
from tests.stand_ins.programs import run_python


def lines_of(*paths: Path) -> list[Any]:
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


def number(n: int, size: int = 0) -> bytes:
    return b'{"n":%d,"text":"%b"}' % (n, b"x" * size)


def write_all(output: FileOutput, *events: bytes) -> None:
    for event in events:
        output.write("INFO", event)


def test_events_are_appended_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(b'{"n":0}\n')
    write_all(FileOutput(path), number(1), number(2))

    assert [line["n"] for line in lines_of(path)] == [0, 1, 2]


def test_its_folder_is_made_and_home_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_all(FileOutput("~/a/b/app.jsonl"), number(1))

    assert lines_of(tmp_path / "a" / "b" / "app.jsonl") == [{"n": 1, "text": ""}]


def test_threads_forks_and_other_processes_lose_nothing(tmp_path: Path) -> None:
    code = """
import os, sys, threading
from balog.log.outputs.file import FileOutput
output = FileOutput(sys.argv[1])
start = int(sys.argv[2])
output.write("INFO", b'{"n":%d}' % start)
def write(child, half):
    for n in range(1 + 100 * half, 101 + 100 * half):
        output.write("INFO", b'{"n":%d}' % (start + child * 200 + n))
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        threads = [threading.Thread(target=write, args=(child, half)) for half in (0, 1)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        os._exit(0)
    children.append(pid)
for pid in children: assert os.waitpid(pid, 0)[1] == 0
"""
    path = tmp_path / "app.jsonl"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path), str(start)]) for start in (0, 10_000, 20_000)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]

    expected = [start + n for start in (0, 10_000, 20_000) for n in range(601)]
    assert sorted(line["n"] for line in lines_of(path)) == expected


def test_a_file_that_somebody_moved_away_is_opened_again(tmp_path: Path) -> None:
    path, moved = tmp_path / "app.jsonl", tmp_path / "moved"
    output = FileOutput(path)
    write_all(output, number(1))
    path.rename(moved)
    write_all(output, number(2))
    path.unlink()
    write_all(output, number(3))

    assert [line["n"] for line in lines_of(moved)] == [1]
    assert [line["n"] for line in lines_of(path)] == [3]


def test_after_close_a_later_event_opens_it_again(tmp_path: Path) -> None:
    output = FileOutput(tmp_path / "app.jsonl")
    write_all(output, number(1))
    assert output.close(1.0) == 0
    write_all(output, number(2))

    assert [line["n"] for line in lines_of(tmp_path / "app.jsonl")] == [1, 2]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        output = FileOutput(tmp_path / "app.jsonl")
        write_all(output, number(1, 10), number(2, 10), number(3, 10))
        del output

    assert len(os.listdir("/proc/self/fd")) == before


class TestFullDisk:
    def test_a_line_that_was_cut_off_is_kept_apart_from_the_next(self, tmp_path: Path) -> None:
        path = tmp_path / "app.jsonl"
        code = f"""
import resource, signal
from balog.log.outputs.file import FileOutput
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
output = FileOutput({str(path)!r})
output.write("INFO", b'{{"n":1}}')
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
for n in (2, 3, 4):
    try:
        output.write("INFO", b'{{"n":%d,"text":"longer than there is room"}}' % n)
    except OSError as error:
        print(error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
output.write("INFO", b'{{"n":5}}')
output.write("INFO", b'{{"n":6}}')
"""
        done = run_python(code)

        assert done.stdout.split() == ["27"] * 3
        first, torn, *rest = path.read_bytes().splitlines()
        assert first == b'{"n":1}'
        assert b'{"n":2,"text":"longer than there is room"}'.startswith(torn)
        assert [json.loads(line)["n"] for line in rest] == [5, 6]

    def test_a_line_that_an_earlier_process_left_half_is_kept_apart(self, tmp_path: Path) -> None:
        path = tmp_path / "app.jsonl"
        path.write_bytes(b'{"n":1}\n{"n":2')
        write_all(FileOutput(path), number(3), number(4))

        assert path.read_bytes().splitlines() == [b'{"n":1}', b'{"n":2', number(3), number(4)]

    def test_a_device_without_room_says_so(self) -> None:
        with pytest.raises(OSError, match="No space left"):
            FileOutput("/dev/full").write("INFO", number(1))


@pytest.mark.parametrize("place", ["a file as folder", "a folder as file"])
def test_a_path_that_cannot_be_is_an_error_for_the_logger_to_count(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        FileOutput(tmp_path / "file" / "x" if place == "a file as folder" else tmp_path).write("INFO", number(1))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission_is_an_error_for_the_logger_to_count(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        FileOutput(tmp_path / "app.jsonl").write("INFO", number(1))
