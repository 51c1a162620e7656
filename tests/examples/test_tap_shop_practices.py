"""The example's own tests, which verify its tap, run as a reader runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_s_tests_pass_without_a_warning_of_a_practice() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("BALOG_", "PYTEST_"))}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("-W", "error::balog.tap.verify.testing.TapWarning", "examples/tap_shop/tests"),
        ],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
