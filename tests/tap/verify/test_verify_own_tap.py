"""What the toolkit promises of each tap that is made with it, by its own verifier."""

import sys
from pathlib import Path

from balog.tap.verify import Options, verify

TAP = Path(__file__).parent / "own_tap.py"
OPTIONS = Options(states=1, rules=("discovery", "output", "records", "state"))
"""Those that show versions and bookmarks: a project of ``balog tap new`` is held to all rules by its own tests."""


def test_a_tap_of_the_toolkit_keeps_to_every_practice(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"account": "a", "access_token": "hush-hush-1", "start_date": "2026-11-20T00:00:00Z"}')

    report = verify([sys.executable, str(TAP), "--config", str(config)], OPTIONS)

    assert (report.score, report.failed) == (100, [])

    skipped = {finding.rule.id for finding in report.findings if finding.outcome == "skipped"}
    assert skipped <= {"state-comes-on-the-way"}
