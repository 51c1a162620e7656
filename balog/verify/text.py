"""A report as text for terminals: violations and remedies first, then the score."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from balog.verify.report import VerifyReport
from balog.verify.results import RuleResult

__all__ = ["as_text"]

_COLOURS = {"error": "red", "warning": "yellow", "advice": "cyan"}
_MAX_LINE = 1000
_WIDTH = 79


def as_text(report: VerifyReport) -> Iterator[tuple[str, str]]:
    """Yield lines, each with the colour of its severity, or "" for none.

    Each failed rule appears once, with its violations, remedy and source. Unprintable characters become U+FFFD, so that
    names of a tap cannot control the terminal; lines are cut at 1,000 characters.
    """
    for line, colour in _lines(report):
        shown = line[: _MAX_LINE - 1] + "…" if len(line) > _MAX_LINE else line
        yield "".join(char if char.isprintable() else "\ufffd" for char in shown), colour


def _lines(report: VerifyReport) -> Iterator[tuple[str, str]]:
    broken: dict[str, list[RuleResult]] = {}
    for finding in report.failed:
        broken.setdefault(finding.rule.id, []).append(finding)
    for findings in broken.values():
        rule = findings[0].rule
        yield f"{rule.severity.upper()} {rule.id}: {_plain(rule.title)}", _COLOURS[rule.severity]
        for finding in findings:
            yield f"  - {finding.stream + ': ' if finding.stream else ''}{finding.detail}", ""
        yield f"  do: {_plain(rule.remedy)}", ""
        yield f"  source: {rule.source}", ""
        yield "", ""
    yield from ((line, "") for line in _not_judged(report))
    yield from ((line, "") for line in _streams(report))
    parts = [f"{group} {score}" for group, score in report.groups.items() if score is not None]
    yield ", ".join(parts), ""
    counts = report.counts
    summary = (
        f"{report.tap}: {report.score} of 100; {_count(counts.errors, 'error')}, {_count(counts.warnings, 'warning')}, "
        f"{counts.advice} advice; {counts.passed} rules passed, {counts.skipped} not judged"
    )
    yield summary, "green" if report.score == 100 else _COLOURS["error" if counts.errors else "warning"]


def _not_judged(report: VerifyReport) -> Iterator[str]:
    """Yield the skipped rules by reason: a tap that cannot start has the same reason for most rules."""
    reasons: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.outcome == "skipped":
            reasons.setdefault(finding.detail, []).append(finding.rule.id)
    if not reasons:
        return
    yield "not judged:"
    for reason, rules in reasons.items():
        yield f"  - {reason}:"
        yield from wrap(
            ", ".join(rules), _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
    yield ""


def _streams(report: VerifyReport) -> Iterator[str]:
    if not report.streams:
        return
    width = max(len(stream.stream) for stream in report.streams)
    for stream in report.streams:
        line = f"{stream.stream:<{width}}  {stream.records:>9,} records"
        if stream.bookmark is not None:
            line += f"  {stream.replication_key or 'bookmark'} {stream.started_from} → {stream.bookmark}"
        if stream.ratio is not None:
            line += f", {stream.ratio:,.{0 if stream.ratio >= 10 else 2}f} s per second"
        yield line
    yield ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _plain(text: str) -> str:
    return text.replace("``", "").replace("`", "")
