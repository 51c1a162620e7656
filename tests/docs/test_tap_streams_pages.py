"""The pages about found streams, databases and files: their files are written, their commands run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from balog.tap.files import file_stream
from balog.tap.patterns import file_formats
from balog.tap.streams import discovery
from tests.documentation import docs_page


def blocks_of(page: str) -> list[tuple[str, str, str]]:
    text = docs_page(page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["find-streams-at-run-time.md", "write-a-file-tap.md", "write-a-database-tap.md"])
def test_its_blocks_run(page: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = ""
    for kind, name, text in blocks_of(page):
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif kind == "sh":
            command = ["bash", "-e", "-o", "pipefail", "-c", text]
            ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, f"{text}{ran.stdout}{ran.stderr}"
            printed = ran.stdout
        elif kind == "text":
            assert printed == text


def test_the_limits_of_a_discovery_are_the_code_s() -> None:
    words = " ".join(docs_page("tap-discovery.md").read_text(encoding="utf-8").split())

    assert f"at most {discovery.MAX_STREAMS:,} streams. A name has at most {discovery.MAX_NAME} printable" in words


def test_the_limits_of_files_are_the_code_s() -> None:
    words = " ".join(docs_page("tap-files.md").read_text(encoding="utf-8").split())

    assert f"{file_stream.MAX_FILES:,} files a stream" in words
    assert f"{file_formats.MAX_LINE >> 20} MiB a line of JSON" in words
    assert f"{file_formats.MAX_DOCUMENT >> 20} MiB a JSON document or workbook" in words
    assert f"{file_formats.MAX_MEMBERS:,} files in a zip archive" in words
    assert f"`max_bytes` ({file_formats.ReadOptions.max_bytes >> 30} GiB)" in words
