"""The page about streams of taps: its class runs, and it has all settings."""

import re
from pathlib import Path

from balog.tap.streams.settings import SETTINGS
from tests.documentation import docs_page, run_page

TEXT = docs_page("taps.md").read_text(encoding="utf-8")


def test_its_blocks_run(tmp_path: Path) -> None:
    (printed,) = run_page("taps.md", tmp_path)
    assert '"table":"DEALS"' in printed


def test_it_has_all_settings() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    said = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert set(SETTINGS) <= said
