"""Lines and columns of the parts of a config."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from balog.cli import main
from balog.common.config import locate
from balog.common.config.json_text import parse_json
from balog.common.errors import ConfigError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab é\\\"'\n", max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 2, "\t"]))
def test_a_place_in_json_is_where_the_value_or_its_key_begins(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    lines = text.split("\n")

    def look(part: Any, path: str, first: str) -> None:
        line, column = places[path]
        assert lines[line - 1][column - 1 :].startswith(first), (path, text)
        if isinstance(part, dict):
            for key, item in part.items():
                shown = "".join(char if char.isprintable() else "�" for char in key)
                look(item, f"{path}.{shown}", json.dumps(key))
        elif isinstance(part, list):
            for number, item in enumerate(part):
                look(item, f"{path}[{number}]", json.dumps(item)[:1])

    places = parse_json(text.encode(), "c").find_places()
    look(value, "$", text[:1])


def test_a_place_is_that_of_the_innermost_part_around_it(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# first\nsinks:\n- type: stor\nstrip: 5\n")
    file, missing = str(tmp_path / "c.yaml"), str(tmp_path / "none")
    paths = {"$": "", "$.sinks[0]": ":3:3", "$.sinks[0].nothing.like.it": ":3:3", "$.strip": ":4:1"}
    problems = [ConfigError("wrong", file, path) for path in reversed(paths)] + [ConfigError("wrong", missing, "$.a")]
    located = {problem.path: problem.source for problem in locate(problems)}
    assert located == {**{path: file + place for path, place in paths.items()}, "$.a": missing}


def test_balog_check_prints_the_line_and_column_of_each_problem(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("sinks:\n- type: statsd\n  prot: 1\n- type: stor\nstrip: ${BALOG_TEST_NO}\n")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "c.yaml")])
    assert done.exit_code == 2
    places = [line.removeprefix(str(tmp_path / "c.yaml")).split(": ")[:2] for line in done.output.splitlines()[:-1]]
    assert sorted(places) == [[":3:3", "$.sinks[0]"], [":4:3", "$.sinks[1]"], [":5:1", "$.strip"]]


def test_an_unknown_field_is_found_at_its_own_line_also_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# a broker\nsinks: []\nbase: 1\n")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "c.yaml"), "--for", "broker"])
    assert done.output.startswith(f"{tmp_path / 'c.yaml'}:3:1: $: there is no field 'base'")


def test_a_literal_secret_is_answered_with_what_a_secret_is(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("sinks:\n- type: pagerduty\n  routing_key: hunter2\n")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "c.yaml"), "--for", "broker"])
    assert ':3:3: $.sinks[0].routing_key: a secret does not stand in a config; expected {"env": NAME}' in done.output
    assert "hunter2" not in done.output
