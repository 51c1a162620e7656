"""Names that are imported when somebody asks for them."""

import importlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["balog", "balog.tap", "balog.tap.schema"])
def test_each_name_of_a_package_is_there_when_asked_for(package: str) -> None:
    module = importlib.import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_a_name_that_is_none_is_told_of_as_python_does() -> None:
    with pytest.raises(AttributeError, match=r"module 'balog.tap' has no attribute 'Tab'"):
        importlib.import_module("balog.tap").Tab  # noqa: B018


def test_what_nobody_asked_for_is_not_imported() -> None:
    known = "'balog.tap.command.tap' in sys.modules"
    program = f"import sys, balog.tap; assert not ({known}); balog.tap.Tap; assert {known}"
    subprocess.run([sys.executable, "-c", program], check=True)
