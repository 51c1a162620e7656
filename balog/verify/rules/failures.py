"""Rules of failures: they are reported with an exit code and a message, and without secrets."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import RuleSource, Violation, check
from balog.verify.rules.subjects import require_start, require_whole
from balog.verify.runs import Skip, SyncRun
from balog.verify.trials import Trials

_WRONG_USE = 2


def _bad_configs(trials: Trials) -> Iterator[SyncRun]:
    yield trials.missing_config
    yield trials.broken_config


@check("failures", "error", 5, RuleSource.CONFIG_AND_STATE)
def bad_config_is_refused(trials: Trials) -> Iterator[Violation]:
    """A config that is missing or not JSON ends the tap with an exit code other than 0 before it syncs.

    Read --config first. If it is missing or invalid, end with an exit code other than 0.
    """
    require_start(trials)
    for run in _bad_configs(trials):
        if run.result.stopped == "timeout":
            yield Violation(f"{run.name}: {run.outcome}")
        elif run.result.code == 0 or run.output.records:
            yield Violation(f"{run.name}: exit code {run.result.code}, {run.output.records} records")


@check("failures", "warning", 3, RuleSource.BEST_PRACTICES)
def bad_config_is_explained(trials: Trials) -> Iterator[Violation]:
    """The tap explains what is wrong with a config: not with a traceback alone, and not silently.

    Log one line at CRITICAL or ERROR that says what is wrong with the config; tracebacks are for programmers.
    """
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


@check("failures", "advice", 1, RuleSource.BEST_PRACTICES)
def failure_is_logged_at_a_level(trials: Trials) -> Iterator[Violation]:
    """A failed run logs its reason at CRITICAL or ERROR; for wrong use (exit code 2) plain text is enough.

    Log the line that ends the run at CRITICAL: monitoring looks at that level.
    """
    for run in _bad_configs(trials):
        logs, code = run.output.logs, run.result.code
        is_reported = logs.levels["CRITICAL"] or logs.levels["ERROR"] or code in (0, _WRONG_USE)
        if not is_reported and not run.result.stopped:
            yield Violation(f"{run.name}: exit code {code}, and no such line")


@check("failures", "error", 8, RuleSource.PRACTICE)
def failure_is_not_success(trials: Trials) -> Iterator[Violation]:
    """A sync that logs a failure at ERROR does not end with exit code 0.

    End with an exit code other than 0 if a stream could not be read completely: pipelines check only that.
    """
    failures = require_whole(trials.sync).output.logs.failures
    if failures:
        yield Violation(f"exit code 0 after {len(failures)} such lines; the last: {failures[-1]}")


@check("failures", "error", 10, RuleSource.BEST_PRACTICES, is_last=True)
def secrets_stay_secret(trials: Trials) -> Iterator[Violation]:
    """No secret of the config appears on stdout or stderr, even on errors.

    Do not log the config, or requests with headers or URLs; redact errors. Rotate secrets that leaked.
    """
    if not trials.leaks.keys:
        raise Skip("the config has no secret of 6 or more characters")
    _ = trials.sync
    if trials.command.config is not None:
        _ = trials.bare_config, trials.broken_config  # errors about a config often show it
    seen: set[tuple[str, str]] = set()
    for run in sorted(trials.made, key=lambda run: (run.name != "sync", run.name)):
        for (path, output), line in run.leaks.found.items():
            if (path, output) not in seen:
                seen.add((path, output))
                yield Violation(f"the value of {path} is on {output}, in line {line} of the run {run.name!r}")
