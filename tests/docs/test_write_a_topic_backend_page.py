"""The page on writing a topic backend: its backend, installed by its entry point, passes the contract."""

import os
import re
import sys
from pathlib import Path

from tests.documentation import docs_page
from tests.programs import run_program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGE = docs_page("write-a-topic-backend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```(?:python|toml) (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
PROJECT = tomllib.loads(FILES["pyproject.toml"])["project"]


def test_the_backend_of_the_page_passes_the_contract(tmp_path: Path) -> None:
    (tmp_path / "balog_queue.py").write_bytes((ROOT / "examples" / "balog_queue.py").read_bytes())
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    info = tmp_path / "balog_queue-1.0.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n"
    (info / "METADATA").write_text(metadata)
    [(scheme, opener)] = PROJECT["entry-points"]["balog.topics"].items()
    (info / "entry_points.txt").write_text(f"[balog.topics]\n{scheme} = {opener}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_balog_queue.py"]
    done = run_program(*pytest, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    (applying,) = re.findall(r"of which (\d+) apply", PAGE)
    assert f"{applying} passed" in done.stdout
