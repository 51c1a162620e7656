"""Commands whose stdout takes nothing, or not all characters; lines that name their command."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from balog.cli import COMMANDS, main
from balog.cli.shared.output import print_errors
from balog.common.errors import ConfigError, MissingExtraError


@pytest.fixture
def state(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"bookmarks": {"users": {"id": 7}}}')
    return path


@pytest.mark.parametrize("command", ["load", "show"])
@pytest.mark.parametrize(
    ("stdout", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_stdout_that_takes_nothing_is_one_line(state, command, stdout, reason):
    shell = f'"$0" -m balog state {command} "$1" {stdout}'
    done = subprocess.run(["bash", "-c", shell, sys.executable, str(state)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"balog state: writing failed: {reason}\n")


def test_a_reader_that_has_seen_enough_is_no_error(state):
    shell = 'set -o pipefail; { sleep 0.5; "$0" -m balog state load "$1"; } | true'
    done = subprocess.run(["bash", "-c", shell, sys.executable, str(state)], capture_output=True, text=True)
    assert done.stderr == ""


class TestATerminalOfAscii:
    def run(self, *words, cwd=None):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        command = [sys.executable, "-m", "balog", *words]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=cwd, stdin=subprocess.DEVNULL
        )

    @pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
    def test_a_character_that_it_cannot_show_is_escaped(self, form, tmp_path):
        """Given an answer with characters that stdout has none for, then they are written as JSON escapes them."""
        pytest.importorskip("duckdb", reason="duckdb is not installed")
        event = {"id": "x1", "channel": "a", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO", "context": {}}
        line = json.dumps({"schema": "1.0.0", "header": event, "payload": {"cls_type": "x"}})
        (tmp_path / "events.jsonl").write_text(line + "\n")
        done = self.run("query", "SELECT 'né😀' AS x", "--source", "events.jsonl", "--format", form, cwd=tmp_path)
        assert (done.returncode, "n\\u00e9\\ud83d\\ude00" in done.stdout) == (0, True), done.stderr
        if form == "jsonl":
            assert json.loads(done.stdout) == {"x": "né😀"}

    @pytest.mark.parametrize(
        "words",
        [
            ["--help"],
            ["réport"],
            ["check", "é.yaml"],
            ["query", "SELECT 'é", "--source", "é"],
            ["topics", "peek", "é", "--topics", "local:é"],
        ],
    )
    def test_no_mistake_is_a_traceback(self, words, tmp_path):
        done = self.run(*words, cwd=tmp_path)
        assert (done.returncode != 0, "Traceback" in done.stderr) == ("--help" not in words, False), done.stderr


class TestNames:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_line_has_the_name_of_its_command_once(self, command, capsys):
        name = f"balog {command}"
        print_errors(name, MissingExtraError(name, "spark"))
        print_errors(name, MissingExtraError(f"{name} --engine spark", "spark"))
        print_errors(name, ConfigError("is wrong", "c.json", "$.a"))
        lines = capsys.readouterr().err.splitlines()
        assert [line.count(name) for line in lines] == [1, 1, 1]
        assert [line.removeprefix(f"{name}: ")[:13] for line in lines] == [
            "needs package",
            "--engine spar",
            "c.json: $.a: ",
        ]

    def test_a_command_without_a_file_name_is_named_by_its_path(self):
        done = subprocess.run([sys.executable, "-m", "balog", "run", "--", "/"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (126, "balog run: /: / cannot be run: Permission denied\n")

    def test_the_first_error_of_yaml_is_a_line(self, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text("sinks: @x\nspool: }\nstate: y\nrecords: @y\n")
        done = CliRunner().invoke(main, ["check", str(path)], prog_name="balog")
        lines = [line.removeprefix(f"{path}:").partition(":")[0] for line in done.stderr.splitlines()[:-1]]
        assert lines == ["1"]
        assert done.stderr.endswith(f"{path}: 1 problem\n")
