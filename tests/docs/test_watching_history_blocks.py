"""The blocks of the pages on monitors and backtests run as they are written, over tables that end now."""

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import run_page
from tests.watch.history_events import BEGIN, lines

DAYS = 6


@pytest.mark.spark
def test_the_blocks_of_the_pages_run(spark: Any, tmp_path: Path) -> None:
    from balog.analytics.tables import open_store
    from balog.analytics.tables.loader import load

    later = datetime.now(timezone.utc) - BEGIN - timedelta(days=DAYS)
    (tmp_path / "a.jsonl").write_text("\n".join(moved(line, later) for line in lines(5, every=4, days=DAYS)) + "\n")
    store = open_store(spark, str(tmp_path / "tables"))
    with store.writing():
        load(spark, store, [str(tmp_path / "a.jsonl")])

    printed = "".join([*run_page("monitors.md", tmp_path), *run_page("backtests.md", tmp_path)])

    result = json.loads(next(line for line in printed.splitlines() if line.startswith('{"since"')))
    assert {one["name"] for one in result["monitors"] if one["firings"]} >= {"new-errors", "schema-moved"}
    assert (tmp_path / "backtest.html").read_text(encoding="utf-8").endswith("</html>")
    suggested = (tmp_path / "monitors.yaml").read_text(encoding="utf-8")
    assert re.search(r"# \d+ alerts?, \d\.\d\d a week.*\n  - name: \"tap-crm-arrives\"", suggested)


def moved(line: str, later: timedelta) -> str:
    """Return an event that happened later."""
    event = json.loads(line)
    when = datetime.fromisoformat(event["header"]["timestamp"].replace("Z", "+00:00")) + later
    event["header"]["timestamp"] = when.isoformat().replace("+00:00", "Z")
    return json.dumps(event)
