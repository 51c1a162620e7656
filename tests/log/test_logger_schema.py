import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from balog import configure
from balog.common.errors import BalogError

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "config" / "logger.json").read_text(encoding="utf-8"))
)

VALID: list[Any] = [
    {},
    {"$schema": "x"},
    {"output": None, "level": None, "application": None},
    {"output": "stderr", "level": "warn"},
    {"output": []},
    {"output": ["stderr", {"to": "logging", "level": "Fatal", "where": "level >= 'ERROR'"}]},
    {"output": {"to": "file:a"}},
    {"output": {"to": {"type": "topic", "url": "local:t", "topic": "e"}}},
    {"output": [{"to": {"type": "webhook", "url": "https://example.org/hook", "batch": {"events": 5}}}]},
    {"output": "console"},
    {"level": "off", "levels": {"a.*": "DEBUG", "b": "oFF", "*": "exception"}},
    {"levels": {"x" * 1000: "INFO"}},
    {"redact": False},
    {"redact": {"extra_keys": ["pet"]}},
    {"validate": "tag", "strict": True},
]

INVALID: list[Any] = [
    [],
    None,
    "stderr",
    {"outputs": "stderr"},
    {"output": 1},
    {"output": "paper"},
    {"output": ""},
    {"output": "file:"},
    {"output": "Stderr"},
    {"output": "console?tracebacks=plain"},
    {"output": ["stderr", None]},
    {"output": [["stderr"]]},
    {"output": {}},
    {"output": {"to": None}},
    {"output": {"to": "stderr", "levle": "INFO"}},
    {"output": {"to": "stderr", "level": "loud"}},
    {"output": {"to": "stderr", "level": 10}},
    {"output": {"to": "stderr", "where": 1}},
    {"output": {"to": {"type": "paper"}}},
    {"output": {"to": {"url": "local:t"}}},
    {"output": {"to": {"type": "topic", "url": "local:t", "topic": "e", "x": 1}}},
    {"output": {"to": {"type": "topic", "url": 7, "topic": "e"}}},
    {"output": {"to": {"type": "webhook", "url": "https://example.org", "batch": {"events": 0}}}},
    {"output": {"type": "topic", "url": "local:t"}},
    {"level": "loud"},
    {"level": ""},
    {"level": "INFO "},
    {"level": "ınfo"},
    {"level": 20},
    {"levels": []},
    {"levels": None},
    {"levels": {"": "INFO"}},
    {"levels": {"a": "loud"}},
    {"levels": {"a": None}},
    {"levels": {"a": 10}},
    {"levels": {"x" * 1001: "INFO"}},
    {"application": 1},
    {"redact": "yes"},
    {"redact": {"keyz": []}},
    {"redact": {"extra_keys": "pet"}},
    {"validate": "maybe"},
    {"validate": None},
    {"strict": "yes"},
    {"callsite": 1},
    {"callsite": [1]},
]


@pytest.fixture(autouse=True)
def folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Run in a folder of its own, and close the outputs."""
    monkeypatch.chdir(tmp_path)
    yield
    configure([])


def is_accepted(document: Any, folder: Path) -> bool:
    """Return whether ``configure`` accepts a document as its file, or does not refuse it in one line."""
    path = folder / "logger.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        configure(config=path)
    except BalogError as error:
        return "\n" in str(error)
    return True


@pytest.mark.parametrize("document", VALID, ids=range(len(VALID)))
def test_both_accept(document: Any, tmp_path: Path) -> None:
    """A valid file passes the schema and configures the logger."""
    assert [error.message for error in SCHEMA.iter_errors(document)] == []
    assert is_accepted(document, tmp_path)


@pytest.mark.parametrize("document", INVALID, ids=range(len(INVALID)))
def test_both_reject(document: Any, tmp_path: Path) -> None:
    """A wrong file fails the schema, and ``configure`` refuses it in one line."""
    assert not SCHEMA.is_valid(document)
    assert not is_accepted(document, tmp_path)


def test_no_part_of_the_schema_takes_any_object() -> None:
    """Each object names its keys, except where the keys are the user's own."""

    def free(part: Any, path: str) -> Iterator[str]:
        if isinstance(part, dict):
            if part.get("type") == "object" and not part.keys() & {"properties", "additionalProperties", "$ref"}:
                yield path
            for key, value in part.items():
                yield from free(value, f"{path}.{key}")
        elif isinstance(part, list):
            for number, value in enumerate(part):
                yield from free(value, f"{path}[{number}]")

    assert [path for path in free(SCHEMA.schema, "$") if path.startswith(("$.$defs.LoggerConfig", "$.$defs.Out"))] == []
