"""For tests of a tap, of this toolkit or not: verified once, each practice a test of its own. Needs pytest.

::

    @pytest.fixture(scope="module")
    def tap_command():
        return [sys.executable, "-m", "tap_cool", "--config", "config.json"]


    class TestTapCool(TapPractices):
        pass

``assert_verified(command)`` is the same in one test.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pytest

from balog.verify.options import Options
from balog.verify.report import VerifyReport
from balog.verify.rules import CHECKS
from balog.verify.text import as_text
from balog.verify.verification import verify

__all__ = ["TapPractices", "TapWarning", "assert_verified"]


class TapWarning(UserWarning):
    """A tap breaks a practice that is no error."""


def assert_verified(command: Sequence[str], options: Options | None = None, *, fail_under: int = 0) -> VerifyReport:
    """Verify a tap; see ``balog.verify.verify``.

    Args:
        fail_under: the score that it must have.

    Raises:
        AssertionError: a rule of severity ``error`` is broken, or the score is less; has the report.
    """
    report = verify(command, options)
    if not report.is_clean or report.score < fail_under:
        raise AssertionError("\n".join(line for line, _ in as_text(report)))
    return report


class TapPractices:
    """A test for each rule. Make a class of it whose name begins with ``Test``, beside a fixture ``tap_command``.

    The fixture gives the tap's command line with its config; its scope is ``class`` or wider. The tap is verified once
    for the class, by the fixture ``tap_report`` of balog's pytest plugin.

    A rule of severity ``error`` that is broken fails its test, another warns with ``TapWarning`` (which pytest turns
    into failures with ``-W error::balog.verify.testing.TapWarning``); one that cannot be judged is skipped.

    Attributes:
        options: how far to go; tests of rules that it leaves out are skipped.
    """

    options = Options()

    @pytest.mark.parametrize("rule", list(CHECKS))
    def test_practice(self, tap_report: VerifyReport, rule: str) -> None:
        """The tap keeps to this rule."""
        found = [finding for finding in tap_report.findings if finding.rule.id == rule]
        if not found:
            pytest.skip("left out by the options")
        if found[0].outcome == "skipped":
            pytest.skip(found[0].detail)
        if found[0].outcome == "passed":
            return
        details = "; ".join(f"{each.stream}: {each.detail}" if each.stream else each.detail for each in found)
        text = f"{CHECKS[rule].rule.title} {details}. {CHECKS[rule].rule.remedy}"
        if any(each.rule.severity == "error" for each in found):
            pytest.fail(text, pytrace=False)
        warnings.warn(text, TapWarning, stacklevel=1)
