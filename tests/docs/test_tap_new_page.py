"""The page on new taps: its commands run as they are, and print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|text|json) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    output = ""
    blocks = BLOCK.findall(docs_page("tap-new.md").read_text(encoding="utf-8"))
    assert [kind for kind, _, _ in blocks] == ["sh", "text", "json", "sh", "text"]
    for kind, name, text in blocks:
        if kind == "json":
            (tmp_path / name).write_text(text)
        elif kind == "text":
            assert output.endswith(text)
        else:
            done = subprocess.run(
                ["bash", "-ec", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            output = done.stdout
