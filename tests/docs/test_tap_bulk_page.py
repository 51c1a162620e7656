"""The page about streams of bulk APIs: its taps run against a server, and what they print is as it says."""

import json
import re
import subprocess
from pathlib import Path

import msgspec

from balog.tap.endpoints import BulkStream
from balog.tap.endpoints.bulk_job import BulkJob
from tests.documentation import docs_page, reader_environment
from tests.stand_ins.http_server import HttpStandIn
from tests.stand_ins.job_server import Jobs

ROOT = Path(__file__).parents[2]
TEXT = docs_page("tap-bulk.md").read_text(encoding="utf-8")
HOW_TO = docs_page("write-a-bulk-tap.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", HOW_TO + TEXT, re.DOTALL | re.MULTILINE)


def test_its_taps_run(tmp_path: Path) -> None:
    environment = {**reader_environment(), "PYTHONPATH": str(ROOT)}
    rows = [{"id": number, "name": "x", "updated": f"2026-01-{number:02}T00:00:00Z"} for number in range(1, 8)]
    jobs = Jobs(rows, polls=0)
    printed = ""
    with HttpStandIn(jobs.respond) as server:
        jobs.host = server.url
        for kind, name, text in BLOCKS:
            if kind == "python":
                code = text.replace("https://api.example.com", server.url)
                (tmp_path / name).write_text(code, encoding="utf-8")
            elif kind == "sh":
                command = ["bash", "-e", "-o", "pipefail", "-c", text]
                ran = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
                printed = ran.stdout
            elif kind == "text":
                assert printed == text
    assert list(jobs.jobs) == ["1"]


def test_its_state_and_its_settings_are_those_of_the_code() -> None:
    [state] = [json.loads(text) for kind, _, text in BLOCKS if kind == "json"]
    job = state["bookmarks"]["orders"]["job"]
    assert msgspec.to_builtins(msgspec.convert(job, BulkJob, strict=True)) == {
        k: v for k, v in job.items() if k != "attempt"
    }

    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    assert set(BulkStream.own_settings) <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}
