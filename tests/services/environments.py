"""Environments of tests, made as the Makefile makes them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install(environment: Path, *packages: str | Path) -> subprocess.CompletedProcess[str]:
    """Install packages into an environment; the uv beside this Python is used when there is one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["sh", ".ci/install", environment, "pip", *packages],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
