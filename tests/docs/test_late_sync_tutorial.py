"""The tutorial on late syncs runs as it is written: a sync is late, the alert fires, and it resolves."""

import json
from pathlib import Path

from tests.documentation import run_page


def test_its_blocks_run_and_the_alert_fires_and_resolves(tmp_path: Path) -> None:
    described, _, _, preview = run_page("late-sync.md", tmp_path)

    assert "events" in described
    assert len((tmp_path / "orders.jsonl").read_text().splitlines()) == 4
    alerts = [json.loads(line)["payload"] for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert [
        (one["monitor"], one["state"]) for one in alerts[:2]
    ] == [  # on a slow machine, the next sync may be late, too
        ("orders-arrive", "firing"),
        ("orders-arrive", "resolved"),
    ]
    assert "[error] orders-arrive: firing" in preview
    assert "[error] orders-arrive: resolved" in preview
