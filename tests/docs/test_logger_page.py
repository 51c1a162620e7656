"""The page on the logger: its blocks run in order in one folder, and its tables name every option and method."""

import inspect
import json
import re
from pathlib import Path

import balog
from balog.log.config.logger_config import LoggerConfig
from balog.log.logger import EventLogger
from tests.documentation import page_text, run_task

PAGE = page_text("logger")


def test_the_blocks_run_and_write_events(tmp_path: Path) -> None:
    channels = [
        [json.loads(line)["header"]["channel"] for line in printed.splitlines()]
        for printed in run_task("logger.md", tmp_path)
    ]
    assert channels == [["billing", "billing.paid", "billing"], ["singer.http"], ["billing.erp"], ["billing"]]


def test_each_option_of_configure_is_in_the_table() -> None:
    """And the table names no option that does not exist."""
    table = PAGE.partition("## Options of `configure`")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(inspect.signature(balog.configure).parameters)


def test_each_key_of_the_config_file_is_an_option() -> None:
    """The file has the names of the arguments."""
    not_in_file = {"config", "processors"}
    assert set(LoggerConfig.__struct_fields__) == set(inspect.signature(balog.configure).parameters) - not_in_file


def test_the_methods_exist() -> None:
    """Each name in the table is a method of the logger."""
    table = PAGE.partition("## Methods")[2].partition("Each of the methods")[0]
    names = re.findall(r"`(\w+)[`(]", table)
    assert len(names) >= 11
    for name in names:
        assert callable(getattr(EventLogger, name)), name
