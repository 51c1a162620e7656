"""The rules, one module per subject. ``CHECKS`` has all of them."""

from balog.verify.rules import discovery, metadata, selection  # noqa: I001  # in the order of a report
from balog.verify.rules import messages, records, keys
from balog.verify.rules import state, resumption
from balog.verify.rules import interruption, failures, secrets, log_lines, memory
from balog.verify.rules.registration import CHECKS, Check, Violation

__all__ = [
    "CHECKS",
    "Check",
    "Violation",
    "discovery",
    "failures",
    "interruption",
    "keys",
    "log_lines",
    "memory",
    "messages",
    "metadata",
    "records",
    "resumption",
    "secrets",
    "selection",
    "state",
]
