"""The sidecar as a process: ``balog run -- …``."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from balog.event import decode
from balog.singer import parse_log, to_event
from tests.broker.sidecars import BALOG, python, sidecar, started

DATA = Path(__file__).parent.parent / "data"


def split(out):
    """Part a stream into its events and everything else."""
    events, rest = [], []
    for line in out.splitlines(keepends=True):
        log = parse_log(line)
        (events if log else rest).append(to_event(log)[0] if log else line)
    return events, b"".join(rest)


class TestStream:
    def test_the_data_passes_byte_for_byte(self):
        data = (DATA / "singer-sdk.singer").read_bytes()
        done = sidecar("cat", str(DATA / "singer-sdk.singer"))
        events, rest = split(done.stdout)
        assert (done.returncode, rest) == (0, data)
        assert [event.header.channel for event in events] == ["cat.run"]
        assert events[0].payload["records"] == data.count(b'"RECORD"')

    def test_log_lines_go_between_lines_only(self):
        """Given a tap that pauses in the middle of a line while it logs, then no line is torn."""
        code = """
import sys, time
for n in range(5):
    sys.stdout.write('{"type": "RECORD", "stream": "a", '); sys.stdout.flush()
    print('INFO at', n, file=sys.stderr, flush=True); time.sleep(0.02)
    sys.stdout.write('"record": {}}\\n'); sys.stdout.flush()
"""
        done = sidecar(*python(code))
        events, rest = split(done.stdout)
        assert rest == b'{"type": "RECORD", "stream": "a", "record": {}}\n' * 5
        assert [event.payload["message"] for event in events[:-1]] == [f"at {n}" for n in range(5)]
        assert events[-1].payload["streams"] == [{"stream": "a", "records": 5, "bytes": 240}]

    def test_stdin_is_the_childs(self):
        assert split(sidecar("cat", input=b"from stdin\n").stdout)[1] == b"from stdin\n"

    def test_a_target_that_somebody_made_non_blocking(self):
        """Given a full non-blocking pipe as target, then nothing is lost."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        code = """import sys; sys.stdout.write('{"type": "RECORD", "stream": "a", "record": 1}\\n' * 100_000)"""
        with started(*python(code), stdout=write_end) as process:
            os.close(write_end)
            with open(read_end, "rb") as reader:
                events, rest = split(reader.read())
        assert (process.returncode, len(events)) == (0, 1)
        assert rest == b'{"type": "RECORD", "stream": "a", "record": 1}\n' * 100_000


class TestEvents:
    def test_stderr_becomes_events_and_still_shows(self):
        path = DATA / "singer-sdk.stderr.log"
        done = sidecar("sh", "-c", 'cat "$0" >&2', str(path), options=["--name", "tap-x"])
        assert done.stderr == path.read_bytes()
        events, _ = split(done.stdout)
        assert len(events) == 12
        assert {event.header.context["application"] for event in events} == {"tap-x"}

    def test_one_run_id_for_all_and_for_the_child(self):
        done = sidecar(*python("import os, sys; print('INFO', os.environ['BALOG_RUN_ID'], file=sys.stderr)"))
        (line, report), _ = split(done.stdout)
        assert line.header.context["run_id"] == report.header.context["run_id"] == line.payload["message"]

    def test_a_run_id_is_inherited(self):
        done = sidecar("true", env={**os.environ, "BALOG_RUN_ID": "nightly-7"})
        assert split(done.stdout)[0][0].header.context["run_id"] == "nightly-7"

    def test_a_tap_on_balog_is_not_wrapped_twice(self):
        code = (
            "from balog import get_logger; get_logger('tap_mine').bind(shard=3).info('done', payload={'cls_type': 'x'})"
        )
        events, _ = split(sidecar(*python(code)).stdout)
        assert [event.header.channel.rpartition(".")[2] for event in events] == ["done", "run"]
        assert events[0].header.context["shard"] == 3
        assert events[0].header.context["run_id"] == events[1].header.context["run_id"]

    def test_a_run_that_the_tap_reports_itself_is_reported_once(self):
        """Given a tap that counts its rows, then the sidecar's report has them, and what it knows itself."""
        streams = [{"stream": "users", "records": 7, "new": 2, "updated": 5}, {"stream": "logs", "records": 0}]
        line = '{"type":"RECORD","stream":"users","record":{}}'
        payload = {"cls_type": "run", "outcome": "failed", "duration": 1, "exit_code": 9, "command": "tap-mine"}
        payload |= {"version": "1.0.0", "records": 7, "streams": streams, "problem": "logs: HTTP 500"}
        log = f"balog.get_logger('tap_mine').error('run', payload={payload})"
        code = f"import sys, balog\n{log}\nfor n in range(7): print({line!r})\nsys.exit(3)"
        (report,), _ = split(sidecar(*python(code)).stdout)
        found = report.payload
        assert (found["records"], found["problem"], found["exit_code"]) == (7, "logs: HTTP 500", 3)
        assert [{**item, "bytes": 0} for item in found["streams"]] == [{**item, "bytes": 0} for item in streams]
        assert found["cpu_user"] > 0

    def test_a_run_that_somebody_else_reports_passes(self):
        payload = {"cls_type": "run", "outcome": "failed", "duration": 1, "exit_code": 9, "command": "tap-mine"}
        log = f"with balog.bound(process=1): balog.get_logger('x').info('run', payload={payload})"
        events, _ = split(sidecar(*python(f"import balog\n{log}")).stdout)
        assert [event.payload["exit_code"] for event in events] == [9, 0]

    def test_a_record_shows_while_the_tap_goes_on(self):
        """Given a tap that logs and then works on, then its last line does not wait for the next."""
        code = "import sys, time; print('INFO hello', file=sys.stderr, flush=True); time.sleep(60)"
        with started(*python(code), stderr=subprocess.DEVNULL) as process:
            line = process.stdout.readline()
            process.terminate()
            process.stdout.read()
        assert decode(json.dumps(json.loads(line)["value"])).payload["message"] == "hello"

    def test_a_traceback_that_comes_slowly_is_one_event_while_records_flow(self):
        """Given a tap that prints a traceback line by line between its records, then it is not parted."""
        code = """
import sys, time
trace = ['Traceback (most recent call last):', '  File "a.py", line 1, in b', '    c()', 'KeyError: 1']
for line in ['ERROR it broke', *trace]:
    print(line, file=sys.stderr, flush=True)
    for _ in range(3):
        print('{"type": "RECORD", "stream": "a", "record": 1}', flush=True); time.sleep(0.01)
"""
        (error, report), rest = split(sidecar(*python(code)).stdout)
        assert error.payload["message"] == "it broke"
        assert error.payload["exception"] == {"type": "KeyError", "message": "1"}
        assert (report.payload["records"], rest.count(b"\n")) == (15, 15)

    @pytest.mark.parametrize("name", [b"tap-\xff", b"x" * 2000])
    def test_a_name_that_no_channel_can_have(self, name):
        """Given a name that is no text or far too long, then data, events and exit code are there all the same."""
        done = sidecar("sh", "-c", "echo data; echo INFO hello >&2", options=["--name", name])
        events, rest = split(done.stdout)
        assert (done.returncode, rest, len(events)) == (0, b"data\n", 2)

    def test_a_run_id_that_is_no_text(self):
        done = sidecar("true", env={**os.environb, b"BALOG_RUN_ID": b"r\xff"})
        assert split(done.stdout)[0][0].header.context["run_id"] == "r?"

    def test_secrets_on_stderr_do_not_become_events(self):
        """Given a tap that prints a secret, then it still shows as the tap would show it, and no event has it."""
        done = sidecar(
            *python("import sys; print('INFO GET https://me:hunter2@x.example?api_key=k-123', file=sys.stderr)")
        )
        events, _ = split(done.stdout)
        assert events[0].payload["message"].startswith("GET https://[redacted]@x.example")
        assert b"hunter2" not in done.stdout
        assert b"k-123" not in done.stdout
        assert b"hunter2" in done.stderr

    def test_the_report_never_holds_arguments(self):
        """Arguments may hold secrets."""
        assert b"hunter2" not in sidecar("true", "--password", "hunter2").stdout


class TestExit:
    @pytest.mark.parametrize("code", [0, 3])
    def test_the_exit_code_is_the_childs(self, code):
        done = sidecar("sh", "-c", f"exit {code}")
        assert done.returncode == code
        report = split(done.stdout)[0][-1]
        assert report.payload["exit_code"] == code
        assert report.payload["outcome"] == ("failed" if code else "succeeded")
        assert report.level == ("ERROR" if code else "INFO")

    @pytest.mark.parametrize(("command", "code"), [("/nowhere/tap-x", 127), ("/etc/passwd", 126)])
    def test_a_command_that_cannot_run_is_one_line_and_one_report(self, command, code):
        done = sidecar(command)
        (report,), rest = split(done.stdout)
        assert (done.returncode, rest) == (code, b"")
        name = os.path.basename(command)
        problem = report.payload["problem"].replace("[redacted]", "Permission")
        assert done.stderr.decode() == f"balog run: {name}: {problem}\n"
        assert (report.payload["outcome"], report.payload["exit_code"], report.level) == ("failed", code, "ERROR")

    def test_no_command_is_wrong_use(self):
        assert sidecar().returncode == 2

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_signals_reach_the_child_and_its_answer_is_kept(self, number):
        code = f"""
import signal, sys, time
def stop(number, frame):
    print('{{"type": "STATE", "value": "safe"}}', flush=True)
    sys.exit(7)
signal.signal({int(number)}, stop)
print('ready', flush=True)
time.sleep(60)
"""
        with started(*python(code), stdin=subprocess.DEVNULL) as process:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            events, rest = split(process.stdout.read())
        assert process.returncode == 7
        assert rest == b'{"type": "STATE", "value": "safe"}\n'
        assert events[-1].payload["exit_code"] == 7

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
    @pytest.mark.parametrize(("code", "given"), [(0, 1), (3, 3)])
    def test_a_full_disk_is_one_line_and_no_success(self, code, given):
        with open("/dev/full", "wb") as full:
            output = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
            done = sidecar("sh", "-c", f"echo data; exit {code}", **output)
        assert done.returncode == given
        assert done.stderr == b"balog run: the stream broke: No space left on device\n"

    @pytest.mark.parametrize(
        ("closing", "code", "out"), [("<&-", 0, b"data\n"), (">&-", 1, b""), ("2>&-", 0, b"data\n")]
    )
    def test_a_closed_descriptor_is_never_another_file(self, closing, code, out):
        shell = f'"$@" {closing}'
        done = subprocess.run(
            ["sh", "-c", shell, "sh", *BALOG, "run", "--", "sh", "-c", "echo data; echo INFO hello >&2"],
            capture_output=True,
        )
        assert (done.returncode, split(done.stdout)[1]) == (code, out)
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize("stdin", ["terminal", "null"])
    def test_ctrl_c_of_a_terminal_reaches_the_child_once(self, stdin):
        """Given a sidecar in a terminal's foreground, wherever its stdin is, then one Ctrl-C is one for the tap."""
        code = """
import signal, time
count = 0
def more(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, more)
print('ready', flush=True)
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.05)
print(count, flush=True)
"""
        master, slave = pty.openpty()
        process = started(
            *python(code),
            stdin=slave if stdin == "terminal" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        with process:
            assert process.stdout.readline() == b"ready\n"
            os.write(master, b"\x03")
            rest = split(process.stdout.read())[1]
        os.close(master)
        os.close(slave)
        assert (process.returncode, rest) == (0, b"1\n")

    def test_a_grandchild_that_keeps_stderr_does_not_hold_up_the_end(self, tmp_path):
        """Given a background process that keeps that pipe open until this test lets it go, then the run still ends."""
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        done = sidecar("sh", "-c", 'cat "$0" >/dev/null & echo done', str(gate), timeout=60)
        assert split(done.stdout)[1] == b"done\n"
        with open(gate, "w"):
            pass

    def test_what_a_grandchild_writes_after_the_childs_end_is_data(self):
        """Given a shell that does not wait for what it began, then the stream goes on to that one's end."""
        done = sidecar("sh", "-c", "{ sleep 2; echo last; } & echo first; exit 3", timeout=60)
        assert done.returncode == 3
        assert split(done.stdout)[1] == b"first\nlast\n"

    def test_a_signal_ends_the_wait_for_a_grandchild(self):
        with started("sh", "-c", 'sleep 600 & echo "$$ $!"', stderr=subprocess.DEVNULL) as process:
            child, grandchild = map(int, process.stdout.readline().split())
            try:
                while os.path.exists(f"/proc/{child}"):  # until the sidecar has waited for it
                    time.sleep(0.01)
                process.terminate()
                assert process.wait(60) == 0
            finally:
                os.kill(grandchild, signal.SIGKILL)
