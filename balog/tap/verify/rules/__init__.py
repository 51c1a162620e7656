"""The rules, one module per subject. ``CHECKS`` has all of them."""

from balog.tap.verify.rules import discovery, selection  # noqa: F401, I001  # in the order of a report
from balog.tap.verify.rules import messages, state, resumption, failures, observability  # noqa: F401
from balog.tap.verify.rules.registration import CHECKS, Check, Violation

__all__ = ["CHECKS", "Check", "Violation"]
