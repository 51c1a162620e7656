"""The pages for programs of the first balog: their blocks run as they are written, in order, in one folder."""

import json
import re
import subprocess

import pytest

from tests.documentation import blocks, page_text, reader_environment
from tests.programs import run_program


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each line of the ``sh`` blocks printed; blocks of Python are files."""
    folder = tmp_path_factory.mktemp("page")
    found = {}
    for block in blocks(page_text("coming-from-balog-1.2", "handlers-from-balog-1.2")):
        if block.name:
            (folder / block.name).write_text(block.text, encoding="utf-8")
            continue
        for line in block.text.splitlines():
            found[line] = run_program("bash", "-c", line, cwd=folder, env=reader_environment())
    return found


def test_the_example_of_the_logger_writes_its_channels(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    events = [json.loads(line) for line in done["python produce.py"].stderr.splitlines()]

    assert [event["header"]["channel"] for event in events] == ["justitia.scripts.process_results.done", "elsewhere"]
    assert events[0]["payload"]["values"][0] == {"name": "total", "value": 123}


def test_records_of_the_root_logger_are_events(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    event = json.loads(done["python records.py"].stderr)

    assert (event["header"]["channel"], event["payload"]["message"]) == ("root", "Hello world")
    assert event["payload"]["severity"] == "WARNING"


def test_the_handler_reads_the_event_by_its_keys(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    run = done["python process.py"]

    assert run.stdout == "develop shop.done 3.0\n"
    assert "gets no event" not in run.stderr


def test_the_changed_condition_has_no_warning(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    listed = done["balog consumers list yourpackage --set env=develop --strict"]

    assert "facility <1.0" in re.sub(r"\s+", " ", listed.stdout)
    assert listed.stderr == ""
