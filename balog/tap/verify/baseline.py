"""Baselines: the known findings of a tap, so that only new ones fail."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from balog.common.errors import ConfigError
from balog.tap.verify.results import RuleResult

_CHANGING = re.compile(
    r"(?:; )?said: .*|a traceback, and no line at ERROR or CRITICAL: .*|, and no line says why.*|; the last: .*|"
    r",? in the run '[^']*'|, the first (?:in line|is record) \d+|\d+"
)
"""Parts of a detail that differ from run to run, though the finding is the same."""


class KnownFinding(Struct, frozen=True, kw_only=True):
    """A finding of a baseline: its fingerprint, and what a reader wants to see of it."""

    fingerprint: str
    rule: str
    severity: str = ""
    stream: str = ""
    detail: str = ""


class Baseline(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of ``--baseline``: the tap's program, and its known findings."""

    version: str = "1.0.0"
    tap: str = ""
    findings: list[KnownFinding]

    def encode(self) -> bytes:
        """Return the file's content: one finding a line, in a stable order."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


class BaselineComparison(Struct, frozen=True, kw_only=True):
    """A report compared with a baseline.

    Attributes:
        new: the failed results that the baseline does not have.
        known: those that it has.
        gone: the findings of the baseline that a judged rule did not repeat.
    """

    new: list[RuleResult]
    known: list[RuleResult]
    gone: list[KnownFinding]


def fingerprint(result: RuleResult) -> str:
    """Return a text that is the same for the same finding of other runs: of rule, stream and what does not change."""
    parts = (result.rule.id, result.stream, _CHANGING.sub("#", result.detail))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def baseline_of(tap: str, failed: Sequence[RuleResult]) -> Baseline:
    """Return the baseline of a tap that has these failed results."""
    known = {
        fingerprint(result): KnownFinding(
            fingerprint=fingerprint(result),
            rule=result.rule.id,
            severity=result.rule.severity,
            stream=result.stream,
            detail=result.detail,
        )
        for result in failed
    }
    return Baseline(tap=tap, findings=sorted(known.values(), key=lambda item: (item.rule, item.stream, item.detail)))


def compare(results: Sequence[RuleResult], failed: Sequence[RuleResult], baseline: Baseline) -> BaselineComparison:
    """Return which failed results are new, which are known, and which findings of the baseline are gone."""
    known, repeated = {finding.fingerprint for finding in baseline.findings}, set(map(fingerprint, failed))
    judged = {result.rule.id for result in results if result.outcome != "skipped"}
    return BaselineComparison(
        new=[result for result in failed if fingerprint(result) not in known],
        known=[result for result in failed if fingerprint(result) in known],
        gone=[each for each in baseline.findings if each.rule in judged and each.fingerprint not in repeated],
    )


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        ConfigError: the file cannot be read, or is no baseline.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", source=f"--baseline {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = f"is no baseline: {error}; write one with --write-baseline"
        raise ConfigError(text, source=f"--baseline {path}") from None
