"""What is skipped is listed at the end of a run; with services required, a skip for want of something is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.fixture
def server():
    pytest.skip("the server is not installed")

@pytest.mark.service
def test_marked(server): ...

def test_not_marked(server): ...

def test_of_a_package():
    pytest.importorskip("no_such_package", reason="the package is not installed")

@pytest.mark.skipif(True, reason="not for root")
def test_of_a_condition(): ...

def test_of_a_mount():
    pytest.skip("nothing can be mounted here")

@pytest.mark.xfail(reason="known")
def test_known(): raise ValueError

def test_that_runs(): ...
"""
MODULE = """
import pytest

pytest.importorskip("no_such_package", reason="the module has no package")

def test_it(): ...
"""


@pytest.fixture
def run(tmp_path: Path):
    def run_tests(services: str, source: str, *options: str, folder: str = ".") -> str:
        file = tmp_path / folder / "test_some.py"
        file.write_text(source)
        # The options of the project, with its conftest.
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
        environment = {**os.environ, "BALOG_SERVICES": services, "PYTHONPATH": str(ROOT)}
        words = [*command, "-p", "no:randomly", *options, str(file)]
        return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path).stdout

    return run_tests


def test_the_end_of_a_run_lists_each_skip_with_its_reason(run) -> None:
    shown = run("", TESTS, "-n", "0")
    assert "5 skipped" in shown
    for reason in ("the server is not installed", "the package is not installed", "not for root", "be mounted here"):
        assert [line for line in shown.splitlines() if line.startswith("SKIPPED") and reason in line], shown


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_is_missing_is_a_failure_where_services_are_required(run, workers) -> None:
    """Given skips with the mark and without it, then only those of a condition stay skips."""
    shown = run("required", TESTS, "-n", workers)
    failed = sorted(
        line.partition("::")[2].split()[0] for line in shown.splitlines() if line.startswith(("FAILED", "ERROR "))
    )
    assert failed == ["test_marked", "test_not_marked", "test_of_a_package"], shown
    assert "1 failed, 1 passed, 2 skipped, 1 xfailed, 2 errors" in shown
    assert "required by BALOG_SERVICES, but the server is not installed" in shown


def test_a_module_that_skips_itself_is_a_failure_too(run) -> None:
    assert "1 skipped" in run("", MODULE, "-n", "0")
    shown = run("required", MODULE, "-n", "0")
    assert "1 error" in shown
    assert "required by BALOG_SERVICES, but the module has no package" in shown


@pytest.mark.parametrize("folder", [".", "service"])
def test_marked_tests_are_left_out_where_services_are_off_whatever_their_folder_is_called(
    run, tmp_path, folder
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    assert "1 deselected" in run("off", TESTS, "-n", "0", folder=folder)
