"""The same job with real executors, each a process with its own serialization."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.spark
def test_executors_give_what_plain_python_counts(root: Path, counted: dict[str, Any], tmp_path: Path) -> None:
    job = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run([sys.executable, job, root, tmp_path / "tables"], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    expected = {f"{channel} {level}": count for (channel, level), count in counted["channels"].items()}
    for name in ("raw", "stored"):
        assert told[name]["channels"] == expected
        assert told[name]["runs"] == sorted(counted["runs"])
        assert told[name]["bad"] == counted["bad"]
    assert told["tables"]["events"] == told["rows"]["events"] == counted["events"]
    assert told["tables"]["run"] == sum(len(run["reports"]) for run in counted["runs"].values())
