"""The report of a verification: results, score, streams and runs, as JSON and as text for terminals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import PurePath
from textwrap import wrap
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.common.text import counted, cut, printable
from balog.tap.verify.baseline import BaselineComparison
from balog.tap.verify.results import GROUPS, RuleResult
from balog.tap.verify.rules.state import advance_of
from balog.tap.verify.runs import SyncRun
from balog.tap.verify.synced_stream import SyncedStream
from balog.tap.verify.trials import Trials
from balog.ui.formats import span

_COLOURS = {"error": "red", "warning": "yellow", "advice": "cyan"}
_MAX_LINE = 1000
_WIDTH = 79


class RuleCounts(Struct, frozen=True, kw_only=True):
    """The number of rules: passed, failed by severity, and skipped."""

    passed: int = 0
    errors: int = 0
    warnings: int = 0
    advice: int = 0
    skipped: int = 0


class StreamReport(Struct, frozen=True, kw_only=True):
    """A stream of the first sync.

    Attributes:
        started_from: the initial bookmark, else the lowest replication value; null without one.
        bookmark: the last bookmark.
        advance: seconds between the two; null if they are not times.
        ratio: ``advance`` per second of the run; below 1 the stream never catches up.
    """

    stream: str
    records: int
    bytes: int
    replication_key: str = ""
    started_from: str | int | float | None = None
    bookmark: str | int | float | None = None
    advance: float | None = None
    ratio: float | None = None


class RunReport(Struct, frozen=True, kw_only=True):
    """A run of the tap.

    Attributes:
        stopped: why the verification ended the run; "" if it did not.
        peak_memory: bytes; 0 where unknown.
    """

    name: str
    seconds: float
    exit_code: int
    records: int = 0
    stopped: str = ""
    peak_memory: int = 0


class VerifyReport(Struct, frozen=True, kw_only=True):
    """The report of a verification.

    Attributes:
        version: the version of this format.
        made: the time, as in RFC 3339.
        tap: the program's name.
        score: 0 to 100, the weight of the passed rules in percent of all judged rules, rounded down.
        groups: the score of each group; null where no rule was judged.
        findings: the results of the rules, in the order of the rules.
        streams: the streams of the first sync.
        runs: the runs in order.
    """

    version: str = "1.0.0"
    made: str
    tap: str
    score: int
    groups: dict[str, int | None]
    counts: RuleCounts
    findings: list[RuleResult]
    streams: list[StreamReport] = field(default_factory=list)
    runs: list[RunReport] = field(default_factory=list)

    @property
    def failed(self) -> list[RuleResult]:
        """The failed results, errors first."""
        order = ("error", "warning", "advice")
        results = [finding for finding in self.findings if finding.outcome == "failed"]
        return sorted(results, key=lambda finding: order.index(finding.rule.severity))

    @property
    def is_clean(self) -> bool:
        """Whether no rule of severity ``error`` failed."""
        return not self.counts.errors

    def encode(self) -> bytes:
        """Return the report as JSON of ``schemas/verify/1.0.0.json``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def write_report(trials: Trials, findings: list[RuleResult]) -> VerifyReport:
    """Return the report of finished runs and results; it makes no run."""
    outcomes = _heaviest(findings)
    broken = [finding.rule.severity for finding in outcomes if finding.outcome == "failed"]
    return VerifyReport(
        made=datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        tap=_name(trials.command.base),
        score=_score(findings) or 0,
        groups={group: _score([finding for finding in findings if finding.rule.group == group]) for group in GROUPS},
        counts=RuleCounts(
            passed=sum(finding.outcome == "passed" for finding in outcomes),
            errors=broken.count("error"),
            warnings=broken.count("warning"),
            advice=broken.count("advice"),
            skipped=sum(finding.outcome == "skipped" for finding in outcomes),
        ),
        findings=findings,
        streams=_streams(trials),
        runs=[
            RunReport(
                name=run.name,
                seconds=round(run.result.seconds, 3),
                exit_code=run.result.code,
                records=run.output.records if isinstance(run, SyncRun) else 0,
                stopped=run.result.stopped,
                peak_memory=run.result.peak_memory,
            )
            for run in trials.made
        ],
    )


def _heaviest(findings: list[RuleResult]) -> list[RuleResult]:
    """Return the heaviest result of each rule."""
    by_weight = sorted(findings, key=lambda finding: finding.rule.weight)
    return list({finding.rule.id: finding for finding in by_weight}.values())


def _score(findings: list[RuleResult]) -> int | None:
    judged = [finding for finding in _heaviest(findings) if finding.outcome != "skipped"]
    whole = sum(finding.rule.weight for finding in judged)
    if not whole:
        return None
    return 100 * sum(finding.rule.weight for finding in judged if finding.outcome == "passed") // whole


def _streams(trials: Trials) -> list[StreamReport]:
    main = "sync by --properties" if trials.is_older else "sync"
    sync = next((run for run in trials.made if isinstance(run, SyncRun) and run.name == main), None)
    return [] if sync is None else [_stream(stream, sync.result.seconds) for stream in sync.output.streams.values()]


def _stream(stream: SyncedStream, seconds: float) -> StreamReport:
    advance = advance_of(stream) if stream.replication_key else None
    return StreamReport(
        stream=stream.name,
        records=stream.records,
        bytes=stream.bytes,
        replication_key=stream.replication_key,
        started_from=_plain(stream.started_from if stream.started_from is not None else stream.lowest),
        bookmark=_plain(stream.bookmark),
        advance=advance,
        ratio=round(advance / seconds, 3) if advance is not None and seconds else None,
    )


def _plain(value: Any) -> str | int | float | None:
    return value if isinstance(value, (str, int, float)) else None


def _name(base: tuple[str, ...]) -> str:
    """Return the name of the program, or of the module or script that Python runs; arguments may hold secrets."""
    name = PurePath(base[0]).name
    words = iter(base[1:] if name.startswith("python") else ())
    for word in words:
        if word == "-m":
            return next(words, name)
        if word in ("-W", "-X"):
            next(words, "")
        elif not word.startswith("-"):
            return PurePath(word).name
        elif word == "-c":
            break
    return name


def as_text(report: VerifyReport, known: BaselineComparison | None = None) -> Iterator[tuple[str, str]]:
    """Yield lines, each with the colour of its severity, or "" for none. With a comparison, known findings are counted.

    Each failed rule appears once, with its violations, remedy and source. Unprintable characters become U+FFFD, so that
    names of a tap cannot control the terminal; lines are cut at 1,000 characters.
    """
    for line, colour in _text_lines(report, known):
        yield printable(cut(line, _MAX_LINE)), colour


def _text_lines(report: VerifyReport, known: BaselineComparison | None) -> Iterator[tuple[str, str]]:
    broken: dict[str, list[RuleResult]] = {}
    for finding in report.failed if known is None else known.new:
        broken.setdefault(finding.rule.id, []).append(finding)
    for findings in broken.values():
        rule = findings[0].rule
        yield f"{rule.severity.upper()} {rule.id}: {_without_marks(rule.title)}", _COLOURS[rule.severity]
        for finding in findings:
            yield f"  - {finding.stream + ': ' if finding.stream else ''}{finding.detail}", ""
        yield f"  do: {_without_marks(rule.remedy)}", ""
        yield f"  source: {rule.source}", ""
        yield "", ""
    for line in (*(_baseline_lines(known) if known else ()), *_not_judged(report), *_stream_lines(report)):
        yield line, ""
    parts = [f"{group} {score}" for group, score in report.groups.items() if score is not None]
    yield ", ".join(parts), ""
    counts = report.counts
    broken_rules = f"{counted(counts.errors, 'error')}, {counted(counts.warnings, 'warning')}, {counts.advice} advice"
    others = f"{counts.passed} rules passed, {counts.skipped} not judged"
    summary = f"{report.tap}: {report.score} of 100; {broken_rules}; {others}"
    yield summary, "green" if report.score == 100 else _COLOURS["error" if counts.errors else "warning"]


def _baseline_lines(known: BaselineComparison) -> Iterator[str]:
    rules = ", ".join(dict.fromkeys(finding.rule.id for finding in known.known))
    in_brackets = f" ({rules})" if rules else ""
    yield f"baseline: {counted(len(known.new), 'new finding')}, {len(known.known)} known{in_brackets}"
    for finding in known.gone:
        yield f"  - gone: {finding.rule}: {f'{finding.stream}: ' if finding.stream else ''}{finding.detail}"
    yield ""


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


def _stream_lines(report: VerifyReport) -> Iterator[str]:
    if not report.streams:
        return
    width = max(len(stream.stream) for stream in report.streams)
    for stream in report.streams:
        line = f"{stream.stream:<{width}}  {stream.records:>9,} records"
        if stream.bookmark is not None:
            line += f"  {stream.replication_key or 'bookmark'} {stream.started_from} → {stream.bookmark}"
        if stream.ratio is not None:
            line += f", 1 s of sync covers {span(stream.ratio)}"
        yield line
    yield ""


def _without_marks(text: str) -> str:
    return text.replace("``", "").replace("`", "")
