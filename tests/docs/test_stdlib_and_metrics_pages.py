"""The pages on other libraries' lines and on metrics: their blocks run as they are, in order, in one folder.

``tests/services/test_taps_on_balog.py`` runs the blocks that need a tap's own environment.
"""

import json
from pathlib import Path

import pytest

from tests.documentation import Block, page_text, run_block, run_task


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("stdlib-records.md", [["tap-users.requests"]]),
        ("metrics.md", [["python.metric"] * 3, ["python.metric"] * 3]),
    ],
)
def test_the_blocks_of_a_page_run_and_write_events(page: str, written: list[list[str]], tmp_path: Path) -> None:
    printed = [[json.loads(line) for line in text.splitlines()] for text in run_task(page, tmp_path)]
    assert [[event["header"]["channel"] for event in events] for events in printed] == written


def test_records_are_events_and_the_formatter_s_file_holds_the_handler_s(tmp_path: Path) -> None:
    (message,) = map(json.loads, run_task("stdlib.md", tmp_path))
    assert message["value"]["header"]["channel"] == "requests"
    event = json.loads(run_block(Block("sh", "", 0, "python configured.py"), tmp_path))
    assert event["header"]["channel"] == "tap-users.requests"
    line = json.loads((tmp_path / "tap.jsonl").read_text())
    assert (line["payload"], line["header"]["timestamp"]) == (event["payload"], event["header"]["timestamp"])


def test_a_program_of_structlog_writes_two_events_with_context_callsite_and_fields(tmp_path: Path) -> None:
    run_task("structlog.md", tmp_path)
    first, second = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())

    assert first["payload"]["fields"] == {"queue": 17, "stream": "users"}
    assert first["header"]["context"].items() >= {"shard": 3, "request_id": "r1"}.items()
    assert second["header"]["channel"] == "service.done"
    block = page_text("structlog").partition("```python service.py\n")[2]
    assert second["header"]["context"]["callsite"]["line"] == block[: block.index("await log")].count("\n") + 1
