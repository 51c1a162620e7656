"""The blocks of pages of the reference run as they are, and do what the pages say."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from balog.registry.comparing import Mode
from tests.documentation import page_text, run_task


def test_configs_are_checked(tmp_path: Path) -> None:
    *_, refused, written = run_task("configs.md", tmp_path)
    assert refused.endswith("exit code 2\n")
    assert written == ""
    assert '"BrokerConfig"' in (tmp_path / "broker.schema.json").read_text(encoding="utf-8")


def test_records_have_the_schema_and_the_form_that_the_page_says(tmp_path: Path) -> None:
    (printed,) = run_task("records.md", tmp_path, compares=False)
    assert printed.partition("\n")[2] == (tmp_path / "expected").read_text()
    (kept,) = (tmp_path / "quarantine.jsonl").read_bytes().splitlines()
    assert json.loads(kept)["raw"] == (tmp_path / "users.singer").read_text().splitlines()[-1]


def test_payloads_are_validated_by_registered_schemas(tmp_path: Path) -> None:
    first, second = run_task("registry.md", tmp_path, compares=False)
    assert "2 read, all valid" in first
    assert '$.id is not of type "integer"' in second


def test_versions_of_schemas_are_compared(tmp_path: Path) -> None:
    said, _ = run_task("evolution.md", tmp_path)
    assert "1 read, all valid" in said
    assert said.endswith(
        "not compatible (full_transitive); the least version is 2.0.0, and 1.1.0 is too small a step\n"
    )
    table = page_text("evolution").split("## Modes")[1].split("##")[0]
    assert set(re.findall(r"`([a-z_]+)`", table)) == set(get_args(Mode))


def test_protobuf_payloads_are_validated(tmp_path: Path) -> None:
    assert run_task("protobuf.md", tmp_path)


@pytest.mark.spark
def test_filters_are_applied(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    said = "".join(run_task("filters.md", tmp_path))
    assert said.count("2 events wanted, 2 written to") == 2
    assert list((tmp_path / "archive" / "big_orders").glob("date=*/*.jsonl.gz"))
