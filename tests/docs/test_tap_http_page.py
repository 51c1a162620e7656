"""The page on sources: its Python blocks run one after another as they are, against the example's shop."""

import os
import re
import subprocess
import sys
from pathlib import Path

from examples.shop_server import Shop
from tests.documentation import docs_page

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    blocks = FENCE.findall(docs_page("tap-http.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 10
    with Shop(30) as shop:
        code = "\n".join(blocks).replace("https://api.example.com", shop.url)
        (tmp_path / "page.py").write_text(code, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "page.py"],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "186",
        "200 6",
        "200",
        f"<Client of {shop.url}> <Credential token> fetched once in a run",
    ]
    assert "5 True" in lines
    assert "30" in lines
    assert "2026-01-31/2026-02-28" in lines
    assert lines[-1].startswith("8 ")
    assert "example-key" not in done.stderr
