"""Programs in a process of their own."""

import os
import subprocess
import sys


def run_program(*command: str, check: bool = True, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command, without the variables of balog that this process has.

    Args:
        check: whether an exit code other than 0 is an error.
        environment: further variables.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BALOG_")}
    env, seconds = clean | environment, 60  # a deadlock is a failure, not a wait
    return subprocess.run(command, capture_output=True, text=True, check=check, env=env, timeout=seconds)


def run_python(code: str, *options: str, check: bool = True, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run code, after the options of the interpreter, likewise."""
    return run_program(sys.executable, *options, "-c", code, check=check, **environment)
