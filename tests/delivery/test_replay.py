import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.common.errors import ConfigError
from balog.common.storage.local_files import lock
from balog.delivery import Dispatcher, replay
from balog.delivery.segment import Segment
from balog.delivery.spool import SpoolConfig
from balog.event import Event, decode
from balog.singer import write_log
from balog.sinks import Retrying
from balog.sinks.store import StoreSinkConfig
from tests.stand_ins.probe_sink import send
from tests.waiting import wait_for

QUICK = Retrying(first=0.01, longest=0.05)


class Place:
    """A spool and an archive that can't be written to until it is mended."""

    def __init__(self, root):
        self.root = root
        self.spool = root / "spool"
        self.archive = root / "archive"
        self.said = []

    def config(self, **changes):
        return StoreSinkConfig(**{"path": str(self.archive), "topic": "events", "retry": QUICK} | changes)

    def dispatcher(self, *configs):
        return Dispatcher(configs or [self.config()], self.said.append, spool=SpoolConfig(path=str(self.spool)))

    def leave(self, *configs, count=100, start=0):
        """Have a broker come, find the archive broken, and go."""
        self.break_it()
        dispatcher = self.dispatcher(*configs)
        send(dispatcher, count, start=start)
        stats = dispatcher.close(0.1)
        assert all(found.spooled == count + found.adopted for found in stats.values())

    def break_it(self):
        if not self.archive.exists():
            self.archive.write_text("a file where the folder should be")

    def mend(self):
        self.archive.unlink()

    def arrived(self, archive=None):
        files = (archive or self.archive).glob("events/date=*/*.jsonl.gz")
        return sorted(
            decode(line).payload["n"] for file in files for line in gzip.decompress(file.read_bytes()).splitlines()
        )

    def segments(self):
        return sorted(self.spool.glob("*/*.jsonl"))

    def bury(self, count=3):
        """Have dead letters beside what waits."""
        (folder,) = (path for path in self.spool.iterdir() if path.is_dir())
        (segment,) = self.segments()
        lines = segment.read_bytes().splitlines()[1:]
        (folder / "dead").mkdir()
        letters = [
            {"sink": "store", "reason": "bad", "time": "2026-01-01T00:00:00Z", "event": json.loads(line)}
            for line in lines[:count]
        ]
        text = "".join(json.dumps(letter) + "\n" for letter in letters)
        (folder / "dead" / "LG1.jsonl").write_text(text + '{"sink": "store", "reason": "x", "time": "", "raw": "?"}\n')
        segment.unlink()
        return folder / "dead"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def balog_replay(*arguments, cwd="."):
    """Run the command in this process, which stays in its folder."""
    before = os.getcwd()
    os.chdir(cwd)
    try:
        return CliRunner().invoke(main, ["replay", *map(str, arguments)])
    finally:
        os.chdir(before)


class TestReplay:
    def test_what_several_brokers_left_is_sent(self, place):
        for turn in range(3):
            place.leave(start=turn * 100)
        place.mend()
        done = balog_replay(place.spool)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "balog replay: 300 events were sent\n")
        assert place.arrived() == list(range(300))
        assert place.segments() == []
        again = balog_replay(place.spool)
        assert (again.exit_code, again.stderr) == (0, "balog replay: no events wait\n")

    def test_what_is_not_taken_stays(self, place, monkeypatch):
        """It gives up when nothing moves."""
        monkeypatch.setattr(replay, "IDLE_SECONDS", 0.3)
        place.leave()
        done = balog_replay(place.spool)
        assert done.exit_code == 1
        assert f"store {place.archive}: 100 events wait in {place.spool}" in done.stderr
        place.mend()
        assert balog_replay(place.spool).exit_code == 0
        assert place.arrived() == list(range(100))

    def test_a_filter_is_not_asked_again(self, place):
        """Given a sink whose filter is about the past, then what it took then is sent."""
        place.leave(place.config(where="payload.n >= 0"))
        (description,) = place.spool.glob("*/sink.json")
        told = json.loads(description.read_bytes())
        told["sink"]["where"] = "payload.n < 0"
        description.write_text(json.dumps(told))
        place.mend()
        assert balog_replay(place.spool).exit_code == 0
        assert place.arrived() == list(range(100))

    def test_a_torn_last_line_is_left_out(self, place):
        place.leave()
        (path,) = place.segments()
        with path.open("ab") as file:
            file.write(b'{"schema": "0.1.0", "hea')
        place.mend()
        done = balog_replay(place.spool)
        assert done.exit_code == 0
        assert place.arrived() == list(range(100))

    def test_relative_paths_begin_where_the_broker_ran(self, place, monkeypatch):
        monkeypatch.chdir(place.root)
        place.leave(place.config(path="archive"))
        place.mend()
        (place.root / "elsewhere").mkdir()
        done = balog_replay(place.spool, cwd=place.root / "elsewhere")
        assert done.exit_code == 0
        assert place.arrived() == list(range(100))

    def test_a_folder_that_is_gone_is_said(self, place, monkeypatch):
        gone = place.root / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        place.leave()
        monkeypatch.chdir(place.root)
        gone.rmdir()
        place.mend()
        done = balog_replay(place.spool)
        assert f"the broker ran in {gone}: No such file or directory" in done.stderr
        assert (done.exit_code, place.arrived()) == (0, list(range(100)))

    def test_a_signal_leaves_the_rest(self, place):
        place.leave()
        command = [sys.executable, "-m", "balog", "replay", str(place.spool)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert "trying again" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            assert "100 events wait" in process.stderr.read()
        assert process.returncode == 143
        assert len(place.segments()) == 1


class TestChoosing:
    def test_no_such_spool(self, tmp_path):
        done = balog_replay(tmp_path / "none")
        assert done.exit_code == 2
        assert done.stderr.startswith(f"balog replay: {tmp_path / 'none'}: no spool: No such file or directory")

    def test_another_kind_of_folder(self, tmp_path):
        (tmp_path / "photos").mkdir()
        done = balog_replay(tmp_path, "--dry-run")
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"balog replay: {tmp_path}: no spool: none of what is there is a sink's")

    def test_a_newer_config_says_where_the_sink_is_now(self, place):
        place.leave()
        moved = place.root / "moved"
        config = place.root / "broker.json"
        config.write_text(json.dumps({"sinks": [{"type": "store", "path": str(moved), "topic": "events"}]}))
        done = balog_replay(place.spool, "--config", config)
        assert (done.exit_code, done.stderr) == (0, "balog replay: 100 events were sent\n")
        assert place.arrived(moved) == list(range(100))

    @pytest.mark.parametrize(
        ("sinks", "says"),
        [
            ([], "the config has no sink that store ARCHIVE could be; there are none"),
            ([{"type": "topic", "url": "local:x", "topic": "t"}], "there are topic local:x#t"),
            (
                [{"type": "store", "path": path, "topic": "events"} for path in ("a", "b")],
                "the config has 2 sinks that store ARCHIVE could be; there are store a, store b",
            ),
        ],
    )
    def test_a_config_without_the_sink_is_refused(self, place, sinks, says):
        place.leave()
        config = place.root / "broker.json"
        config.write_text(json.dumps({"sinks": sinks}))
        done = balog_replay(place.spool, "--config", config)
        assert done.exit_code == 2
        assert says.replace("ARCHIVE", str(place.archive)) in done.stderr
        assert len(place.segments()) == 1

    @pytest.mark.parametrize("text", ["", "{", '{"name": "a", "folder": "/", "sink": {"type": "nope"}}'])
    def test_a_sink_that_cannot_be_told_wants_a_config(self, place, text):
        place.leave()
        (description,) = place.spool.glob("*/sink.json")
        description.write_text(text)
        done = balog_replay(place.spool)
        assert done.exit_code == 2
        assert "give the sink's config with --config" in done.stderr
        assert len(done.stderr.splitlines()) == 1


class TestRunningBroker:
    def test_its_segments_are_let_be(self, place):
        place.break_it()
        dispatcher = place.dispatcher()
        send(dispatcher, 100)
        wait_for(lambda: dispatcher.durable == 100)
        done = balog_replay(place.spool)
        assert done.exit_code == 0
        assert "100 events are held by a running broker" in done.stderr
        assert "100 more are held by a running broker" in balog_replay(place.spool, "--dry-run").stdout
        place.mend()
        dispatcher.close(10)
        assert place.arrived() == list(range(100))

    def test_those_of_another_replay_are_let_be(self, place):
        place.leave()
        (segment,) = place.segments()
        with segment.open("rb") as file:
            assert lock(file, wait=False)
            done = balog_replay(place.spool)
        assert (done.exit_code, len(place.segments())) == (0, 1)
        assert "100 events are held by a running broker or replay, which sends them" in done.stderr


class TestDeadLetters:
    def test_they_are_sent_when_asked_for(self, place):
        place.leave()
        folder = place.bury(3)
        place.mend()
        done = balog_replay(place.spool)
        assert (done.exit_code, done.stderr) == (0, "balog replay: no events wait\n")
        done = balog_replay(place.spool, "--dead")
        assert (done.exit_code, done.stderr) == (0, "balog replay: 3 events were sent\n")
        assert place.arrived() == [0, 1, 2]
        (rest,) = folder.glob("*.jsonl")
        assert json.loads(rest.read_bytes())["raw"] == "?"

    def test_until_they_are_sent_they_wait(self, place, monkeypatch):
        monkeypatch.setattr(replay, "IDLE_SECONDS", 0.2)
        place.leave()
        place.bury(3)
        assert balog_replay(place.spool, "--dead").exit_code == 1
        place.mend()
        assert balog_replay(place.spool).exit_code == 0
        assert place.arrived() == [0, 1, 2]

    def test_a_disk_that_does_not_take_them_leaves_them_dead(self, place, monkeypatch):
        place.leave()
        folder = place.bury(3)
        before = (folder / "LG1.jsonl").read_bytes()
        monkeypatch.setattr(Segment, "append", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        (backlog,) = replay.find_backlogs(place.spool)
        with pytest.raises(OSError, match="No space"):
            replay.redrive(backlog)
        assert (folder / "LG1.jsonl").read_bytes() == before
        assert place.segments() == []


class TestDryRun:
    def test_it_tells_what_waits_and_changes_nothing(self, place):
        place.leave()
        place.leave(start=100)
        (place.spool / "stray.txt").write_text("")
        before = {path: path.stat().st_mtime_ns for path in place.spool.rglob("*")}
        done = balog_replay(place.spool, "--dry-run")
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"store {place.archive}: 200 events wait, ")
        assert " bytes, the oldest of 20" in done.stdout
        assert done.stdout.endswith(" seconds ago)\n")
        assert {path: path.stat().st_mtime_ns for path in place.spool.rglob("*")} == before

    def test_dead_letters_and_problems_are_told(self, place):
        place.leave()
        folder = place.bury(3)
        (folder.parent / "sink.json").unlink()
        done = balog_replay(place.spool, "--dry-run")
        assert f"{folder.parent.name}: 0 events wait, 0 bytes; 4 dead letters; give --config: " in done.stdout


def held_in(spool: Path) -> int:
    """Count what waits in a spool that a broker may be about to make."""
    try:
        return sum(item.held for item in replay.find_backlogs(spool))
    except ConfigError:
        return 0


class TestAfterABroker:
    """The whole way: ``… | balog broker`` with a spool, and what it leaves."""

    def stream(self, count, start=0):
        events = [Event.new("a", {"n": n}) for n in range(start, start + count)]
        return b"".join(b'{"type": "RECORD", "stream": "s", "record": {}}\n' + write_log(event) for event in events)

    def broker(self, place, **options):
        config = place.root / "broker.json"
        sink = {"type": "store", "path": str(place.archive), "topic": "events", "retry": {"first": 0.01}}
        config.write_text(json.dumps({"sinks": [sink], "drain": 0.3, "spool": {"path": str(place.spool)}}))
        command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, **options)

    def test_it_says_what_waits_and_how_to_send_it(self, place):
        place.break_it()
        data = self.stream(500)
        with self.broker(place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate(data)
        assert (process.returncode, out) == (0, data)
        waits = f"store {place.archive}: 500 events wait in spool {place.spool}; balog replay {place.spool} sends them"
        assert err.decode().splitlines()[-1] == f"balog broker: {waits}"
        place.mend()
        assert balog_replay(place.spool).exit_code == 0
        assert place.arrived() == list(range(500))

    def test_a_broker_that_is_killed_leaves_its_spool_to_the_replay(self, place):
        place.break_it()
        with self.broker(place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            process.stdin.write(self.stream(500))
            wait_for(lambda: held_in(place.spool) >= 500)
            process.kill()
        place.mend()
        done = balog_replay(place.spool)
        assert (done.exit_code, done.stderr) == (0, "balog replay: 500 events were sent\n")
        assert place.arrived() == list(range(500))
