"""A program that uses every part of the logger: it runs, and type checkers accept it."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "data" / "user_program.py"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program outside of the checkout, as users have it."""
    return Path(shutil.copy(PROGRAM, tmp_path / "user_program.py"))


def checked(program: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a type checker that finds balog as users' do: in the environment alone, here an editable installation."""
    env = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", *command, program.name], cwd=program.parent, capture_output=True, text=True, env=env
    )


def test_it_runs(program: Path) -> None:
    """Strict, so that every call gives its event."""
    done = subprocess.run([sys.executable, str(program)], cwd=program.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in done.stderr.splitlines()]

    assert len(written) == 19
    by_loggers = [event for event in written if event["header"]["channel"] != "shop.raw"]
    assert all(event["header"]["context"]["callsite"]["file"] for event in by_loggers)


def test_mypy_accepts_it(program: Path) -> None:
    """In strict mode."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: it comes with the extra lint")
    done = checked(program, "mypy", "--strict", f"--cache-dir={program.parent}")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found in 1 source file" in done.stdout


def test_pyright_accepts_it(program: Path) -> None:
    """In its default mode."""
    if importlib.util.find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright (from PyPI) or node is not installed")
    done = checked(program, "pyright", "--pythonpath", sys.executable)
    if "npm" in done.stderr or "getaddrinfo" in done.stderr:
        pytest.skip("pyright could not get its own program")

    assert done.returncode == 0, done.stdout + done.stderr
