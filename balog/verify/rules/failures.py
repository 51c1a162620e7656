"""A config that cannot be used is refused, in words, before anything is synced."""

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
    "Check --config first; end with another exit code than 0 when it is not there or cannot be read.",
)  # fmt: skip
def bad_config_is_refused(trials: Trials) -> Iterator[Violation]:
    """A config that does not exist, or is no JSON, ends the tap with an exit code other than 0 before it syncs."""
    needs_a_start(trials)
    for run in _bad_configs(trials):
        if run.result.stopped == "timeout":
            yield Violation(f"{run.name}: {run.outcome}")
        elif run.result.code == 0 or run.output.records:
            yield Violation(f"{run.name}: exit code {run.result.code}, {run.output.records} records")


@check(
    "bad-config-is-explained", "failing", "warning", 3, BEST_PRACTICES,
    "Say in one line what is wrong with the config, at CRITICAL or ERROR; a traceback is for programmers.",
)  # fmt: skip
def bad_config_is_explained(trials: Trials) -> Iterator[Violation]:
    """What is wrong with a config is said in words: no traceback alone, no silence."""
    runs = list(_bad_configs(trials))
    if isinstance(trials.config, dict):
        runs.append(trials.bare_config)
    for run in runs:
        if run.result.code == 0 or run.result.stopped:
            continue
        logs = run.output.logs
        if not logs.lines and not run.output.lines:
            yield Violation(f"{run.name}: exit code {run.result.code} in silence")
        elif logs.tracebacks and not logs.last_error:
            yield Violation(f"{run.name}: a traceback and no words")


@check(
    "failure-is-said-at-a-level", "failing", "advice", 1, BEST_PRACTICES,
    "Log the line that ends the run at CRITICAL: what watches logs looks there.",
)  # fmt: skip
def failure_is_logged_at_a_level(trials: Trials) -> Iterator[Violation]:
    """A run that fails says why at CRITICAL or ERROR; wrong use (exit code 2) may be said plainly."""
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
    "Take --version without a config, and write one line to stdout.",
)  # fmt: skip
def version_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--version`` tells the tap's version."""
    if not _answers(trials.version):
        yield Violation(trials.version.outcome if trials.version.result.code else "nothing on stdout")


@check(
    "about-is-told", "telling", "advice", 1, SDK_TESTS,
    "Take --about without a config, and write what the tap is, its settings and streams.",
)  # fmt: skip
def about_is_printed(trials: Trials) -> Iterator[Violation]:
    """``--about`` tells what the tap is and what its config holds."""
    if not _answers(trials.about):
        yield Violation(trials.about.outcome if trials.about.result.code else "nothing on stdout")


@check(
    "failure-is-not-success", "failing", "error", 8, PRACTICE,
    "End with another exit code than 0 when a stream could not be read to its end: a pipeline looks there alone.",
)  # fmt: skip
def failure_is_not_success(trials: Trials) -> Iterator[Violation]:
    """A sync that logs at ERROR that something failed does not end with exit code 0."""
    run = trials.sync
    if not run.is_whole:
        raise Skip("no sync went to its end")
    failures = run.output.logs.failures
    if failures:
        yield Violation(f"exit code 0 after {len(failures)} such lines, the last: {failures[-1]}")


@check(
    "clean-run-has-no-errors", "telling", "warning", 2, PRACTICE,
    "Log what the tap can live with at WARNING: an ERROR wakes somebody.",
)  # fmt: skip
def clean_run_has_no_errors(trials: Trials) -> Iterator[Violation]:
    """A sync that succeeds logs nothing at ERROR or CRITICAL, and no traceback."""
    run = trials.sync
    if not run.is_whole:
        raise Skip("no sync went to its end")
    logs = run.output.logs
    count = logs.levels["ERROR"] + logs.levels["CRITICAL"]
    if count:
        yield Violation(f"{count} such lines, the last: {logs.last_error or 'a traceback'}")
