"""The rules, by what they look at. ``CHECKS`` has them all."""

from balog.tap.verify.rules import discovering, publishing, selecting  # noqa: I001  # in the order of a report
from balog.tap.verify.rules import writing, validating, identifying
from balog.tap.verify.rules import bookmarking, resuming
from balog.tap.verify.rules import interrupting, refusing, leaking, telling, remembering
from balog.tap.verify.rules.registering import CHECKS, Check, Problem

__all__ = [
    "CHECKS",
    "Check",
    "Problem",
    "bookmarking",
    "discovering",
    "identifying",
    "interrupting",
    "leaking",
    "publishing",
    "refusing",
    "remembering",
    "resuming",
    "selecting",
    "telling",
    "validating",
    "writing",
]
