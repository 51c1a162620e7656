import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from balog.broker.config import BrokerConfig
from balog.common.config import MAX_CONFIG_BYTES, load
from balog.common.errors import ConfigError
from balog.sinks import AnySinkConfig
from tests.ci_scripts import ci_script

write_schema = ci_script("config_schemas").write_schema

TYPES = ", ".join(AnySinkConfig.known_tags())


class Inner(Struct, forbid_unknown_fields=True):
    size: int


class Plain(Struct, forbid_unknown_fields=True):
    name: str = "x"
    type: str = "y"
    inner: Inner | None = None


def refusal(tmp_path: Path, content: bytes, kind: Any = BrokerConfig) -> tuple[str, ConfigError]:
    """Give what is said after the file's name, and the error."""
    file = tmp_path / "broker.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(file, kind)
    assert str(refused.value).startswith(refused.value.source)
    assert refused.value.source.startswith(str(file))
    return str(refused.value).removeprefix(str(file)).removeprefix(": "), refused.value


def test_a_byte_order_mark_is_no_reason_to_refuse_a_config(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(b'\xef\xbb\xbf{"sinks": []}')

    assert load(file, BrokerConfig).sinks == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ":1:1: not JSON: expecting value"),
        (b'{"sinks": [\n', ":2:1: not JSON: expecting value"),
        (b'{\n  "sinks": [],\n}', ":3:1: not JSON: expecting property name enclosed in double quotes"),
        (b'{\n "strip": yes}', ":2:11: not JSON: expecting value"),
        (b'{\n "strip": tru,\n "x": 1}', ":2:11: not JSON: expecting value"),
        ('{"é": 1}}'.encode(), ":1:9: not JSON: extra data"),
        (b'{"a": 01}', ":1:8: not JSON: expecting ',' delimiter"),
        ('{"sinks": [{"path": "é",}]}'.encode(), ":1:25: not JSON: expecting property name enclosed in double quotes"),
        (b'\xef\xbb\xbf{"sinks": [}', ":1:12: not JSON: expecting value"),
        (b'{"sinks": [],\n "\xff": 1}', ":2:3: not UTF-8: invalid start byte"),
    ],
)
def test_what_is_no_json_is_refused_with_line_and_column(tmp_path: Path, content: bytes, said: str) -> None:
    assert refusal(tmp_path, content)[0] == said


@pytest.mark.parametrize(
    ("content", "path", "said"),
    [
        ([], "$", "expected `object`, got `array`"),
        ({}, "$", "the field 'sinks' is missing"),
        ({"sinks": []} | {"stripp": True}, "$", "there is no field 'stripp'; did you mean 'strip'?"),
        ({"sinks": {}}, "$.sinks", "expected `array`, got `object`"),
        ({"sinks": [], "strip": 1}, "$.strip", "expected `bool`, got `int`"),
        ({"sinks": [{}]}, "$.sinks[0]", f"the field 'type' is missing; there are {TYPES}"),
        ({"sinks": [{"type": "store"}]}, "$.sinks[0]", "the field 'topic' is missing"),
        ({"sinks": [{"type": "s3"}]}, "$.sinks[0]", f"there is no type 's3'; there are {TYPES}"),
        (
            {"sinks": [{"type": "store", "path": "", "topic": "t"}]},
            "$.sinks[0].path",
            "expected `str` of length >= 1",
        ),
        (
            {"sinks": [{"type": "store", "path": "a", "topic": "t", "max_file_bytes": 1}]},
            "$.sinks[0].max_file_bytes",
            "expected `int` >= 1024",
        ),
    ],
)
def test_what_is_no_such_config_is_refused_with_its_path(tmp_path: Path, content: Any, path: str, said: str) -> None:
    rest, error = refusal(tmp_path, json.dumps(content).encode())

    assert rest == f"{path}: {said}"
    assert error.path == path


def test_a_wrong_type_key_of_a_config_without_variants_lists_none(tmp_path: Path) -> None:
    assert refusal(tmp_path, b'{"type": 5}', Plain)[0] == "$.type: expected `str`, got `int`"


def test_a_wrong_inner_value_names_its_whole_path(tmp_path: Path) -> None:
    assert refusal(tmp_path, b'{"inner": {"size": "big"}}', Plain)[0] == "$.inner.size: expected `int`, got `str`"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_wrong_value_below_any_key_names_its_whole_path_too(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "broker.json"
    path.write_bytes(mark + b'{"sinks": [], "records": [{"stream": "users", "mask": {"e\\nmail": "sha256"}}]}')
    with pytest.raises(ConfigError) as caught:
        load(path, BrokerConfig)
    assert str(caught.value).startswith(f"{path}: $.records[0].mask.e")
    assert "'sha256' needs options" in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory") as refused:
        load(tmp_path / "none.json", BrokerConfig)
    assert str(tmp_path / "none.json") in str(refused.value)


def test_a_path_that_no_system_takes_is_refused_in_one_printable_line() -> None:
    with pytest.raises(ConfigError) as refused:
        load("a\0b", BrokerConfig)
    assert str(refused.value).isprintable()


def test_a_data_file_given_by_mistake_is_refused_by_its_size(tmp_path: Path) -> None:
    assert "is this the right file?" in refusal(tmp_path, b" " * (MAX_CONFIG_BYTES + 1))[0]


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    assert "nested too deep" in refusal(tmp_path, b'{"a":' * 100_000, dict[str, Any])[0]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_is_in_the_file_the_error_is_one_printable_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    said = ""
    try:
        load(file, Plain)
    except ConfigError as error:
        said = str(error)
    assert said.isprintable()


@pytest.mark.parametrize("wrong", [1, None, ["x"], {}])
def test_the_address_of_a_schema_is_a_string(tmp_path: Path, wrong: object) -> None:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps({"$schema": wrong, "name": "x"}))
    with pytest.raises(ConfigError, match=r"\$\.\$schema: expected the address of a schema, not "):
        load(path, Plain)


def test_an_error_is_one_line_also_for_a_path_with_newlines(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "a\nb\x1b[2J.json", Plain)
    assert "a\\nb\\x1b[2J.json" in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_pipe_can_be_read_again(tmp_path: Path) -> None:
    """Given ``<(command)`` as the config, then each reading has what the command wrote."""
    command = f'{sys.executable} -m balog check <(echo \'{{"sinks": [{{"type": "pigeon"}}]}}\')'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert "$.sinks[0]: there is no type 'pigeon'" in done.stdout + done.stderr
    assert done.returncode == 2
