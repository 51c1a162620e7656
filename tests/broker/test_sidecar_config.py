"""The sidecar with a config: stdout untouched, events to sinks, invalid lines, what the run's report says."""

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from balog.broker.config import RunConfig
from balog.broker.quarantine import QuarantineConfig
from balog.event import decode
from balog.singer import parse_log, to_event
from tests.broker.sidecars import BALOG, impatient, python, sidecar, started
from tests.waiting import wait_for

RECORD = b'{"type": "RECORD", "stream": "a", "record": 1}\n'
STATE = b'{"type": "STATE", "value": {"at": 7, "token": "hunter2"}}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_config(folder, **config):
    sinks = [{"type": "store", "path": str(folder / "archive"), "topic": "t"}]
    (folder / "run.json").write_text(json.dumps({"sinks": sinks, **config}))
    return ["--config", str(folder / "run.json")]


def printing(data):
    return python(f"import sys; sys.stdout.buffer.write({data!r})")


def archived(folder):
    """Give the archive's events in the order in which they were made."""
    files = [gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("archive/t/date=*/*.jsonl.gz"))]
    events = [decode(line) for data in files for line in data.splitlines()]
    return sorted(events, key=lambda event: event.header.timestamp)


def logs_in(stream):
    return [to_event(log)[0] for line in stream.splitlines(keepends=True) if (log := parse_log(line))]


def report_of(folder):
    (report,) = [event for event in archived(folder) if event.cls_type == "run"]
    return report


class TestUntouched:
    def test_the_child_writes_to_the_target_itself(self, folder):
        """Given a config with nothing to look for, then the child's stdout is the pipe that the sidecar was given."""
        read_end, write_end = os.pipe()
        options = write_config(folder)
        code = "import os; print(os.fstat(1).st_ino)"
        with open(read_end, "rb") as reader:
            with started(*python(code), options=options, stdout=write_end):
                os.close(write_end)
                assert int(reader.read()) == os.fstat(read_end).st_ino

    def test_the_events_go_to_the_sinks_and_stderr_still_shows(self, folder):
        code = "import sys; print('data'); print('INFO GET https://me:hunter2@x.example', file=sys.stderr)"
        done = sidecar(*python(code), options=[*write_config(folder), "--name", "tap-x"])
        log, report = archived(folder)
        assert (done.stdout, done.stderr) == (b"data\n", b"INFO GET https://me:hunter2@x.example\n")
        assert log.payload["message"] == "GET https://[redacted]@x.example"
        assert [event.header.channel for event in (log, report)] == ["tap-x", "tap-x.run"]
        assert log.header.context["run_id"] == report.header.context["run_id"]

    def test_what_nobody_counted_is_not_reported_as_none(self, folder):
        sidecar(*printing(RECORD), options=write_config(folder))
        assert {"records", "streams", "bytes", "junk", "state"}.isdisjoint(report_of(folder).payload)

    def test_the_target_sees_the_end_when_the_child_ends_its_output(self, folder):
        """Given a child that goes on after it closed stdout, then nothing else keeps the target waiting."""
        gate = folder / "gate"
        os.mkfifo(gate)
        code = f"import os; os.write(1, b'all\\n'); os.close(1); open({str(gate)!r}).read()"
        with started(*python(code), options=write_config(folder)) as process:
            assert process.stdout.read() == b"all\n"
            assert process.poll() is None
            gate.write_text("")
        assert process.returncode == 0

    @pytest.mark.parametrize("in_band", [False, True])
    def test_a_target_that_ends_early_ends_the_tap_as_without_a_sidecar(self, folder, in_band):
        code = "import sys\nwhile True: sys.stdout.write('x' * 10_000 + '\\n')"
        options = write_config(folder, in_band=in_band)
        with started(*python(code), options=options, stderr=subprocess.PIPE) as process:
            process.stdout.read(100)
            process.stdout.close()
            assert b"BrokenPipeError" in process.stderr.read()
        assert process.returncode == 1
        report = report_of(folder)
        assert (report.payload["outcome"], report.payload["exit_code"]) == ("failed", 1)

    def test_a_closed_stdout_stays_the_child_s_trouble(self, folder):
        done = subprocess.run(
            ["sh", "-c", '"$@" >&-', "sh", *BALOG, "run", *write_config(folder), "--", "sh", "-c", "echo data"],
            capture_output=True,
        )
        assert done.returncode != 0
        assert b"Traceback" not in done.stderr
        assert report_of(folder).payload["outcome"] == "failed"

    def test_in_band_and_sinks_at_once(self, folder):
        done = sidecar("sh", "-c", "echo data; echo INFO hello >&2", options=write_config(folder, in_band=True))
        ids = [event.header.id for event in logs_in(done.stdout)]
        assert sorted(ids) == sorted(event.header.id for event in archived(folder))
        assert len(ids) == 2

    def test_a_sink_that_fails_costs_the_data_nothing(self, folder):
        """Given a sink that can't be written and a spool, then data and exit code are there, and so are the events."""
        (folder / "file").write_text("in the way")
        config = write_config(
            folder,
            sinks=[{"type": "store", "path": str(folder / "file" / "x"), "topic": "t"}],
            spool={"path": str(folder / "spool")},
        )
        command = ["sh", "-c", "echo data; echo INFO hello >&2; exit 3"]
        done = sidecar(*command, options=config, balog=impatient(DRAIN_SECONDS=0.2))
        assert (done.returncode, done.stdout) == (3, b"data\n")
        assert b"2 events wait in spool" in done.stderr
        assert b"hello" in b"".join(path.read_bytes() for path in (folder / "spool").rglob("*") if path.is_file())

    def test_with_a_window_of_zero_an_event_is_on_disk_before_it_is_in_the_stream(self, folder):
        """Given a sidecar that is killed when its LOG line has come, then the spool has the event."""
        (folder / "file").write_text("in the way")
        config = write_config(
            folder,
            in_band=True,
            sinks=[{"type": "store", "path": str(folder / "file" / "x"), "topic": "t"}],
            spool={"path": str(folder / "spool"), "sync": 0},
        )
        command = ["sh", "-c", "echo INFO hello >&2; exec sleep 60"]
        with started(*command, options=config, stderr=subprocess.PIPE, start_new_session=True) as process:
            assert b"hello" in process.stdout.readline()
            os.killpg(process.pid, signal.SIGKILL)
        assert b"hello" in b"".join(path.read_bytes() for path in (folder / "spool").rglob("*") if path.is_file())


class TestReport:
    def test_cpu_memory_and_times(self, folder):
        code = """
import time
held = b'x' * 150_000_000
while time.process_time() < 0.3: pass
"""
        sidecar(*python(code), options=write_config(folder))
        payload = report_of(folder).payload
        assert payload["cpu_user"] + payload["cpu_system"] >= 0.3
        assert payload["cpu_user"] + payload["cpu_system"] < 60
        assert 150_000_000 < payload["peak_memory"] < 1_000_000_000
        assert payload["started"] < payload["ended"]

    def test_only_the_child_is_measured(self, folder):
        """Given a child that does nothing, then what the sidecar took is not among its CPU seconds."""
        sidecar("true", options=write_config(folder))
        payload = report_of(folder).payload
        assert payload["cpu_user"] + payload["cpu_system"] < 0.1

    def test_records_and_bytes_by_stream(self, folder):
        other = b'{"stream": "b", "type": "record", "record": {}}\n'
        data = RECORD * 3 + other + STATE
        done = sidecar(*printing(data), options=write_config(folder, count=True))
        payload = report_of(folder).payload
        assert (done.stdout, payload["bytes"], payload["records"]) == (data, len(data), 4)
        assert payload["streams"] == [
            {"stream": "a", "records": 3, "bytes": 3 * len(RECORD)},
            {"stream": "b", "records": 1, "bytes": len(other)},
        ]

    def test_what_came_out_counts_and_what_the_tap_says_beside_it_is_kept(self, folder):
        """Given a tap whose report has one record more than its stream, then the stream is right."""
        streams = [{"stream": "users", "records": 3, "new": 1, "updated": 2}]
        payload = {"cls_type": "run", "outcome": "succeeded", "duration": 1, "exit_code": 0, "command": "x"}
        payload |= {"records": 3, "streams": streams}
        line = '{"type":"RECORD","stream":"users","record":{}}'
        code = f"print({line!r})\nfrom balog import get_logger\nget_logger('x').info('run', payload={payload})"
        sidecar(*python(code), options=write_config(folder, count=True))
        report = report_of(folder).payload
        assert report["streams"] == [{"stream": "users", "records": 1, "bytes": len(line) + 1, "new": 1, "updated": 2}]
        assert report["records"] == 1

    def test_a_record_too_long_to_be_held_is_counted_whole(self, folder):
        code = """
import sys
sys.stdout.write('{"type": "RECORD", "stream": "a", "record": "' + 'x' * 20_000_000 + '"}\\n')
sys.stdout.write('{"type": "RECORD", "stream": "a", "record": 1}\\n')
"""
        sidecar(*python(code), options=write_config(folder, count=True))
        assert report_of(folder).payload["streams"] == [{"stream": "a", "records": 2, "bytes": 20_000_048 + 47}]

    def test_the_last_state_where_asked_for_without_its_secrets(self, folder):
        early = b'{"type": "STATE", "value": {"at": 1}}\n'
        data = early + RECORD * 5 + b'{"value": {"at": 2, "token": "hunter2"}, "type": "state"}\n' + RECORD
        sidecar(*printing(data), options=write_config(folder, state=True))
        assert report_of(folder).payload["state"] == {"at": 2, "token": "[redacted]"}

    @pytest.mark.parametrize(
        ("data", "options"),
        [
            (b'{"type": "STATE", "value": "\xff"}\n', {"state": True}),
            (STATE, {"count": True}),
            (STATE + b'{"type": "STATE", "value": "%b"}\n' % (b"x" * 70_000), {"state": True}),
        ],
        ids=["not text", "not asked for", "large"],
    )
    def test_no_state_where_none_can_be_shown(self, folder, data, options):
        done = sidecar(*printing(data), options=write_config(folder, **options))
        assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")
        assert "state" not in report_of(folder).payload

    @pytest.mark.parametrize(("name", "code"), [("SEGV", 139), ("KILL", 137)])
    def test_the_signal_that_ended_it(self, folder, name, code):
        done = sidecar("sh", "-c", f"kill -{name} $$", options=write_config(folder, in_band=name == "KILL"))
        payload = report_of(folder).payload
        assert (done.returncode, payload["exit_code"], payload["signal"]) == (code, code, f"SIG{name}")

    def test_a_command_that_cannot_be_run_is_reported_too(self, folder):
        done = sidecar("/nowhere/tap-x", options=write_config(folder))
        report = report_of(folder)
        assert (done.returncode, report.payload["exit_code"], report.level) == (127, 127, "ERROR")
        assert report.payload["problem"] == "/nowhere/tap-x cannot be run: No such file or directory"


JUNK = [
    b"Downloading ...\n",
    b"\x00\x01\xff\xfe\n",
    b"\n",
    b'{"no": "type"}\n',
    b"NUL \x00 in the middle\n",
    b"[" * 9_000_000 + b"\n",
]


def full(folder):
    """Return the config of a quarantine that a line of 5000 bytes does not go into."""
    return {"quarantine": {"path": str(folder / "invalid.jsonl"), "max_bytes": 4096}}


class TestJunk:
    def test_it_goes_to_quarantine_and_the_messages_go_on(self, folder):
        data = b"".join(RECORD + line for line in JUNK) + STATE
        config = write_config(folder, quarantine={"path": str(folder / "invalid.jsonl")})
        done = sidecar("cat", options=config, input=data)
        assert (done.returncode, done.stdout) == (0, RECORD * len(JUNK) + STATE)
        kept = [json.loads(line) for line in (folder / "invalid.jsonl").read_bytes().splitlines()]
        assert len(kept) == len(JUNK)
        assert kept[0]["raw"] == "Downloading ..."
        assert len(kept[-1]["raw"]) == 65536
        warning, report = archived(folder)
        assert (warning.level, warning.header.channel) == ("WARNING", "cat.junk")
        assert (report.payload["junk"], report.payload["outcome"]) == (len(JUNK), "succeeded")

    def test_a_truncated_last_line_is_invalid(self, folder):
        config = write_config(folder, quarantine={"path": str(folder / "invalid.jsonl")})
        done = sidecar("cat", options=config, input=RECORD + RECORD[:20])
        assert done.stdout == RECORD
        assert json.loads((folder / "invalid.jsonl").read_bytes())["raw"] == RECORD[:20].decode()

    def test_a_quarantine_that_is_full_ends_the_run(self, folder):
        done = sidecar("cat", options=write_config(folder, **full(folder)), input=RECORD + b"x" * 5000 + b"\n" + RECORD)
        assert (done.returncode, done.stdout) == (1, RECORD)
        assert b"is full" in done.stderr
        assert "is full" in report_of(folder).payload["problem"]

    def test_the_tap_of_a_run_that_ends_is_asked_to_end(self, folder):
        """Given a tap that would go on for ever, then it is asked to end and nothing after the invalid line passes."""
        code = """
import signal, sys, time
def stop(number, frame):
    print('{"type": "STATE", "value": "after"}', flush=True)
    print('INFO stopping', file=sys.stderr, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print('{"type": "RECORD", "stream": "a", "record": 1}')
print('x' * 5000, flush=True)
while True: time.sleep(1)
"""
        done = sidecar(*python(code), options=write_config(folder, **full(folder)))
        assert (done.returncode, done.stdout) == (1, RECORD)
        log, report = archived(folder)
        assert log.payload["message"] == "stopping"
        assert (report.payload["exit_code"], report.payload["outcome"], report.payload["junk"]) == (1, "failed", 1)
        assert "is full" in report.payload["problem"]

    def test_a_tap_that_does_not_heed_the_request_is_killed(self, folder):
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('x' * 5000, flush=True); time.sleep(600)"
        options = write_config(folder, **full(folder))
        done = sidecar(*python(code), options=options, balog=impatient(_GRACE_SECONDS=0.3), timeout=120)
        assert done.returncode == 1
        assert report_of(folder).payload["signal"] == "SIGKILL"

    def test_an_invalid_line_at_the_very_end_fails_too(self, folder):
        done = sidecar("cat", options=write_config(folder, in_band=True, **full(folder)), input=RECORD + b"o" * 5000)
        assert done.returncode == 1
        assert done.stdout.startswith(RECORD)
        assert logs_in(done.stdout)[-1].payload["exit_code"] == 1


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
    def test_they_reach_the_child(self, folder, number):
        code = f"""
import signal, time
signal.signal({int(number)}, lambda number, frame: exit(7))
print(1, flush=True)
time.sleep(99)
"""
        with started(*python(code), options=write_config(folder)) as process:
            process.stdout.readline()
            process.send_signal(number)
        assert process.returncode == 7
        assert report_of(folder).payload["exit_code"] == 7

    def test_a_child_may_need_two(self, folder):
        """Given a tap that finishes its page at the first SIGINT and ends at the second, then it is let."""
        code = """
import signal, sys
def first(number, frame):
    signal.signal(number, lambda n, f: sys.exit(9))
    print('first', flush=True)
signal.signal(signal.SIGINT, first)
print('ready', flush=True)
while True: signal.pause()
"""
        with started(*python(code), options=write_config(folder)) as process:
            for line in (b"ready\n", b"first\n"):
                assert process.stdout.readline() == line
                process.send_signal(signal.SIGINT)
        assert process.returncode == 9
        assert report_of(folder).payload["exit_code"] == 9

    def test_ctrl_z_stops_both_and_both_go_on(self, folder):
        code = "import time\nwhile True: print(1, flush=True); time.sleep(0.05)"
        # In a group of its own: the kernel stops nobody in an orphaned one, as that of a runner without a shell is.
        with started(*python(code), options=write_config(folder), preexec_fn=os.setpgrp) as process:
            process.stdout.readline()
            (child,) = (
                int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            )
            process.send_signal(signal.SIGTSTP)
            wait_for(lambda: [state_of(process.pid), state_of(child)] == ["T", "T"])
            process.send_signal(signal.SIGCONT)
            wait_for(lambda: "T" not in [state_of(process.pid), state_of(child)])
            process.terminate()
            process.stdout.read()
        assert process.returncode == 143

    def test_the_second_signal_cuts_the_delivery_short(self, folder):
        """Given a sink that fails and two signals after the command has ended, then its exit code comes at once."""
        (folder / "file").write_text("in the way")
        config = write_config(folder, sinks=[{"type": "store", "path": str(folder / "file" / "x"), "topic": "t"}])
        balog = impatient(DRAIN_SECONDS=600)
        with started("sh", "-c", "exit 5", options=config, balog=balog, stderr=subprocess.PIPE) as process:
            assert b"trying again" in process.stderr.readline()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_for(lambda: not children.read_text().strip())
            while process.poll() is None:  # two that come at once are one
                process.terminate()
                time.sleep(0.1)
            assert b"stopped before the sinks had taken everything" in process.stderr.read()
        assert process.returncode == 5


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class TestLogLines:
    CODE = """
import logging, sys
logging.basicConfig()
logging.getLogger("tap-x").error("boom")
print("<HELP> it burns", file=sys.stderr)
logging.getLogger("tap-x").warning("last words")
{}["key"]
"""

    def test_levels_of_pythons_own_format_reach_the_sinks(self, folder):
        pattern = {"format": "<{level}> {message}", "levels": {"HELP": "CRITICAL"}}
        done = sidecar(*python(self.CODE), options=[*write_config(folder, log_patterns=[pattern]), "--name", "tap-x"])
        logs = [event for event in archived(folder) if event.cls_type == "log"]
        assert done.returncode == 1
        assert [(event.level, event.payload["message"]) for event in logs] == [
            ("ERROR", "boom"),
            ("CRITICAL", "it burns"),
            ("ERROR", "last words"),
        ]
        assert logs[2].payload["exception"] == {"type": "KeyError", "message": "'key'"}

    def test_a_pattern_that_cannot_be_read_is_refused_before_anything_runs(self, folder):
        options = write_config(folder, log_patterns=[{"format": "{message}"}])
        for command in (["run", *options, "--", "true"], ["check", "--for", "run", options[1]]):
            done = subprocess.run([*BALOG, *command], capture_output=True)
            assert done.returncode == 2
            assert b"$.log_patterns[0].format: {level} is missing" in done.stderr


class TestFaults:
    def test_a_flood_on_stderr_shows_whole_and_the_data_is_whole(self, folder):
        code = """
import sys
for n in range(20_000):
    sys.stderr.write(f'INFO line {n} ' + 'x' * 500 + '\\n')
    sys.stdout.write('{"type": "RECORD", "stream": "a", "record": 1}\\n')
"""
        done = sidecar(*python(code), options=write_config(folder, count=True))
        assert (done.returncode, done.stdout) == (0, RECORD * 20_000)
        assert done.stderr.count(b"\n") == 20_000
        assert len(archived(folder)) == 20_001

    @pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
    def test_a_grandchild_that_logs_for_ever_does_not_hold_up_the_end(self, folder):
        """Given a background process that writes to stderr without an end, then the run is reported all the same."""
        code = "while :; do echo INFO alive >&2; sleep 0.05; done & echo $!"
        output = {"capture_output": False, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "timeout": 120}
        balog = impatient(_LINGER_SECONDS=0.3)
        process = sidecar("sh", "-c", code, options=write_config(folder), balog=balog, **output)
        os.kill(int(process.stdout), signal.SIGKILL)
        assert process.returncode == 0
        assert archived(folder)[-1].cls_type == "run"

    def test_a_child_that_closes_its_outputs_and_goes_on(self, folder):
        code = "import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(6)"
        assert sidecar(*python(code), options=write_config(folder)).returncode == 6
        assert report_of(folder).payload["duration"] >= 0.5

    def test_without_a_terminal(self, folder):
        done = sidecar(
            "sh", "-c", "echo data; echo INFO hello >&2", options=write_config(folder), start_new_session=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"data\n", b"INFO hello\n")

    def test_a_parent_that_ignores_its_children(self, folder):
        """Given SIGCHLD ignored, which a parent may hand down, then the exit code is known all the same."""
        code = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); from balog.cli import main; main()"
        done = sidecar("sh", "-c", "exit 4", options=write_config(folder), balog=python(code))
        assert done.returncode == 4


class TestConfig:
    @pytest.mark.parametrize(
        ("config", "said"),
        [
            ({"quarantine": {"path": "/proc/nowhere/x"}}, "$.quarantine.path"),
            ({"sinks": [{"type": "store", "path": "x", "topic": "a/b"}]}, "$.sinks[0].topic"),
        ],
    )
    def test_a_mistake_is_one_line_and_nothing_is_run(self, folder, config, said):
        done = sidecar("touch", "touched", options=write_config(folder, **config))
        assert (done.returncode, done.stdout) == (2, b"")
        assert said in done.stderr.decode()
        assert len(done.stderr.splitlines()) == 1
        assert not (folder / "touched").exists()

    @pytest.mark.parametrize(
        ("config", "looks"),
        [
            (RunConfig(), False),
            (RunConfig(in_band=True), True),
            (RunConfig(count=True), True),
            (RunConfig(state=True), True),
            (RunConfig(quarantine=QuarantineConfig(path="x")), True),
        ],
    )
    def test_the_stream_is_looked_at_only_when_something_asks_for_it(self, config, looks):
        assert config.looks is looks


def test_metrics_are_the_counters_of_the_run_and_of_its_sinks(folder):
    """Given ``metrics``, then the sidecar's own counters are events of its sinks."""
    sidecar(*printing(RECORD * 3), options=write_config(folder, count=True, metrics={"stage": "tap-x"}))
    found = [event for event in archived(folder) if event.cls_type == "metric"]
    values = {event.payload["metric"]: event.payload["value"] for event in found}
    assert (values["run_records"], values["run_bytes"], values["run_logs"]) == (3, 3 * len(RECORD), 1)
    assert {event.header.channel for event in found} == {"tap-x.metric"}
    assert {event.payload["tags"].get("sink") for event in found if event.payload["metric"] == "sink_put"} != {None}
