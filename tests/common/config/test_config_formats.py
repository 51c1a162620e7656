"""YAML beside JSON: the same data, with places, bounds and one line for each mistake."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker.config import BrokerConfig
from balog.common.config import load, read
from balog.common.config.json_text import parse_json
from balog.common.config.yaml_text import parse_yaml
from balog.common.errors import ConfigError, MissingExtraError

TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\u2028\u2029\x85"), max_size=12
).filter(lambda text: not re.fullmatch(r"[-+]?[0-9.]+[eE][-+]?[0-9]+", text))  # 0E0 is a number in YAML 1.2 only
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def parsed(text: str) -> Any:
    return parse_yaml(text.encode(), "c.yaml", None, None).data


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as error:
        parse_yaml(text.encode(), "c.yaml", None, None)
    return str(error.value)


class TestYaml:
    @settings(max_examples=150)
    @given(VALUES)
    def test_what_another_writer_writes_is_read_as_it_was(self, value: Any) -> None:
        assert parsed(yaml.safe_dump(value, allow_unicode=True)) == value

    @settings(max_examples=150)
    @given(VALUES)
    def test_json_is_yaml_and_its_places_are_the_same(self, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, indent=1).encode()
        ours, theirs = parse_json(text, "c"), parse_yaml(text, "c", None, None)
        assert ours.data == theirs.data
        assert ours.find_places() == theirs.find_places()

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("no", "no"),
            ("on", "on"),
            ("22:00", "22:00"),
            ("2026-11-20", "2026-11-20"),
            ("010", 10),
            ("0o10", 8),
            ("0x1F", 31),
            ("1_000", "1_000"),
            ("~", None),
            ("", None),
            ("# only a comment", None),
            ("'1'", "1"),
            ("!!str 1", "1"),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("|\n a\n b\n", "a\nb\n"),
            ("1: 2", {"1": 2}),
            ("null: 2", {"null": 2}),
            ("\ufeffa: 1", {"a": 1}),
        ],
    )
    def test_values_are_those_of_the_core_schema(self, text: str, value: Any) -> None:
        found = parsed(text)
        assert found == value
        assert type(found) is type(value)

    def test_anchors_and_merges(self) -> None:
        text = "base: &base {a: 1, b: 2}\nmore: &more {b: 5, c: 6}\none: {<<: [*base, *more], a: 3}\nlist: [*base]\n"
        found = parsed(text)
        assert found["one"] == yaml.safe_load(text)["one"] == {"a": 3, "b": 2, "c": 6}
        assert found["list"] == [{"a": 1, "b": 2}]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a: [1, 2", "not YAML: "),
            ("a: 1\n b: 2", "not YAML: "),
            ("a: 1\n---\nb: 2", ":2:1: not YAML: but found another document"),
            ("a: !!python/object/apply:os.system ['true']", "the tag tag:yaml.org,2002:python/object/apply:os.system"),
            ("a: !secret x", ":1:4: the tag !secret is not allowed here"),
            ("a: .inf", ".inf is not a number of JSON"),
            ("a: 1e999", ":1:4: the number is too large"),
            ("a: *b", ":1:4: not YAML: found undefined alias"),
            ("&a [*a]", "nested too deep to be a config"),
            ("? [1]\n: 2", "a key is a list or an object; expected a text"),
            ("!!int 1", "the tag tag:yaml.org,2002:int is not allowed here"),
            ("[" * 500 + "]" * 500, "nested too deep to be a config"),
        ],
    )
    def test_what_configs_do_not_have_is_one_line(self, text: str, reason: str) -> None:
        said = refused(text)
        assert said.startswith("c.yaml:"), said
        assert reason in said
        assert "\n" not in said

    def test_aliases_that_expand_to_millions_are_refused(self) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
        assert "more than 200000 values, with those of aliases" in refused("\n".join(lines))

    def test_the_parser_in_python_reads_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "a: [1, 'x', {b: no}]\nc: |\n  text\n"
        with_c = parse_yaml(text.encode(), "c", None, None)
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
        alone = parse_yaml(text.encode(), "c", None, None)
        assert (alone.data, alone.find_places()) == (with_c.data, with_c.find_places())

    def test_a_key_that_is_there_twice_is_a_problem(self) -> None:
        assert parse_yaml(b"a: 1\nb: {c: 1, c: 2}\n", "c", None, None).problems == [
            ("this key is there twice; expected once", "$.b.c")
        ]

    def test_without_the_library_the_line_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "yaml", None)
        with pytest.raises(MissingExtraError, match=r"a YAML config needs packages.*\[config\]"):
            parsed("a: 1")


class TestFiles:
    YAML = "sinks:\n- type: store\n  path: archive\n  topic: events # a comment\nstrip: true\n"
    JSON = '{"sinks": [{"type": "store", "path": "archive", "topic": "events"}], "strip": true}'

    def test_both_formats_mean_the_same(self, tmp_path: Path) -> None:
        found = []
        for name, text in (("c.json", self.JSON), ("c.yaml", self.YAML), ("c.YML", self.YAML)):
            (tmp_path / name).write_text(text)
            found.append(load(tmp_path / name, BrokerConfig))
        assert found[0].strip
        assert all(one == found[0] for one in found)

    def test_json_keeps_what_looks_like_a_variable(self, tmp_path: Path) -> None:
        (tmp_path / "c.json").write_text('{"a": "${HOME} $${x}"}')
        assert read(tmp_path / "c.json") == ({"a": "${HOME} $${x}"}, [])

    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            ("c.yaml", b"a: \xff", ":1:4: not UTF-8: invalid start byte"),
            ("c.yaml", b"a: \x00", "not YAML: "),
        ],
    )
    def test_another_file_is_one_line(self, tmp_path: Path, name: str, data: bytes, reason: str) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ConfigError) as error:
            read(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}:"), error.value
        assert reason in str(error.value)
        assert "\n" not in str(error.value)
