"""What the pages about verifying show: its options are taken, its example is what comes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from balog.cli.tap import command
from balog.tap.verify import Options, verify
from balog.tap.verify.report import as_text
from balog.tap.verify.rules import CHECKS
from tests.documentation import assert_is_in, docs_page, matches, run_block
from tests.documentation import blocks as documented

ROOT = Path(__file__).parents[2]
HOW_TO, IN_CI, WITH_PYTEST = (
    docs_page(f"{name}.md").read_text(encoding="utf-8") for name in ("verify", "verify-in-ci", "verify-with-pytest")
)
TAPS = ROOT / "tests" / "tap" / "verify"
SHOP = "python examples/shop_server.py -- "
FENCE = re.compile(r"^```(\w+)(?: \S+)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [match.groups() for match in FENCE.finditer(HOW_TO + IN_CI + WITH_PYTEST)]
LINES = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS if found == kind]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_taken(line: str) -> None:
    program, group, name, *words = shlex.split(line.removeprefix(SHOP))
    assert (program, group) == ("balog", "tap")

    found = command.commands[name].make_context(name, words)

    own, example = ("tap-foo", "--config", "config.json"), ("python", "examples/tap_cool.py", "--config", "ENV")
    assert found.params["tap"] == (example if line.startswith(SHOP) else own)


def test_the_example_tap_has_the_score_that_pages_show(tmp_path: Path) -> None:
    ran = [block for block in documented(HOW_TO) if block.language == "sh"]
    shown = [text for text in blocks("text") if text.startswith("…\ntap_cool.py")]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    assert (ran[0].text.replace("examples/", "../examples/") in readme, shown[0] in readme) == (
        True,
        True,
    )  # runs there
    assert_is_in(shown[1], run_block(ran[1], tmp_path))


def test_the_example_is_what_comes(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"base": "https://api.example", "token": "tok-123-hush"}))
    sins = ("--sin", "rash state", "--sin", "available key")
    tap = [sys.executable, "-S", "-E", str(TAPS / "sinful_tap.py"), "--config", str(config), *sins]

    lines = [line for line, _ in as_text(verify(tap, Options(timeout=20)))]

    (report,) = (text for text in blocks("text") if "not judged:" in text)
    assert matches(report, "\n".join(lines).replace("sinful_tap.py", "tap-foo"))


def test_the_test_in_pytest_runs(tmp_path: Path) -> None:
    (tmp_path / "test_tap.py").write_text(blocks("python")[0])
    (tmp_path / "tap_own.py").write_bytes((TAPS / "own_tap.py").read_bytes())

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "balog_pytest", "test_tap.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip

    judged = [each.rule.id for each in CHECKS.values() if each.rule.group in ("discovery", "records")]
    assert f"{len(judged) - 1} passed, {len(CHECKS) - len(judged) + 1} skipped" in done.stdout, (
        done.stdout + done.stderr
    )
