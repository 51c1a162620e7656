"""Rules of failures: they are reported with an exit code and a message, and without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from balog.tap.verify.catalogs import entries, id_of, key_properties_of, name_of, properties_of
from balog.tap.verify.rules.registration import RuleSource, Violation, check
from balog.tap.verify.rules.subjects import require_start, require_whole
from balog.tap.verify.runs import Skip, SyncRun
from balog.tap.verify.synced_stream import SyncedStream
from balog.tap.verify.trials import RESUMED, Trials

_WRONG_USE = 2
_GRAVE_PART = 0.1  # of the records of a stream


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
    if isinstance(trials.config, dict) and trials.sync.is_whole:  # else it may fail in the same way as with a config
        runs.append(trials.bare_config)
    for run in runs:
        if run.result.code == 0 or run.result.stopped:
            continue
        logs = run.output.logs
        if not logs.lines and not run.output.lines:
            yield Violation(f"{run.name}: exit code {run.result.code} without output")
        elif logs.tracebacks and not logs.last_error:
            text = f"{run.name}: a traceback, and no line at ERROR or CRITICAL: {logs.last_exception}{logs.in_place}"
            yield Violation(text, place=logs.place)
        elif not logs.has_reason:
            yield Violation(f"{run.name}: {run.outcome}")


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
    logs = require_whole(trials.sync).output.logs
    if logs.failures:
        text = f"exit code 0 after {len(logs.failures)} such lines; the last: {logs.failures[-1]}{logs.in_place}"
        yield Violation(text, place=logs.place)
    elif logs.gave_up:
        text = f"exit code 0 after {len(logs.gave_up)} lines at WARNING about records that were not read"
        yield Violation(f"{text}; the last: {logs.gave_up[-1]}", severity="warning")


_REPEATED = ("sync by --properties", "sync by both", "state of another tap")
"""Syncs of the same records as the first."""

_NEW = 10  # records that a source may well get during a verification


@check("failures", "error", 8, RuleSource.PRACTICE, is_last=True)
def success_is_complete(trials: Trials) -> Iterator[Violation]:
    """A sync that ends with exit code 0 has written all records: another sync of them finds no others.

    End with an exit code other than 0 if you stop before the last page. Look for errors that are ignored.
    """
    first = require_whole(trials.sync)
    if trials.catalog is not None:
        _ = trials.foreign_state
    with suppress(Skip):
        _ = trials.resumed
    others = [run for run in trials.made if isinstance(run, SyncRun) and run is not first and run.is_whole]
    others = [run for run in others if run.name in _REPEATED or run.name.endswith(" alone")]
    resumed = [run for run in trials.made if isinstance(run, SyncRun) and run.name.startswith(RESUMED) and run.is_whole]
    if not others and not resumed:
        raise Skip("no other sync was complete")
    for name, stream in first.output.streams.items():
        violations = [v for run in others for v in _compared(name, stream, run)]
        violations += [v for run in resumed for v in _followed(name, stream, run)]
        yield from violations[:1]  # the runs differ for one reason


def _compared(name: str, stream: SyncedStream, run: SyncRun) -> Iterator[Violation]:
    """Yield a violation if one of two complete syncs wrote fewer records of a stream than the other, and no others."""
    other = run.output.streams.get(name)
    ones, others = set(stream.keys), set(other.keys) if other is not None else set()
    if other is None or not ones & others or (ones - others and others - ones):
        return  # a stream without keys whose content changes, or a source that does
    if missing := len(ones - others):
        text = f"the run {run.name!r} ended with exit code 0 without {missing} of {len(ones)} records"
        yield Violation(text, name, records=missing, of=len(ones))
    elif missing := len(others - ones):
        is_within = stream.highest is not None and other.highest == stream.highest
        if is_within or (missing >= _NEW and missing >= _GRAVE_PART * len(ones)):
            text = f"the first sync ended with exit code 0 without {missing} of {len(others)} records that came later"
            yield Violation(text, name, records=missing, of=len(others))


def _followed(name: str, stream: SyncedStream, run: SyncRun) -> Iterator[Violation]:
    """Yield a violation if a run from a STATE of a complete sync wrote many records that it had not written."""
    other = run.output.streams.get(name)
    if other is None or not stream.key_properties or not stream.replication_key:
        return
    new = len(set(other.keys) - set(stream.keys))
    if new >= _NEW and new >= _GRAVE_PART * stream.records:
        text = f"{run.name} wrote {new} records that the first sync, which ended with exit code 0, had not written"
        yield Violation(text, name, severity="warning")


@check("failures", "error", 10, RuleSource.BEST_PRACTICES, is_last=True)
def secrets_stay_secret(trials: Trials) -> Iterator[Violation]:
    """No secret of the config appears on stdout or stderr, even on errors.

    Do not log the config, or requests with headers or URLs; redact errors. Rotate secrets that leaked.
    """
    if not trials.leaks.secrets:
        raise Skip("the config has no secret of 6 or more characters")
    _ = trials.sync
    if trials.command.config is not None:
        _ = trials.bare_config, trials.broken_config  # errors about a config often show it
    public = _names_of_catalog(trials)
    hidden = {path for path, secret in trials.leaks.secrets.items() if secret.text in public}
    if hidden == trials.leaks.secrets.keys():
        raise Skip("the secrets of the config are names of the catalog")
    seen: set[tuple[str, str]] = set()
    for run in sorted(trials.made, key=lambda run: (run.name != "sync", run.name)):
        for (path, output), line in run.output.leaks.found.items():
            if path in hidden or (path, output) in seen:
                continue
            seen.add((path, output))
            guess = ", which looks like a secret," if trials.leaks.secrets[path].is_guess else ""
            yield Violation(f"the value of {path}{guess} is on {output}, in line {line} of the run {run.name!r}")


def _names_of_catalog(trials: Trials) -> set[str]:
    """Return the names of streams and properties: each output has them, so nobody can see a secret in them."""
    names: set[str] = set()
    for entry in entries(trials.catalog):
        names |= {id_of(entry), name_of(entry), *properties_of(entry), *key_properties_of(entry)}
    return names
