"""The pages on the schemas of taps: their blocks run as they are, and their numbers are the code's."""

import re
import subprocess
import sys
from pathlib import Path

from balog.tap.schema import inference, validity
from tests.documentation import docs_page

PAGE = docs_page("tap-schemas.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run(tmp_path: Path) -> None:
    code = []
    for language, name, text in BLOCKS:
        if language == "python":
            code.append(text)
        else:
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(code) == 3
    run = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_its_numbers_are_the_code_s() -> None:
    words = " ".join(PAGE.split())
    assert f"the stream's own first {inference.MOST} records" in words
    assert (
        f"a file of {validity.MAX_BYTES >> 20} MiB, {validity.MAX_DEPTH} levels of objects and lists, "
        f"{validity.MAX_NODES:,} schemas when references are resolved"
    ) in words
