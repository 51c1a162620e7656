"""``balog tap verify``: check whether any tap follows Singer's specification and practices.

``process`` runs the tap as a pipeline would, ``output_reader`` records its output, ``trials`` has all runs, ``rules``
judge them, and ``report`` computes the score. For tests of a tap, see ``balog.tap.verify.testing``.
"""

from balog.tap.verify.report import VerifyReport
from balog.tap.verify.results import RuleResult, VerifyRule
from balog.tap.verify.runs import Options
from balog.tap.verify.verification import verify

__all__ = ["Options", "RuleResult", "VerifyReport", "VerifyRule", "verify"]
