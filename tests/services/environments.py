"""Environments of tests, made as the Makefile makes them."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.programs import environment_without, run_program

ROOT = Path(__file__).parents[2]


def install(environment: Path, *packages: str | Path) -> subprocess.CompletedProcess[str]:
    """Install packages into an environment; the uv beside this Python is used when there is one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "PYTHON": sys.executable}
    return run_program("sh", ".ci/install", environment, "pip", *packages, cwd=ROOT, env=variables, code=None)


def meltano_environment(programs: Iterable[Path]) -> dict[str, str]:
    """Return this environment for Meltano, with more folders of programs."""
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    settings = {"PATH": path, "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false", "NO_COLOR": "1"}
    return {**environment_without("BALOG_", "MELTANO_"), **settings}
