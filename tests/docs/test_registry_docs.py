"""The page on the registry: its blocks run as they are, and its numbers are the code's."""

import os
import re
import subprocess
import sys
from pathlib import Path

from balog.registry import complexity, json_schema
from balog.registry.schema import MAX_SCHEMA_BYTES
from tests.documentation import docs_page

PAGE = docs_page("registry.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "BALOG_REGISTRY"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    said = []
    for language, name, text in BLOCKS:
        if language == "json":
            (tmp_path / name).write_text(text)
        elif language in ("sh", "python"):
            run = ["sh", "-e", "-c", text] if language == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            said.append(done.stdout + done.stderr)
    assert "2 read, all valid" in said[0]
    assert '$.id is not of type "integer"' in said[1]


def test_its_numbers_are_the_code_s() -> None:
    assert (
        f"a schema: {MAX_SCHEMA_BYTES >> 20} MiB, {complexity.MAX_DEPTH} levels deep, {complexity.MAX_UNFOLDED:,} "
        in PAGE
    )
    assert f"At most {json_schema.MAX_VIOLATIONS} errors" in PAGE
