"""``balog tap verify`` and ``balog tap rules`` as they are run."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from balog.cli import main
from balog.tap.verify.rules import CHECKS

TAP = Path(__file__).parents[1] / "tap" / "verify" / "sinful_tap.py"


@pytest.fixture
def tap(tmp_path: Path) -> list[str]:
    """A tap's command line."""
    config = tmp_path / "config.json"
    config.write_text('{"base": "x"}')
    return [sys.executable, "-S", "-E", str(TAP), "--config", str(config)]


def ran(*words: str) -> Result:
    return CliRunner().invoke(main, ["tap", *words], prog_name="balog")


def test_a_tap_that_keeps_to_the_rules_ends_with_0(tap: list[str]) -> None:
    done = ran("verify", "--rules", "discovery", "--", *tap)

    assert done.exit_code == 0, done.output
    assert "sinful_tap.py: 100 of 100; 0 errors" in done.stdout
    assert "balog tap: discover …" in done.stderr


def test_a_broken_rule_of_severity_error_ends_with_1(tap: list[str]) -> None:
    done = ran("verify", "--rules", "output", "--", *tap, "--sin", "prints")

    assert done.exit_code == 1
    assert "  - 1 of 228 lines are not: line 9 is no JSON object" in done.stdout


def test_a_warning_ends_with_0_unless_the_score_is_too_low(tap: list[str]) -> None:
    words = ("--rules", "discovery", "--", *tap, "--sin", "no inclusion")

    assert ran("verify", *words).exit_code == 0
    assert ran("verify", "--fail-under", "100", *words).exit_code == 1


@pytest.mark.parametrize(("value", "colours"), [("1", False), ("", True)])
def test_no_color_is_heeded_on_a_terminal(
    tap: list[str], monkeypatch: pytest.MonkeyPatch, value: str, colours: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    words = ["tap", "verify", "--rules", "discovery-succeeds", "--", *tap]

    done = CliRunner().invoke(main, words, prog_name="balog", color=True)

    assert ("\x1b[" in done.stdout) == colours


def test_json_alone_is_on_stdout(tap: list[str]) -> None:
    done = ran("verify", "--rules", "discovery-succeeds", "--json", "-", "--", *tap)

    document = json.loads(done.stdout)
    assert document["version"] == "1.0.0"
    assert [finding["rule"]["id"] for finding in document["findings"]] == ["discovery-succeeds"]


def test_a_report_in_no_folder_is_refused_before_the_tap_is_run(tmp_path: Path) -> None:
    ran_once = tmp_path / "ran"
    path = tmp_path / "none" / "r.json"
    done = ran("verify", "--json", str(path), "--", "sh", "-c", f"touch {ran_once}")

    assert done.exit_code == 2
    assert done.stderr == f"balog tap: --json {path}: there is no such folder\n"
    assert not ran_once.exists()


def test_json_goes_to_a_file_beside_the_lines(tap: list[str], tmp_path: Path) -> None:
    done = ran("verify", "--skip", "state", "--rules", "output", "--json", str(tmp_path / "r.json"), "--", *tap)

    assert json.loads((tmp_path / "r.json").read_bytes())["score"] == 100
    assert "100 of 100" in done.stdout


def test_wrong_use_ends_with_2() -> None:
    done = ran("verify", "--", "no-such-tap-here", "--config", "x")

    assert done.exit_code == 2
    assert done.stderr == "balog tap: no-such-tap-here: there is no such program\n"


def test_the_rules_are_listed() -> None:
    done = ran("rules")

    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == len(CHECKS)
    line = "records       error    10  records-match-schema: Each record is valid against its stream's schema."
    assert line in done.stdout
