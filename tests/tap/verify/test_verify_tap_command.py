"""A tap's command line, taken apart."""

import sys
from pathlib import Path

import pytest

from balog.common.errors import ConfigError
from balog.tap.config.secrets import secret_texts
from balog.tap.verify.leaks import Leaks
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


def test_secrets_are_known_by_their_keys_also_below_one() -> None:
    config = {"token": "tok-1234", "credentials": {"phrase": "somebody"}, "page_token": "page-1234", "password": "x"}

    assert Leaks({**config, "list": [{"api_key": "key-1234"}]}).keys == [
        "$.credentials.phrase",
        "$.list[0].api_key",
        "$.token",
    ]


@pytest.mark.parametrize(
    ("key", "value", "is_secret"),
    [
        ("pat", "abcdef", True),
        ("github_pat", "abcdef", True),
        ("db.pass", "abcdef", True),
        ("key", "k-123456", True),
        ("key", "updated_at", False),
        ("auth", "oauth2", False),
        ("auth", "basic_auth", False),
        ("path", "abcdef", False),
        ("compass", "abcdef", False),
        ("replication_key", "updated_at", False),
    ],
)
def test_short_names_of_secrets_are_known(key: str, value: str, is_secret: bool) -> None:
    assert Leaks({key: value}).keys == ([f"$.{key}"] if is_secret else [])


def test_what_is_said_hides_secrets_and_is_one_short_line() -> None:
    said = Leaks({"password": "open sesame"}).redact("tried open sesame\n\x1b[31m" + "x " * 500)

    assert "sesame" not in said
    assert said.isprintable()
    assert len(said) <= 240


def test_a_secret_s_name_is_what_redaction_says_and_an_auth_object_has_settings() -> None:
    config = {"db_pass": "sesame-1", "userSsn": "sesame-2", "otp": "sesame-3", "auth": {"method": "oauth2"}}
    assert Leaks({**config, "compass": "northern", "session": "default"}).keys == ["$.db_pass", "$.otp", "$.userSsn"]
    assert set(secret_texts(config)) == {"sesame-1", "sesame-2", "sesame-3"}
    assert set(secret_texts({"auth": "sesame-4", "session": {"token": "sesame-5"}})) == {"sesame-4", "sesame-5"}
