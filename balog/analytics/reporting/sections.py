"""The page's lists: failures, runs, streams, requests, metrics, waiting, channels, bad lines."""

from __future__ import annotations

from collections.abc import Mapping

from balog.analytics.reporting.charts import Chart, outside_in_words, runs_shown
from balog.analytics.reporting.formats import amount, count, seconds, size, span
from balog.analytics.reporting.markup import cell, head_cell, moment, section, shown_of, table, text_cell, words
from balog.analytics.reporting.model import (
    ChannelStats,
    Failure,
    Outside,
    Report,
    RequestStats,
    RunStats,
    StreamStats,
    Throughput,
)

__all__ = [
    "MOST_FAILURES",
    "MOST_ROWS_SHOWN",
    "MOST_RUNS",
    "channels",
    "failures",
    "metrics",
    "quarantine",
    "requests",
    "runs",
    "streams",
    "throughput",
    "waiting",
]

MOST_RUNS = 200
MOST_FAILURES = 100
MOST_ROWS_SHOWN = 200
"""So many rows are in the page; ``--json`` has more."""

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None)
_MARKS = {"succeeded": "✓", "failed": "✕", "unknown": "?"}

Charts = Mapping[str, Chart]


def failures(report: Report, anchors: Mapping[str, str]) -> str:
    """Give failures, new ones first; ``anchors`` are those of the runs in the page."""
    if not report.failures:
        return ""
    compared = report.compared is not None and report.compared.before is not None
    most = max(failure.events for failure in report.failures) or 1
    rows = [
        f'<tr id="f-{words(one.fingerprint)}">'
        + head_cell(_failure(one, anchors))
        + cell(one.events, count(one.events), part=one.events / most)
        + (cell(one.now, count(one.now)) + cell(one.before, count(one.before)) if compared else "")
        + f"<td>{moment(one.first)}</td><td>{moment(one.last)}</td>"
        + f"<td>{'<br>'.join(words(name) for name in one.channels[:3])}{_and_more(one.channels, 3)}</td></tr>"
        for one in report.failures[:MOST_FAILURES]
    ]
    heads = ["failure", "#events", *(["#now", "#before"] if compared else []), "first seen", "last seen", "channels"]
    note = shown_of(len(rows), report.totals.get("failures", 0), "failures")
    lead = "Errors that say the same but for numbers, ids, times, paths and quoted values are one failure."
    return section("failures", "Failures", table("failures", heads, rows, "Failures"), note=f"{lead} {note}".strip())


def _failure(one: Failure, anchors: Mapping[str, str]) -> str:
    new = '<b class="new">new</b> ' if one.new else ""
    kind = f"<code>{words(one.error_type)}</code> " if one.error_type else ""
    parts = []
    if one.example is not None:
        parts.append(f"<dt>example</dt><dd>{words(one.example.message)}</dd>")
        parts.append(
            f"<dt>event</dt><dd><code>{words(one.example.id)}</code>, {moment(one.example.timestamp, exact=True)}</dd>"
        )
    if one.runs:
        shown = ", ".join(_run_link(run_id, anchors) for run_id in one.runs[:8])
        parts.append(f"<dt>runs</dt><dd>{shown}{_and_more(one.runs, 8)}</dd>")
    parts.append(f"<dt>fingerprint</dt><dd><code>{words(one.fingerprint)}</code></dd>")
    more = f'<details><summary>example, runs</summary><dl class="more">{"".join(parts)}</dl></details>'
    return f"{new}{kind}{words(one.message)}{more}"


def _run_link(run_id: str, anchors: Mapping[str, str]) -> str:
    anchor = anchors.get(run_id)
    code = f"<code>{words(run_id)}</code>"
    return f'<a href="#{anchor}">{code}</a>' if anchor else code


def _and_more(names: list[str], shown: int) -> str:
    return f" and {count(len(names) - shown)} more" if len(names) > shown else ""


def runs(report: Report, charts: Charts, anchors: Mapping[str, str]) -> str:
    """Give the latest runs; of each outcome alone on choice, by style and without a script."""
    if not report.runs:
        return ""
    known = {one.fingerprint for one in report.failures[:MOST_FAILURES]}
    shown = report.runs[:MOST_RUNS]
    rows = [_run(run, anchors[run.run_id], known) for run in shown]
    outcomes = [name for name in _MARKS if any(_outcome(run) == name for run in shown)]
    choice = ""
    if len(outcomes) > 1:
        boxes = "".join(
            f'<label><input type="radio" name="outcome" id="only-{name}"{" checked" if name == "all" else ""}> {name} '
            f"<small>{count(number)}</small></label>"
            for name, number in (
                ("all", len(shown)),
                *((name, sum(_outcome(run) == name for run in shown)) for name in outcomes),
            )
        )
        choice = f'<fieldset class="choice"><legend>Runs by outcome</legend>{boxes}</fieldset>'
    heads = ("run", "applications", "started", "#duration", "outcome", "#records", "#bytes", "#events", "#errors")
    outside = runs_shown(report)[1]
    far = f"The chart leaves out {count(outside)} that started outside of its time." if outside else ""
    note = f"{shown_of(len(rows), report.totals.get('runs', 0), 'runs')} {far}".strip()
    return section("runs", "Runs", choice, table("runs", heads, rows, "Runs"), chart=charts.get("runs"), note=note)


def _outcome(run: RunStats) -> str:
    return run.outcome if run.outcome in _MARKS else "unknown"


def _run(run: RunStats, anchor: str, known: set[str]) -> str:
    links = " ".join(
        f'<a href="#f-{words(one)}" title="the failure {words(one)}">{words(one[:6])}</a>'
        for one in run.failures[:5]
        if one in known
    )
    if run.streams:
        lines = "".join(
            f"<dt>{words(one.stream)}</dt><dd>{count(one.records)} records, {size(one.bytes)}</dd>"
            for one in run.streams[:20]
        )
        what = "1 stream" if len(run.streams) == 1 else f"{count(len(run.streams))} streams"
        below = f'<details><summary>{what}</summary><dl class="more">{lines}</dl></details>'
    else:
        below = ""
    why = f'<small class="why">{words(run.problem)}</small>' if run.problem else ""
    below_errors = f"<br><small>{links}</small>" if links else ""
    code = f" <small>exit {run.exit_code}</small>" if run.exit_code else ""
    kind = _outcome(run)
    return (
        f'<tr id="{anchor}" class="{kind}">'
        + head_cell(f"<code>{words(run.run_id)}</code>{below}")
        + text_cell(", ".join(run.applications))
        + f"<td>{moment(run.started, exact=True)}</td>"
        + cell(run.duration, span(run.duration))
        + f'<td><span class="outcome"><i aria-hidden="true">{_MARKS[kind]}</i> {words(run.outcome)}</span>'
        + f"{code}{why}</td>"
        + cell(run.records, count(run.records))
        + cell(run.bytes, size(run.bytes))
        + cell(run.events, count(run.events))
        + cell(run.errors, count(run.errors), "bad" if run.errors else "").replace("</td>", f"{below_errors}</td>")
        + "</tr>"
    )


def throughput(report: Report, charts: Charts) -> str:
    """Give what passed over time, the table folded."""
    listed_rows: list[tuple[str, Throughput | Outside]] = [
        *((_ends(one), one) for one in report.outside if one.side == "before"),
        *((moment(one.at), one) for one in report.throughput),
        *((_ends(one), one) for one in report.outside if one.side == "after"),
    ]
    if len(listed_rows) < 2:
        return ""
    most = max(one.events for _, one in listed_rows)
    rows = [
        "<tr>"
        + head_cell(when)
        + cell(one.events, count(one.events), part=one.events / most)
        + cell(one.errors, count(one.errors), "bad" if one.errors else "")
        + cell(one.records, count(one.records))
        + "</tr>"
        for when, one in listed_rows
    ]
    listed = table("throughput", ("from", "#events", "#errors", "#records"), rows, "Throughput")
    folded = f"<details><summary>as a table</summary>{listed}</details>"
    sentences = [words(sentence) for sentence in outside_in_words(report)]
    note = f"{'; '.join(sentences)}. All numbers and the table count them." if sentences else ""
    return section("throughput", "Throughput", folded, chart=charts.get("throughput"), note=note)


def _ends(one: Outside) -> str:
    return f"{moment(one.first)} to {moment(one.last)}"


def streams(report: Report) -> str:
    """Give streams, those that took the longest first."""
    if not report.streams:
        return ""
    shown = report.streams[:MOST_ROWS_SHOWN]
    most = max((one.seconds or 0 for one in shown), default=0) or 1
    rows = [
        "<tr>"
        + head_cell(words(one.stream))
        + text_cell(", ".join(one.applications))
        + cell(one.seconds, "–" if one.seconds is None else span(one.seconds), part=(one.seconds or 0) / most)
        + text_cell(one.timer)
        + cell(one.p50, seconds(one.p50))
        + cell(one.p95, seconds(one.p95))
        + _compared(one)
        + cell(one.records, count(one.records))
        + cell(one.rate, "–" if one.rate is None else f"{amount(one.rate)}/s")
        + cell(one.bytes, size(one.bytes))
        + "</tr>"
        for one in shown
    ]
    heads = (
        "stream",
        "applications",
        "#time",
        "in",
        "#p50",
        "#p95",
        "#p95 now / before",
        "#records",
        "#rate",
        "#bytes",
    )
    note = shown_of(len(rows), len(report.streams), "streams")
    return section("streams", "Slowest streams", table("streams", heads, rows, "Slowest streams"), note=note)


def _compared(one: StreamStats | RequestStats) -> str:
    if one.p95_now is None or one.p95_before is None:
        return cell(None, "–")
    mark = " bad" if one.slower else ""
    return f'<td class="number{mark}">{seconds(one.p95_now)} / {seconds(one.p95_before)}</td>'


def requests(report: Report) -> str:
    """Give HTTP requests by endpoint and status."""
    if not report.requests:
        return ""
    shown = report.requests[:MOST_ROWS_SHOWN]
    most = max(one.requests for one in shown)
    rows = [
        "<tr>"
        + head_cell(words(one.endpoint))
        + f'<td class="{_status(one.status)}">{words(one.status)}</td>'
        + cell(one.requests, count(one.requests), part=one.requests / most)
        + cell(one.p50, seconds(one.p50))
        + cell(one.p95, seconds(one.p95))
        + cell(one.p99, seconds(one.p99))
        + _compared(one)
        + "</tr>"
        for one in shown
    ]
    heads = ("endpoint", "status", "#requests", "#p50", "#p95", "#p99", "#p95 now / before")
    note = shown_of(len(rows), len(report.requests), "of these")
    return section("requests", "HTTP requests", table("requests", heads, rows, "HTTP requests"), note=note)


def _status(status: str | None) -> str:
    return "bad" if status is not None and (status[:1] in ("4", "5") or status == "failed") else ""


def metrics(report: Report, charts: Charts) -> str:
    """Give metrics; timers in seconds."""
    if not report.metrics:
        return ""
    rows = []
    for one in report.metrics[:MOST_ROWS_SHOWN]:
        shown = seconds if one.type == "timer" else amount
        numbers = [cell(value, shown(value)) for value in (one.sum, one.p50, one.p95, one.p99)]
        rows.append(
            f"<tr>{head_cell(words(one.metric))}{text_cell(one.type)}{cell(one.count, count(one.count))}"
            f"{''.join(numbers)}</tr>"
        )
    heads = ("metric", "type", "#count", "#sum", "#p50", "#p95", "#p99")
    note = shown_of(len(rows), len(report.metrics), "metrics")
    chart = charts.get("timers")
    return section("metrics", "Durations and metrics", table("metrics", heads, rows, "Metrics"), chart=chart, note=note)


def waiting(report: Report) -> str:
    """Give the side that each stage of pipes waited for."""
    if not report.waiting:
        return ""
    rows = [
        "<tr>"
        + head_cell(words(one.stage))
        + cell(one.read, span(one.read), part=one.read / ((one.read + one.write) or 1))
        + cell(one.write, span(one.write), part=one.write / ((one.read + one.write) or 1))
        + f"<td>{words(one.slow)}</td></tr>"
        for one in report.waiting[:MOST_ROWS_SHOWN]
    ]
    heads = ("stage", "#waited for input", "#waited for output", "what is slow stands")
    return section("waiting", "Waiting side", table("waiting", heads, rows, "Waiting side"))


def channels(report: Report, charts: Charts) -> str:
    """Give events by channel and level."""
    if not report.channels:
        return ""
    by_name: dict[str | None, list[ChannelStats]] = {}
    for row in report.channels:
        by_name.setdefault(row.channel, []).append(row)
    levels = [level for level in _LEVELS if any(_level(row) == level for row in report.channels)]
    rows = []
    for name, found in list(by_name.items())[:MOST_ROWS_SHOWN]:
        total, errors = sum(row.events for row in found), sum(row.errors for row in found)
        of = {level: sum(row.events for row in found if _level(row) == level) for level in levels}
        cells = [cell(number, count(number) if number else "·") for number in of.values()]
        ends = [cell(total, count(total)), cell(errors, count(errors), "bad" if errors else "")]
        last = max((row.last for row in found if row.last is not None), default=None)
        rows.append(f"<tr>{head_cell(words(name))}{''.join([*cells, *ends])}<td>{moment(last)}</td></tr>")
    heads = ("channel", *(f"#{level or 'no level'}" for level in levels), "#events", "#errors", "last")
    note = shown_of(len(rows), len(by_name), "channels")
    listed = table("channels", heads, rows, "Channels")
    return section("channels", "Channels", listed, chart=charts.get("channels"), note=note)


def _level(row: ChannelStats) -> str | None:
    return row.level if row.level in _LEVELS else None


def quarantine(report: Report) -> str:
    """Give bad lines by what is wrong with them."""
    if not report.quarantine:
        return ""
    rows = [
        "<tr>"
        + head_cell(words(bad.reason))
        + cell(bad.lines, count(bad.lines))
        + f"<td><code>{words(bad.file)}</code></td>"
        + cell(bad.offset, count(bad.offset))
        + "</tr>"
        for bad in report.quarantine[:MOST_ROWS_SHOWN]
    ]
    note = "Lines that are not events. They are left out of everything above; the offset is in bytes, decompressed."
    heads = ("reason", "#lines", "first in file", "#at byte")
    return section("quarantine", "Bad lines", table("quarantine", heads, rows, "Bad lines"), note=note)
