"""The page on writing a topic backend: its backend, installed by its entry point, passes the contract."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

ROOT = Path(__file__).parents[2]
PAGE = docs_page("write-a-topic-backend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ENTRY_POINT = PAGE.partition('"balog.topics"]\n')[2].partition("\n")[0].replace('"', "")


def test_the_backend_of_the_page_passes_the_contract(tmp_path: Path) -> None:
    (tmp_path / "balog_queue.py").write_bytes((ROOT / "examples" / "balog_queue.py").read_bytes())
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    info = tmp_path / "balog_queue-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: balog-queue\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[balog.topics]\n{ENTRY_POINT}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_balog_queue.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b[5-9]\d passed", done.stdout)
