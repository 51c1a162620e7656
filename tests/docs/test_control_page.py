import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from tests.documentation import docs_page

PAGE = "".join(docs_page(name).read_text() for name in ("control.md", "control-versions.md", "control-api.md"))
BLOCKS = re.findall(r"```(\w+)[^\n]*\n(.*?)```", PAGE, re.DOTALL)
(DOCUMENT,) = (text for language, text in BLOCKS if language == "json")


def test_the_commands_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (lines,) = (text.splitlines() for language, text in BLOCKS if language == "sh")
    Path("streams.json").write_text(DOCUMENT)
    for line in lines:
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert done.exit_code == (1 if " diff " in line else 0), (line, done.output)
    assert "rollback to 0" in CliRunner().invoke(main, ["config", "history", "--control", "control"]).output
