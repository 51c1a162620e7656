"""The same job with real executors, each a process with its own serialization, and by Spark Connect."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.spark
@pytest.mark.parametrize("where", ["local-cluster[2,1,1024]", "remote=local[2]"])
def test_executors_and_connect_give_what_plain_python_counts(
    where: str, root: Path, counted: dict[str, Any], tmp_path: Path
) -> None:
    if where.startswith("remote"):
        pytest.importorskip("grpc", reason="Spark Connect's packages are not installed")
    job = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run(
        [sys.executable, job, where, root, tmp_path / "tables"], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    expected = {f"{channel} {level}": count for (channel, level), count in counted["channels"].items()}
    for name in ("raw", "stored"):
        assert told[name]["channels"] == expected
        assert told[name]["runs"] == sorted(counted["runs"])
        assert told[name]["bad"] == counted["bad"]
    assert told["tables"]["events"] == told["rows"]["events"] == counted["events"]
    assert told["tables"]["run"] == sum(len(run["reports"]) for run in counted["runs"].values())
