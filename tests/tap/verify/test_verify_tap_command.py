"""A tap's command line, taken apart."""

import sys
from pathlib import Path

import pytest

from balog.common.errors import ConfigError
from balog.tap.verify.tap_command import parse_command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is there."""
    path = tmp_path / "file.json"
    path.write_text("{}")
    return path


@pytest.mark.parametrize("form", [["--config", "FILE"], ["--config=FILE"], ["-c", "FILE"]])
def test_the_config_is_taken_out_in_each_form(file: Path, form: list[str]) -> None:
    found = parse_command(
        [sys.executable, "-m", "tap_x", *[word.replace("FILE", str(file)) for word in form], "--fast"]
    )

    assert found.base == (sys.executable, "-m", "tap_x", "--fast")
    assert found.config == file
    assert found.line("--discover") == [sys.executable, "-m", "tap_x", "--config", str(file), "--fast", "--discover"]


def test_a_short_option_that_names_no_file_is_the_program_s_own() -> None:
    found = parse_command([sys.executable, "-c", "print(1)"])

    assert found.base == (sys.executable, "-c", "print(1)")


def test_a_second_config_and_the_environment_stay(file: Path) -> None:
    found = parse_command([sys.executable, "--config", str(file), "--config=ENV", "--config", str(file)])

    assert found.base == (sys.executable, "--config", "ENV", "--config", str(file))
    assert found.config == file
    assert found.line()[1:] == ["--config", str(file), "--config", "ENV", "--config", str(file)]


def test_discover_is_left_to_each_run(file: Path) -> None:
    found = parse_command([sys.executable, "--discover", "--catalog", str(file), "--state", str(file), "-p", str(file)])

    assert found.base == (sys.executable,)
    assert found.catalog == found.state == found.properties == file


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "the command of the tap is missing"),
        (["no-such-tap-here"], "no-such-tap-here: there is no such program"),
        ([sys.executable, "--config", "/no/such.json"], "--config /no/such.json: there is no such file"),
    ],
)
def test_what_is_not_there_is_said(command: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_command(command)
