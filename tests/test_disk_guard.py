"""A test run on a full disk stops with one line; otherwise each later test would fail for a reason of its own."""

import shutil
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("free", "stops"), [(conftest.FREE - 1, True), (conftest.FREE, False)])
def test_a_run_stops_before_the_disk_is_full(monkeypatch: pytest.MonkeyPatch, free: int, stops: bool) -> None:
    item: Any = SimpleNamespace(session=SimpleNamespace(shouldstop=False))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, free))
    conftest.pytest_runtest_setup(item)
    assert ("less than 300 MB of disk are free" in str(item.session.shouldstop)) == stops


def test_only_the_files_of_failed_tests_stay(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("tmp_path_retention_policy") == "failed"
