"""The page on versions: its Python runs, its commands are taken, and its modes are all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from balog.registry.comparing import Mode
from tests.documentation import docs_page

PAGE = docs_page("evolution.md").read_text(encoding="utf-8")


def test_its_python_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    assert blocks
    for block in blocks:
        exec(block, {})


def test_its_commands_run(tmp_path: Path) -> None:
    (tmp_path / "order").mkdir()
    for name, text in re.findall(r"^```json (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    environment = {name: value for name, value in os.environ.items() if name != "BALOG_REGISTRY"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    done = subprocess.run(
        ["sh", "-e", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr
    assert "1 read, all valid" in done.stderr
    assert done.stderr.endswith(
        "not compatible (full_transitive); the least version is 2.0.0, and 1.1.0 is too small a step\n"
    )


def test_its_modes_are_all_of_them() -> None:
    table = PAGE.split("## Modes")[1].split("##")[0]

    assert set(re.findall(r"`([a-z_]+)`", table)) == set(get_args(Mode))
