"""The page for users of structlog: its program runs and writes what the page says."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

PAGE = docs_page("structlog.md").read_text(encoding="utf-8")


def test_the_program_writes_two_events(tmp_path: Path) -> None:
    """With the context, the callsite and the fields that the page names."""
    (block,) = re.findall(r"```python service.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "service.py").write_text(block)
    done = subprocess.run([sys.executable, "service.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stderr.splitlines())

    assert first["payload"]["fields"] == {"queue": 17, "stream": "users"}
    assert first["header"]["context"].items() >= {"shard": 3, "request_id": "r1"}.items()
    assert second["header"]["channel"] == "service.done"
    assert second["header"]["context"]["callsite"]["line"] == block[: block.index("await log")].count("\n") + 1
