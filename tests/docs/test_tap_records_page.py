"""The page about records of taps: what it shows is what happens, row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from balog.tap.catalog import CatalogEntry
from balog.tap.errors import RecordError
from balog.tap.records import Policy, Transformer
from tests.documentation import page_text, run_task

TEXT = page_text("tap-records")
TABLE = TEXT.split("| type in the schema |")[1].split("\n\n")[0]
ROWS = re.findall(r"^\| `(.*?)` \| `(.*?)` \| (?:`(.*?)`|(quarantined)[^|]*) \|$", TABLE, re.MULTILINE)


def test_its_commands_print_what_it_shows(tmp_path: Path) -> None:
    assert run_task("tap-records.md", tmp_path)


def test_no_row_of_the_table_is_passed_over() -> None:
    assert len(ROWS) == TABLE.count("\n") - 1 > 20


@pytest.mark.parametrize(("schema", "given", "written", "aside"), ROWS)
def test_a_value_becomes_what_the_table_says(schema: str, given: str, written: str, aside: str) -> None:
    properties = {"v": msgspec.json.decode(schema)}
    transform = Transformer(CatalogEntry(tap_stream_id="a", stream="a", schema={"properties": properties}))
    record: dict[str, Any] = {"v": eval(given)}
    if aside:
        with pytest.raises(RecordError):
            transform(record)
        return
    made = transform(record)
    assert made is not None
    text = msgspec.json.Encoder(decimal_format="number").encode(made["v"]).decode()
    assert text.replace(",", ", ") == written if written.startswith("[") else text == written


def test_it_has_every_policy() -> None:
    assert set(re.findall(r'^\| `"(\w+)"`', TEXT, re.MULTILINE)) == set(get_args(Policy))
