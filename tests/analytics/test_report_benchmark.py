import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_the_benchmark_finds_all_ways_equal_on_a_small_dump(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "benchmarks.report", "--quick", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all tables equal") == 2
    assert done.stdout.count("spark.read.json") == done.stdout.count("balog, rollups") == 2
