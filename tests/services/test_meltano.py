"""A broker as a mapper of the real Meltano, and a tap in the sidecar: the project of the page on Meltano as it is."""

import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from balog.event import Event, decode
from tests.documentation import docs_page
from tests.programs import run_program
from tests.services.environments import meltano_environment

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PAGE = docs_page("meltano.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PARTS = ["meltano", "tap-jsonl", "target-csv"]
PROGRAMS = [Path(sys.executable).parent, *(ROOT / ".demo" / part / "bin" for part in PARTS)]


def project_in(folder: Path) -> Path:
    """Write the page's files."""
    for block in BLOCK.finditer(PAGE):
        if block["name"]:
            (folder / block["name"]).write_text(block["text"], encoding="utf-8")
    (folder / "tap-jsonl.sh").chmod(0o755)
    return folder


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = meltano_environment(PROGRAMS)
    return run_program("bash", "-eo", "pipefail", "-c", script, cwd=folder, env=variables, code=None)


def events_in(folder: Path) -> list[Event]:
    files = sorted(folder.glob("archive/singer-events/date=*/*.jsonl.gz"))
    return [decode(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def parts() -> None:
    for part in PARTS:
        if not (ROOT / ".demo" / part / "installed").exists():
            pytest.skip(f".demo/{part} is not installed: run make test-parts")


@pytest.fixture(scope="module")
def ran(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after every command of the page."""
    folder = project_in(tmp_path_factory.mktemp("meltano"))
    for block in BLOCK.finditer(PAGE):
        if block["language"] == "sh" and not block["name"]:
            done = shell(block["text"], folder)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_target_has_every_record_masked(ran: Path) -> None:
    with (ran / "out" / "users.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["name"]) for row in rows] == [("1", "Ada"), ("2", "Grace")]
    assert not any("example.org" in row["email"] for row in rows)


def test_the_sink_has_the_tap_s_lines_its_metrics_and_one_report(ran: Path) -> None:
    events = events_in(ran)
    assert {event.header.context["application"] for event in events} == {"tap-jsonl"}
    assert len({event.header.context["run_id"] for event in events}) == 1
    assert {event.cls_type for event in events} == {"log", "metric", "run"}
    counted = [event.payload["value"] for event in events if event.payload.get("metric") == "record_count"]
    assert counted == [2]
    (report,) = [event.payload for event in events if event.cls_type == "run"]
    assert (report["outcome"], report["records"]) == ("succeeded", 2)


def test_what_is_to_be_masked_is_in_no_event(ran: Path) -> None:
    assert not any(b"example.org" in bytes(event.raw_payload) for event in events_in(ran))


def test_a_mistake_in_the_mapping_fails_the_run_with_one_line(parts: None, tmp_path: Path) -> None:
    folder = project_in(tmp_path)
    page = (folder / "meltano.yml").read_text()
    (folder / "meltano.yml").write_text(page.replace("type: store", "type: stor"))

    done = shell("meltano run tap-jsonl balog target-csv", folder)

    said = [line for line in (done.stdout + done.stderr).splitlines() if "balog broker:" in line]
    assert done.returncode != 0
    assert len(said) == 1
    assert "$.sinks[0]: there is no type 'stor'" in said[0]
    assert events_in(folder) == []
