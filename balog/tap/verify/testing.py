"""Pytest support for any tap: one verification, one test per rule. Requires pytest.

::

    @pytest.fixture(scope="module")
    def tap_command():
        return [sys.executable, "-m", "tap_cool", "--config", "config.json"]


    class TestTapCool(TapPractices):
        pass

To check all rules in one test, assert on the report of ``balog.tap.verify.verify``.
"""

from __future__ import annotations

import warnings

import pytest

from balog.tap.verify.report import VerifyReport
from balog.tap.verify.rules import CHECKS
from balog.tap.verify.runs import Options

__all__ = ["TapPractices", "TapWarning"]


class TapWarning(UserWarning):
    """A tap breaks a rule of severity ``warning`` or ``advice``."""


class TapPractices:
    """One test per rule. Inherit from it in a class ``Test…``, and define a fixture ``tap_command``.

    The fixture returns the tap's command line with its config and has the scope ``class`` or wider. The fixture
    ``tap_report`` of balog's pytest plugin verifies the tap once per class.

    A broken rule of severity ``error`` fails its test. Other broken rules warn with ``TapWarning``;
    ``-W error::balog.tap.verify.testing.TapWarning`` turns warnings into failures. Rules that cannot be judged are
    skipped.

    Attributes:
        options: limits and selection of rules; tests of other rules are skipped.
    """

    options = Options()

    @pytest.mark.parametrize("rule", list(CHECKS))
    def test_practice(self, tap_report: VerifyReport, rule: str) -> None:
        """The tap follows the rule."""
        findings = [finding for finding in tap_report.findings if finding.rule.id == rule]
        if not findings:
            pytest.skip("deselected by the options")
        if findings[0].outcome == "skipped":
            pytest.skip(f"not judged: {findings[0].detail}")
        if findings[0].outcome == "passed":
            return
        details = "; ".join(f"{each.stream}: {each.detail}" if each.stream else each.detail for each in findings)
        text = f"{CHECKS[rule].rule.title} {details}. {CHECKS[rule].rule.remedy}"
        if any(each.rule.severity == "error" for each in findings):
            pytest.fail(text, pytrace=False)
        warnings.warn(text, TapWarning, stacklevel=1)
