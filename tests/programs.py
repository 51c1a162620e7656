"""Programs, and commands of balog in this process, as their users run them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from balog.cli import main


def environment_without(*prefixes: str) -> dict[str, str]:
    """Return this environment without the variables that begin with a prefix."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def run_program(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    feed: str = "",
    code: int | None = 0,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and assert its exit code; None is any."""
    done = subprocess.run(
        command, cwd=cwd, env=env, input=feed, capture_output=True, text=True, timeout=900, check=False
    )
    assert code in (None, done.returncode), f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def call_balog(*words: object, feed: str | bytes = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Call a command of balog in this process; the variables are its environment's."""
    command = list(map(str, words))
    done = CliRunner(env={"COLUMNS": "200", **variables}).invoke(main, command, input=feed, prog_name="balog")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)
