"""The newcomer's path: the README's first commands, from a fresh clone to an event of one's own in a report."""

import shutil
import time
from pathlib import Path

import pytest

from tests.documentation import blocks, reader_environment
from tests.programs import run_program

README = Path(__file__).parents[2] / "README.md"

pytestmark = pytest.mark.service


def test_a_clone_becomes_an_event_in_a_report_in_two_commands(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, rest = README.read_text(encoding="utf-8").partition("\n## Install\n")
    commands = "".join(block.text for block in blocks(rest.partition("\n## ")[0])).splitlines()
    assert len(commands) < 3
    clone = Path(shutil.copytree(checkout, tmp_path / "balog", ignore=shutil.ignore_patterns(".venv")))
    environment = {key: value for key, value in reader_environment().items() if key not in ("VIRTUAL_ENV", "PYTHON")}
    took = []
    for command in commands:
        began = time.monotonic()
        done = run_program("bash", "-o", "pipefail", "-c", command, cwd=clone, env=environment)
        took.append(time.monotonic() - began)
    with capsys.disabled():
        print(f"\nfrom a clone to a report: {' + '.join(f'{each:.1f} s' for each in took)}, {len(commands)} commands")
    assert (clone / ".venv" / "bin" / "balog").resolve().is_relative_to(clone), "balog is the clone's own"
    assert "1 event, 0 errors" in done.stdout
    assert "shop.sold" in done.stdout
    assert "shop.sold" in (clone / "balog-report.html").read_text(encoding="utf-8")
