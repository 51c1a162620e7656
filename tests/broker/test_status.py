import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from balog.broker import status
from balog.broker.status import StageStatus, pipe_of, read_stages, start_of, status_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(status, "_EVERY_SECONDS", 0.02)
    path = tmp_path / "status"
    monkeypatch.setenv("BALOG_STATUS_DIR", str(path))
    return path


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)
    return found


class TestStatus:
    def test_its_figures_are_there_while_it_runs_and_gone_after(self, folder):
        with StageStatus("broker", lambda: {"bytes": 7, "sinks": {"x": {"delivered": 1}}}, label="a"):
            (stage,) = wait_for(read_stages)
            assert (stage.pid, stage.stage, stage.label) == (os.getpid(), "broker", "a")
            assert stage.stats == {"bytes": 7, "sinks": {"x": {"delivered": 1}}}
        assert list(folder.iterdir()) == []

    def test_they_are_written_anew(self, folder):
        stats = {"bytes": 1}
        with StageStatus("broker", lambda: stats):
            (first,) = wait_for(read_stages)
            stats["bytes"] = 2
            wait_for(lambda: read_stages()[0].stats["bytes"] == 2)
            assert read_stages()[0].seconds > first.seconds

    def test_the_file_is_always_whole(self, folder):
        """Given stats of any size that change all the time, then a reader never sees half of a file."""
        sizes = iter(range(10**9))
        with StageStatus("broker", lambda: {"x": "x" * (next(sizes) * 997 % 50_000)}):
            wait_for(read_stages)
            for _ in range(300):
                assert len(read_stages()) == 1

    def test_nobody_else_may_look(self, folder):
        with StageStatus("broker", dict):
            wait_for(read_stages)
            (file,) = [path for path in folder.iterdir() if path.suffix == ".json"]
            assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)

    def test_the_pipes_that_it_stands_between(self, folder):
        read_end, write_end = os.pipe()
        try:
            assert pipe_of(read_end) == pipe_of(write_end) == os.fstat(read_end).st_ino
        finally:
            os.close(read_end)
            os.close(write_end)
        assert pipe_of(write_end) is None
        with open("/dev/null") as null:
            assert pipe_of(null.fileno()) is None


class TestTrouble:
    def said_in(self, folder, make):
        said = []
        make(folder)
        with StageStatus("broker", dict, say=said.append):
            wait_for(lambda: said)
            time.sleep(0.1)
        return said

    def test_a_folder_of_somebody_else_is_not_used(self, folder):
        """Given a folder that others may write to, then nothing is written there and it is said once."""
        (said,) = self.said_in(folder, lambda path: (path.mkdir(), path.chmod(0o777)))
        assert "others may write to it" in said
        assert list(folder.iterdir()) == []

    def test_a_symbolic_link_is_not_followed(self, folder, tmp_path):
        (tmp_path / "real").mkdir(mode=0o700)
        assert len(self.said_in(folder, lambda path: path.symlink_to(tmp_path / "real"))) == 1
        assert list((tmp_path / "real").iterdir()) == []

    def test_a_folder_that_cannot_be_made(self, folder):
        assert len(self.said_in(folder, lambda path: path.write_text("in the way"))) == 1

    def test_figures_that_raise(self, folder):
        said = []
        with StageStatus("broker", lambda: 1 / 0, say=said.append):
            wait_for(lambda: said)
        assert said == ["no status for balog top: division by zero"]

    def test_a_planted_link_is_not_written_through(self, folder, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("precious")
        with StageStatus("broker", dict) as shown:
            wait_for(read_stages)
            (folder / shown._name.replace(".json", ".part")).symlink_to(victim)
            seconds = read_stages()[0].seconds
            wait_for(lambda: read_stages()[0].seconds > seconds)
        assert victim.read_text() == "precious"

    def test_trouble_is_silent_where_nobody_asked(self, folder, capfd):
        folder.write_text("in the way")
        with StageStatus("broker", dict):
            time.sleep(0.1)
        assert capfd.readouterr() == ("", "")

    def test_none_is_written_where_none_is_wanted(self, monkeypatch):
        monkeypatch.setenv("BALOG_STATUS_DIR", "")
        threads = threading.active_count()
        with StageStatus("broker", dict):
            assert threading.active_count() == threads


class TestFolder:
    def test_where_it_is(self, monkeypatch):
        monkeypatch.setenv("BALOG_STATUS_DIR", "/named")
        assert status_folder() == "/named"
        monkeypatch.delenv("BALOG_STATUS_DIR")
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
        assert status_folder() == "/run/user/7/balog"
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert status_folder().endswith(f"/balog-{os.getuid()}")


class TestReading:
    def test_none_where_there_is_no_folder(self, folder):
        assert read_stages() == []

    def test_what_a_killed_one_left_is_removed(self, folder):
        code = """
import os, time
from balog.broker import status
status._EVERY_SECONDS = 0.02
with status.StageStatus("broker", dict):
    print(flush=True)
    time.sleep(600)
"""
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            wait_for(read_stages)
            process.kill()
        assert read_stages() == []
        assert list(folder.iterdir()) == []

    def test_a_later_process_of_the_same_number_is_not_it(self, folder):
        folder.mkdir(mode=0o700)
        name = f"{os.getpid()}-0123abcd.json"
        begun = start_of(os.getpid())
        entry = {"pid": os.getpid(), "stage": "broker", "started": "x", "seconds": 1, "begun": begun}
        (folder / name).write_text(json.dumps(entry))
        assert [stage.pid for stage in read_stages()] == [os.getpid()]
        (folder / name).write_text(json.dumps({**entry, "begun": begun - 1}))
        assert read_stages() == []
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("notes.txt", "mine"),
            ("{pid}-0123abcd.json", "{"),
            ("{pid}-0123abcd.json", "[1]"),
            ("{pid}-0123abcd.json", '{"pid": 1, "stage": "x", "started": "x", "seconds": 1}'),
            ("{pid}-0123abcd.json", "\xff"),
            ("1-0123abcd.json.bak", "{}"),
        ],
    )
    def test_what_is_no_stage_is_passed_over_and_left(self, folder, name, text):
        name = name.format(pid=os.getpid())
        folder.mkdir(mode=0o700)
        (folder / name).write_text(text)
        assert read_stages() == []
        assert (folder / name).exists()

    def test_a_fifo_does_not_hold_it_up(self, folder):
        folder.mkdir(mode=0o700)
        os.mkfifo(folder / f"{os.getpid()}-0123abcd.json")
        assert read_stages() == []

    def test_a_folder_that_others_may_write_to_is_refused(self, folder):
        folder.mkdir()
        folder.chmod(0o777)
        with pytest.raises(PermissionError, match="others may write to it"):
            read_stages()

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
    def test_a_process_s_begin_tells_it_from_others(self):
        assert start_of(os.getpid()) > start_of(1)
        assert start_of(2**22 + 1) is None
