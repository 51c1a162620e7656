"""The page's top: how it is now against before, and what is worth a look."""

from __future__ import annotations

from balog.analytics.reporting.comparison import change_in_words
from balog.analytics.reporting.formats import amount, count, length, minute, seconds, span
from balog.analytics.reporting.markup import moment, number, section, words
from balog.analytics.reporting.model import HealthFinding, HealthStat, Report
from balog.analytics.reporting.periods import HOUR, Period

__all__ = ["health", "health_in_words", "period_in_words"]

_ARROWS = {"worse": "▲", "better": "▼"}


def health(report: Report) -> str:
    """Give the section of the health, with what was found first."""
    if report.compared is None:
        return ""
    tiles = "".join(_tile(figure, compared=report.compared.before is not None) for figure in report.health)
    parts = [f'<p class="note">{health_in_words(report)}</p>', _findings(report), f'<dl class="facts">{tiles}</dl>']
    return section("health", "Health", *parts)


def health_in_words(report: Report) -> str:
    """Say which times are compared."""
    if report.compared is None:
        return "There is no event."
    now, before = report.compared.now, report.compared.before
    if before is None:
        return f"{period_in_words(now)}; there is no time before it to compare with"
    gap = "" if before.until == now.since else f", {length((now.since - before.since) / HOUR)} earlier"
    return f"{period_in_words(now)}, against {period_in_words(before)}{gap}"


def period_in_words(period: Period) -> str:
    """Write a time: ``2026-10-09 00:00 to 2026-10-10 00:00 (24 hours)``."""
    hours = period.length / HOUR
    return f"{minute(period.since)} to {minute(period.until)} ({length(hours)})"


def _tile(figure: HealthStat, *, compared: bool) -> str:
    if figure.unit == "seconds":
        shown = span(figure.now) if figure.now is not None and figure.now >= 60 else seconds(figure.now)
    else:
        shown = count(round(figure.now)) if figure.now is not None and figure.now < 1e7 else amount(figure.now)
    change = ""
    if compared and figure.now is not None and figure.before is not None:
        arrow = _ARROWS.get(figure.verdict, "") if figure.now != figure.before else ""
        if arrow and figure.before is not None:
            arrow = "▲" if figure.now > figure.before else "▼"
        sign = f'<i aria-hidden="true">{arrow}</i> ' if arrow else ""
        change = f"{sign}{words(change_in_words(figure))}"
    bad = "bad" if figure.verdict == "worse" else "good" if figure.verdict == "better" else ""
    return (
        f'<div class="{bad}"><dt>{words(figure.name)}</dt>'
        f"<dd>{number(figure.now, shown)}<small>{change}</small></dd></div>"
    )


def _findings(report: Report) -> str:
    if not report.findings:
        compared = report.compared is not None and report.compared.before is not None
        return '<p class="calm">Nothing new, nothing slower, nothing silent.</p>' if compared else ""
    items = "\n".join(_finding(finding) for finding in report.findings)
    return f'<ul class="findings">\n{items}\n</ul>'


def _finding(finding: HealthFinding) -> str:
    since = f" <small>since {moment(finding.since)}</small>" if finding.since is not None else ""
    text = words(finding.words)
    linked = f'<a href="#{words(finding.link)}">{text}</a>' if finding.link else text
    return f'<li class="{finding.kind}">{linked}{since}</li>'
