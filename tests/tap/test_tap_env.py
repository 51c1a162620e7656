"""A tap's config from several files and the environment: which counts, and what a text becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from balog.tap.config import environment_name, make_spec, read_config
from balog.tap.errors import TapConfigProblems

SPEC = make_spec(
    {
        "required": ["base_url"],
        "properties": {
            "base_url": {"type": "string"},
            "pages": {"type": "integer"},
            "ratio": {"type": "number"},
            "dry": {"type": "boolean"},
            "tags": {"type": "array"},
            "auth": {"type": "object", "properties": {"id": {"type": "string"}}},
            "both": {"type": ["integer", "string"]},
            "maybe": {"type": ["integer", "null"]},
        },
    }
)


def write(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in files]


def test_a_name_is_the_taps_and_the_settings() -> None:
    assert environment_name("tap-cool", "base_url") == "TAP_COOL_BASE_URL"
    assert environment_name("tap.cool", "base-url") == "TAP_COOL_BASE_URL"


def test_later_files_replace_whole_settings_of_earlier_ones(tmp_path: Path) -> None:
    paths = write(tmp_path, a='{"base_url": "a", "auth": {"id": "a", "x": 1}, "pages": 1}', b='{"auth": {"id": "b"}}')
    given = read_config(SPEC, "tap-cool", paths, {})
    assert given.values == {"base_url": "a", "auth": {"id": "b"}, "pages": 1}
    assert given.sources == {"base_url": paths[0], "auth": paths[1], "pages": paths[0]}


def test_the_environment_fills_what_the_files_lack(tmp_path: Path) -> None:
    paths = write(tmp_path, a='{"base_url": "file"}')
    environment = {"TAP_COOL_BASE_URL": "env", "TAP_COOL_PAGES": "7", "TAP_COOL_OTHER": "x", "TAP_COOL_TAGS": ""}
    given = read_config(SPEC, "tap-cool", paths, environment)
    assert given.values == {"base_url": "file", "pages": 7}
    assert given.sources["pages"] == "TAP_COOL_PAGES"


def test_named_among_the_files_it_counts_at_its_place(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a='{"base_url": "file"}')
    environment = {"TAP_COOL_BASE_URL": "env"}
    assert read_config(SPEC, "tap-cool", [path, "ENV"], environment).values == {"base_url": "env"}
    assert read_config(SPEC, "tap-cool", ["ENV", path], environment).values == {"base_url": "file"}


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        ("base_url", "3", "3"),
        ("pages", "3", 3),
        ("pages", "9.0", 9),
        ("ratio", "9.0", 9.0),
        ("ratio", "0.5", 0.5),
        ("dry", "True", True),
        ("dry", "0", False),
        ("dry", "no", False),
        ("tags", '["a", "b"]', ["a", "b"]),
        ("auth", '{"id": "i"}', {"id": "i"}),
        ("both", "3", "3"),
        ("maybe", "null", None),
        ("maybe", "3", 3),
        ("start_date", "2026-01-01", "2026-01-01"),
        ("pages", "three", "three"),
    ],
)
def test_a_text_becomes_what_the_spec_wants(setting: str, text: str, value: object) -> None:
    given = read_config(SPEC, "tap-cool", [], {environment_name("tap-cool", setting): text})
    assert given.values == {setting: value}
    assert type(given.values[setting]) is type(value)


def test_a_text_that_cannot_is_refused_by_the_variables_name() -> None:
    given = read_config(SPEC, "tap-cool", [], {"TAP_COOL_PAGES": "three", "TAP_COOL_BASE_URL": "u"})
    with pytest.raises(TapConfigProblems, match=r"^TAP_COOL_PAGES: \$\.pages: expected an integer, got a string$"):
        SPEC.check(given.values, given.source, given.sources)


def test_every_file_that_is_wrong_is_told_of(tmp_path: Path) -> None:
    paths = write(tmp_path, **{"a.json": "{", "b.json": "[]"})
    with pytest.raises(TapConfigProblems) as error:
        read_config(SPEC, "tap-cool", [*paths, str(tmp_path / "none.json")], {})
    lines = str(error.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [*paths, str(tmp_path / "none.json")]
    assert ":1:2: " in lines[0]


def test_nothing_is_taken_where_no_names_are_known() -> None:
    assert read_config(make_spec(None), "tap-cool", [], {"TAP_COOL_X": "1"}).values == {}
