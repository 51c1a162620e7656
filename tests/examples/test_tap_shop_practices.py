"""The example's own tests, which verify its tap, run as a reader runs them."""

import sys
from pathlib import Path

from tests.programs import environment_without, run_program

ROOT = Path(__file__).parents[2]


def test_the_example_s_tests_pass_without_a_warning_of_a_practice() -> None:
    environment = {**environment_without("BALOG_", "PYTEST_"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    strict = ["-W", "error::balog.tap.verify.testing.TapWarning"]
    run_program(*command, *strict, "examples/tap_shop/tests", cwd=ROOT, env=environment)
