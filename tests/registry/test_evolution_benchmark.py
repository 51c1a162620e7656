"""The benchmark of published cases counts agreement, and ends well where the cases can't be had."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import evolution

OPEN = {"properties": {"a": {"type": "string"}}}
CASES = [
    {
        "description": "widened",
        "original_schema": {"type": "integer"},
        "update_schema": {"type": "number"},
        "compatible": True,
    },
    {
        "description": "added",
        "original_schema": OPEN,
        "update_schema": {"properties": {**OPEN["properties"], "b": {"type": "string"}}},
        "compatible": False,
    },
]  # fmt: skip


def test_agreement_is_counted_and_each_difference_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in evolution.FILES:
        (tmp_path / name).write_text(json.dumps(CASES).replace("}]", "},\n]"))  # a comma too many, as theirs have
    monkeypatch.setattr(sys, "argv", ["evolution", "--cases", str(tmp_path)])

    evolution.main()

    said = capsys.readouterr().out.splitlines()
    assert said[1].split() == [evolution.FILES[0], "2", "of", "2", "1", "of", "2"]
    assert said.count("optional-friendly: compatible: added") == 2


def test_without_the_cases_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evolution", "--cases", str(tmp_path)])

    evolution.main()

    assert capsys.readouterr().out.startswith(f"skipped: {evolution.FILES[0]} can't be had: ")
