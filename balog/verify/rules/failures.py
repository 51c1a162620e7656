"""Rules of failures: bad configs are rejected with a message, and failed runs do not end with 0."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, CONFIG_AND_STATE, PRACTICE, SDK_TESTS, Violation, check
from balog.verify.rules.selection import needs_a_start
from balog.verify.trials import CommandRun, Skip, SyncRun, Trials

__all__: list[str] = []

_WRONG_USE = 2


def _bad_configs(trials: Trials) -> Iterator[SyncRun]:
    yield trials.missing_config
    yield trials.broken_config


@check(
    "bad-config-is-refused", "failing", "error", 5, CONFIG_AND_STATE,
    "Read --config first. If it is missing or invalid, end with an exit code other than 0.",
)  # fmt: skip
def bad_config_is_refused(trials: Trials) -> Iterator[Violation]:
    """A config that is missing or not JSON ends the tap with an exit code other than 0 before it syncs."""
    needs_a_start(trials)
    for run in _bad_configs(trials):
        if run.result.stopped == "timeout":
            yield Violation(f"{run.name}: {run.outcome}")
        elif run.result.code == 0 or run.output.records:
            yield Violation(f"{run.name}: exit code {run.result.code}, {run.output.records} records")


@check(
    "bad-config-is-explained", "failing", "warning", 3, BEST_PRACTICES,
    "Log one line at CRITICAL or ERROR that says what is wrong with the config; tracebacks are for programmers.",
)  # fmt: skip
def bad_config_is_explained(trials: Trials) -> Iterator[Violation]:
    """The tap explains what is wrong with a config: not with a traceback alone, and not silently."""
    runs = list(_bad_configs(trials))
    if isinstance(trials.config, dict):
        runs.append(trials.bare_config)
    for run in runs:
        if run.result.code == 0 or run.result.stopped:
            continue
        logs = run.output.logs
        if not logs.lines and not run.output.lines:
            yield Violation(f"{run.name}: exit code {run.result.code} without output")
        elif logs.tracebacks and not logs.last_error:
            yield Violation(f"{run.name}: a traceback without a message")


@check(
    "failure-is-said-at-a-level", "failing", "advice", 1, BEST_PRACTICES,
    "Log the line that ends the run at CRITICAL: monitoring looks at that level.",
)  # fmt: skip
def failure_is_logged_at_a_level(trials: Trials) -> Iterator[Violation]:
    """A failed run logs its reason at CRITICAL or ERROR; for wrong use (exit code 2) plain text is enough."""
    for run in _bad_configs(trials):
        logs, code = run.output.logs, run.result.code
        if (
            code not in (0, _WRONG_USE)
            and not run.result.stopped
            and not (logs.levels["CRITICAL"] or logs.levels["ERROR"])
        ):
            yield Violation(f"{run.name}: exit code {run.result.code}, and no such line")


def _answers(written: CommandRun) -> bool:
    return written.result.code == 0 and not written.result.stopped and bool(written.stdout.strip())


@check(
    "version-is-told", "telling", "advice", 1, SDK_TESTS,
    "Support --version without a config, and write one line to stdout.",
)  # fmt: skip
def version_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--version`` prints the tap's version."""
    if not _answers(trials.version):
        yield Violation(trials.version.outcome if trials.version.result.code else "nothing on stdout")


@check(
    "about-is-told", "telling", "advice", 1, SDK_TESTS,
    "Support --about without a config, and print the tap's name, settings and streams.",
)  # fmt: skip
def about_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--about`` describes the tap and its config."""
    if not _answers(trials.about):
        yield Violation(trials.about.outcome if trials.about.result.code else "nothing on stdout")


@check(
    "failure-is-not-success", "failing", "error", 8, PRACTICE,
    "End with an exit code other than 0 if a stream could not be read completely: pipelines check only that.",
)  # fmt: skip
def failure_is_not_success(trials: Trials) -> Iterator[Violation]:
    """A sync that logs a failure at ERROR does not end with exit code 0."""
    run = trials.sync
    if not run.is_whole:
        raise Skip("no sync was complete")
    failures = run.output.logs.failures
    if failures:
        yield Violation(f"exit code 0 after {len(failures)} such lines; the last: {failures[-1]}")


@check(
    "clean-run-has-no-errors", "telling", "warning", 2, PRACTICE,
    "Log conditions that the tap recovers from at WARNING: an ERROR alerts an operator.",
)  # fmt: skip
def clean_run_has_no_errors(trials: Trials) -> Iterator[Violation]:
    """A successful sync logs no traceback and nothing at ERROR or CRITICAL."""
    run = trials.sync
    if not run.is_whole:
        raise Skip("no sync was complete")
    logs = run.output.logs
    count = logs.levels["ERROR"] + logs.levels["CRITICAL"]
    if count:
        yield Violation(f"{count} such lines; the last: {logs.last_error or 'a traceback'}")
