"""Rules of observability: version, log lines and metrics for operators, and memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from balog.tap.verify.catalogs import id_of
from balog.tap.verify.output_reader import OutputReader
from balog.tap.verify.rules.registration import RuleSource, Violation, check, check_each
from balog.tap.verify.rules.subjects import require_output, require_whole
from balog.tap.verify.runs import CommandRun, Skip
from balog.tap.verify.trials import Trials

_ENOUGH = 16 * 1024 * 1024  # bytes of records; with fewer, the tap's own size hides growth
_PART = 0.5  # of the records' bytes; records kept as Python objects take several times as much
_HTTP = re.compile("https?://")
_REQUEST = re.compile(r"\b(?:GET|POST|PUT|HEAD|request\w*|fetch\w*|calling|url)\b[^\n]{0,80}https?://", re.IGNORECASE)


def _with_records(trials: Trials) -> list[tuple[str, OutputReader]]:
    run = require_output(trials.sync)
    if run.result.code and not run.result.stopped:
        raise Skip(f"{run.name} failed")
    output = run.output
    if not output.records:
        raise Skip("no records came")
    return [("", output)]


def _unanswered(run: CommandRun) -> Iterator[Violation]:
    if run.result.code or run.result.stopped or not run.output.data.strip():
        yield Violation(run.outcome if run.result.code else "nothing on stdout")


@check("observability", "advice", 1, RuleSource.SDK_TESTS)
def version_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--version`` prints the tap's version.

    Support --version without a config, and write one line to stdout.
    """
    return _unanswered(trials.version)


@check("observability", "advice", 1, RuleSource.SDK_TESTS)
def about_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--about`` describes the tap and its config.

    Support --about without a config, and print the tap's name, settings and streams.
    """
    return _unanswered(trials.about)


@check("observability", "warning", 2, RuleSource.PRACTICE)
def clean_run_has_no_errors(trials: Trials) -> Iterator[Violation]:
    """A successful sync logs no traceback and nothing at ERROR or CRITICAL.

    Log conditions that the tap recovers from at WARNING: an ERROR alerts an operator.
    """
    logs = require_whole(trials.sync).output.logs
    if logs.failures:
        raise Skip("failure-is-not-success reports them")
    count = logs.levels["ERROR"] + logs.levels["CRITICAL"]
    if count:
        last = logs.last_error or logs.last_exception or "a traceback"
        yield Violation(f"{count} such lines; the last: {last}{logs.in_place}", place=logs.place)


@check("observability", "warning", 2, RuleSource.BEST_PRACTICES)
def streams_are_named(trials: Trials) -> Iterator[Violation]:
    """Log lines name each synced stream.

    Log a line with the stream's name when it starts and when it ends.
    """
    [(_, output)] = _with_records(trials)
    for name, stream in output.streams.items():
        entry = trials.entries.get(name)
        names = {name, id_of(entry) if entry is not None else name}
        if stream.records and not any(map(output.logs.mentions, names)):
            yield Violation("no log line names it", name)


@check_each(_with_records, "observability", "advice", 2, RuleSource.METRICS)
def records_are_counted(output: OutputReader) -> Iterator[str]:
    """The tap logs the metric ``record_count``.

    Log METRIC lines of type counter, metric record_count, with the stream in the tag `endpoint` or `stream`.
    """
    if not output.logs.metrics["record_count"]:
        yield "no such metric"


@check("observability", "warning", 3, RuleSource.METRICS)
def counts_are_right(trials: Trials) -> Iterator[Violation]:
    """The sum of ``record_count`` equals the number of written records.

    Count each written record once in its stream's counter, and log the remainder at the end.
    """
    [(_, output)] = _with_records(trials)
    counted = output.logs.counted
    if not counted:
        raise Skip("no record_count was logged")
    if not trials.sync.is_whole:
        raise Skip("the run was not complete")
    named = {name: stream.records for name, stream in output.streams.items() if stream.records and name in counted}
    for name, written in named.items():
        if counted[name] != written:
            off = max(0, counted[name] - written)  # counted and not written: lost
            yield Violation(f"{counted[name]} counted, {written} written", name, records=off, of=written)
    if not named and counted.total() != output.records:
        off = max(0, counted.total() - output.records)
        yield Violation(f"{counted.total()} counted, {output.records} written", records=off, of=output.records)


@check("observability", "advice", 1, RuleSource.METRICS)
def requests_are_timed(trials: Trials) -> Iterator[Violation]:
    """A tap of an HTTP source logs the duration of its requests.

    Log METRIC lines of type timer, metric http_request_duration, for each request.
    """
    [(_, output)] = _with_records(trials)
    logs = output.logs
    if any("http" in name or "request" in name for name in logs.metrics):
        return
    if not _HTTP.search(json.dumps(trials.config)) and not any(map(_REQUEST.search, logs.excerpts)):
        raise Skip("nothing shows that its source uses HTTP")
    yield Violation("no timer of requests")


@check_each(_with_records, "observability", "warning", 2, RuleSource.PRACTICE)
def logs_are_bounded(output: OutputReader) -> Iterator[str]:
    """The tap's logs are smaller than its output.

    Log the progress of streams, not single records: a log line costs more than a record.
    """
    logged, written = output.logs.bytes, sum(stream.bytes for stream in output.streams.values())
    lines = output.logs.lines - sum(output.logs.metrics.values())  # metrics are asked for, one a request
    if lines > max(output.records, 200) or logged > max(written, 1024 * 1024):
        size = f"{lines} lines besides metrics, {logged / 1e6:.1f} MB on stderr"
        yield f"{size} for {output.records} records, {written / 1e6:.1f} MB"


@check("observability", "warning", 4, RuleSource.BEST_PRACTICES)
def memory_does_not_grow(trials: Trials) -> Iterator[Violation]:
    """Memory use does not grow with the number of records.

    Yield records page by page; do not collect a stream in a list.
    """
    run = require_output(trials.sync)
    written = sum(stream.bytes for stream in run.output.streams.values())
    if written < _ENOUGH:
        raise Skip(f"{written / 1e6:.1f} MB of records are too few to judge; expected {_ENOUGH / 1e6:.0f} MB")
    if not run.result.peak_memory:
        raise Skip("memory is measured only on Linux")
    started = trials.discovery.result.peak_memory
    if trials.catalog is not None:
        # Some taps load their libraries at the start of a sync.
        started = max(started, trials.nothing.result.peak_memory)
    grown = run.result.peak_memory - started
    if grown > max(_PART * written, _ENOUGH):
        yield Violation(
            f"it took {grown / 1e6:.0f} MB more than discovery or a sync of nothing, "
            f"for {written / 1e6:.0f} MB of records; at most {run.result.peak_memory / 1e6:.0f} MB"
        )
