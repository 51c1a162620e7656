"""What the tests of the sidecar share: its command, to its end or only started, and code to run in it."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

BALOG = [sys.executable, "-m", "balog"]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def impatient(**constants: float) -> list[str]:
    """Return the command ``balog`` with other constants of the sidecar."""
    changes = [f"sidecar.{name} = {value}" for name, value in constants.items()]
    lines = ["from balog.broker.sidecar import sidecar", *changes, "from balog.cli import main", "main()"]
    return python("\n".join(lines))


def sidecar(
    *command: str, options: Sequence[str] = (), balog: Sequence[str] = BALOG, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*balog, "run", *options, "--", *command], **{"capture_output": True, **more})


def started(
    *command: str, options: Sequence[str] = (), balog: Sequence[str] = BALOG, **more: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*balog, "run", *options, "--", *command], **{"stdout": subprocess.PIPE, **more})
