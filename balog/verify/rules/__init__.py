"""The rules, by what they look at. ``CHECKS`` has them all."""

from balog.verify.rules import discovering, publishing, selecting  # noqa: I001  # in the order of a report
from balog.verify.rules import writing, validating, identifying
from balog.verify.rules import bookmarking, resuming
from balog.verify.rules import interrupting, refusing, leaking, telling, remembering
from balog.verify.rules.registering import CHECKS, Check, Problem

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
