"""A tap's command line, taken apart."""

import sys
from pathlib import Path

import pytest

from balog.errors import ConfigError
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.tap_command import take_apart


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is there."""
    path = tmp_path / "file.json"
    path.write_text("{}")
    return path


@pytest.mark.parametrize("form", [["--config", "FILE"], ["--config=FILE"], ["-c", "FILE"]])
def test_the_config_is_taken_out_in_each_form(file: Path, form: list[str]) -> None:
    found = take_apart([sys.executable, "-m", "tap_x", *[word.replace("FILE", str(file)) for word in form], "--fast"])

    assert found.base == (sys.executable, "-m", "tap_x", "--fast")
    assert found.config == file
    assert found.line("--discover") == [sys.executable, "-m", "tap_x", "--config", str(file), "--fast", "--discover"]


def test_a_short_option_that_names_no_file_is_the_program_s_own() -> None:
    found = take_apart([sys.executable, "-c", "print(1)"])

    assert found.base == (sys.executable, "-c", "print(1)")


def test_a_second_config_and_the_environment_stay(file: Path) -> None:
    found = take_apart([sys.executable, "--config", str(file), "--config=ENV", "--config", str(file)])

    assert found.base == (sys.executable, "--config", "ENV", "--config", str(file))
    assert found.config == file
    assert found.line()[1:] == ["--config", str(file), "--config", "ENV", "--config", str(file)]


def test_discover_is_left_to_each_run(file: Path) -> None:
    found = take_apart([sys.executable, "--discover", "--catalog", str(file), "--state", str(file), "-p", str(file)])

    assert found.base == (sys.executable,)
    assert found.catalog == found.state == found.properties == file


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "no command of a tap is given"),
        (["no-such-tap-here"], "no-such-tap-here: there is no such program"),
        ([sys.executable, "--config", "/no/such.json"], "--config /no/such.json: there is no such file"),
    ],
)
def test_what_is_not_there_is_said(command: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        take_apart(command)


def test_secrets_are_known_by_their_keys_also_below_one() -> None:
    config = {"token": "tok-1234", "credentials": {"user": "somebody"}, "page_token": "page-1234", "password": "x"}

    assert Leaks({**config, "list": [{"api_key": "key-1234"}]}).keys == [
        "$.credentials.user",
        "$.list[0].api_key",
        "$.token",
    ]


@pytest.mark.parametrize("line", [b'x "a\\"b/c d" y', b'x a"b/c d', b"?q=a%22b%2Fc%20d&x"])
def test_a_secret_is_found_as_it_is_as_json_and_in_an_address(line: bytes) -> None:
    leaks = Leaks({"password": 'a"b/c d'})

    leaks.look(line, "stderr", 4)

    assert leaks.found == {("$.password", "stderr"): 4}


def test_what_is_said_hides_secrets_and_is_one_short_line() -> None:
    said = Leaks({"password": "open sesame"}).hide("tried open sesame\n\x1b[31m" + "x " * 500)

    assert "sesame" not in said
    assert said.isprintable()
    assert len(said) <= 240
