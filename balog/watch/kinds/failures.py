"""Failures: failed runs in a row, errors that were not seen before, and the share of failed runs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Struct, field

from balog.common.text import counted
from balog.event.payload import ExpectedBand, RunPayload
from balog.watch.config.durations import format_duration, format_share, parse_duration, parse_share
from balog.watch.config.kind_config import FailureLimits
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import ErrorObserved, Observation, RunObserved

MAX_FINGERPRINTS = 1000
"""Known errors of a pipeline; the one that was not seen for longest is forgotten first."""

MAX_RUNS = 2000

LEARN, FORGET, QUIET = 86400.0, 28 * 86400.0, 3600.0
"""Seconds in which all errors of a new pipeline are known ones, after which an error that is not seen is new again, and
without a new error or a repeat of one, after which a series resolves."""

_MAX_PROBLEM = 500

_ROW = (("check", "in_a_row"),)
_RATE = (("check", "rate"),)
_ERRORS = (("check", "new_error"),)


class FailureState(Struct):
    """The last runs of a pipeline, or its known errors.

    Attributes:
        runs: time and failure of each run, oldest first.
        known: the time of the last error by fingerprint.
        begun: when watching began.
        last_new: when the last new error or a repeat of one came, while it is reported.
        new: the errors that are reported.
        is_judged: whether the window has ever held enough runs for a share.
        failed: time and id of each run that failed since the last success.
        succeeded: the time of the last success.
    """

    runs: list[tuple[float, bool]] = field(default_factory=list)
    known: dict[str, float] = field(default_factory=dict)
    begun: float | None = None
    last_new: float | None = None
    new: list[str] = field(default_factory=list)
    is_judged: bool = False
    failed: list[tuple[float, str]] = field(default_factory=list)
    succeeded: float = 0.0


class FailureEvaluator:
    """Judges errors and the outcomes of runs."""

    state_type = FailureState
    starts_early = False

    def __init__(self, options: FailureLimits) -> None:
        self._options = options
        self._within = parse_duration(options.within)
        self._rate = None if options.rate_over is None else parse_share(options.rate_over)
        errors: tuple[type[Observation], ...] = (ErrorObserved,) if options.new_fingerprint else ()
        self.wants: tuple[type[Observation], ...] = (RunObserved, *errors)

    def samples(self, observation: RunObserved | ErrorObserved) -> Iterator[SeriesSample]:
        """Yield errors, runs for a row, and outcomes of runs: True for a failure."""
        pipeline, run = observation.pipeline, observation.run
        if isinstance(observation, ErrorObserved):
            yield SeriesSample(pipeline, "", (observation.fingerprint, observation.message), run, _ERRORS)
            return
        if self._options.in_a_row is not None:
            yield SeriesSample(pipeline, "", observation, run, _ROW)
        if self._rate is not None:
            yield SeriesSample(pipeline, "", observation.outcome == "failed", run, _RATE)
        if self._options.new_fingerprint:
            yield SeriesSample(pipeline, "", None, run, _ERRORS)  # the pipeline is known from its first run on

    def judge(
        self, state: FailureState, value: RunObserved | bool | tuple[str, str] | None, now: float
    ) -> Verdict | None:
        """Judge a run, an outcome, an error or the mere existence of a pipeline."""
        if isinstance(value, RunObserved):
            return self._judge_row(state, value, now)
        if state.begun is None:
            state.begun = now
        if isinstance(value, bool):
            return self._judge_rate(state, value, now)
        if value is not None:
            return self._judge_error(state, *value, now)
        if now - state.begun < LEARN:
            return Verdict("learning", "Learning which errors are known ones.")
        return None if state.last_new is not None else Verdict("ok", "No new error has come.")

    def deadline(self, state: FailureState) -> float | None:
        """Return when a new error has been quiet for long enough, or the oldest failure leaves the window."""
        if state.last_new is not None:
            return state.last_new + QUIET
        failed = [when for when, is_failed in state.runs if is_failed] if self._rate is not None else []
        return failed[0] + self._within if failed else None

    def tick(self, state: FailureState, now: float) -> Verdict | None:
        """Resolve after the quiet time; judge the rate without the runs that left the window."""
        if state.last_new is not None:
            state.last_new, state.new = None, []
            return Verdict("ok", f"No new error, and no repeat of one, has come for {format_duration(QUIET)}.")
        return self._rate_verdict(state, now)

    def _judge_row(self, state: FailureState, run: RunObserved, now: float) -> Verdict:
        """Judge the runs since the last success, in the order of their times: one may come late, or twice."""
        when = min(run.time, now)
        if run.outcome == "succeeded":
            state.succeeded = when if state.succeeded > now else max(state.succeeded, when)  # the clock was set back
            state.failed = [failure for failure in state.failed if state.succeeded < failure[0] <= now]
        elif when >= state.succeeded and (when, run.run) not in state.failed:
            state.failed = [*state.failed, (when, run.run)][-MAX_RUNS:]
        count, least = len(state.failed), self._options.in_a_row or 1
        expected = ExpectedBand(high=least - 1)
        if count < least:
            words = f"{counted(count, 'run')} failed since the last success." if count else "A run succeeded."
            return Verdict("ok", words, float(count), expected)
        words = "The run failed" if count == 1 else f"{count:,} runs failed in a row"
        if run.report and when == max(state.failed)[0]:
            words += f"{', the last one' if count > 1 else ''}{_cause(run.report)}"
        return Verdict("bad", f"{words}.", float(count), expected)

    def _judge_error(self, state: FailureState, fingerprint: str, message: str, now: float) -> Verdict | None:
        last = state.known.pop(fingerprint, None)
        state.known[fingerprint] = now  # at the end: the order is that of the last times
        if len(state.known) > MAX_FINGERPRINTS:
            del state.known[next(iter(state.known))]
        if now - (state.begun or 0.0) < LEARN:
            return Verdict("learning", f"Learning which errors are known ones: {len(state.known)} so far.")
        if last is not None and now - last <= FORGET:
            if state.last_new is not None:
                if fingerprint in state.new:
                    state.last_new = now  # it is not quiet
                return None
            return Verdict("ok", "The error is a known one.", fingerprint)
        state.last_new, state.new = now, [*state.new, fingerprint][-MAX_FINGERPRINTS:]
        return Verdict("bad", f"An error that is not in the history: {message}", fingerprint, is_repeated=True)

    def _judge_rate(self, state: FailureState, is_failed: bool, now: float) -> Verdict:
        state.runs.append((now, is_failed))
        if len(state.runs) > MAX_RUNS:
            del state.runs[0]
        return self._rate_verdict(state, now) or Verdict("learning", f"Learning from {len(state.runs)} runs.")

    def _rate_verdict(self, state: FailureState, now: float) -> Verdict | None:
        if self._rate is None:
            return None
        state.runs = [run for run in state.runs if run[0] + self._within > now]
        count, failed = len(state.runs), sum(is_failed for _, is_failed in state.runs)
        if count < self._options.min_runs:
            if not state.is_judged:
                return Verdict("learning", f"Learning from {counted(count, 'run')}.")
            return Verdict("ok", "No run has failed.", 0.0) if not failed else None
        state.is_judged = True
        share = failed / count
        words = f"{failed} of {count} runs failed within {format_duration(self._within)}"
        expected = ExpectedBand(high=self._rate)
        if share > self._rate:
            return Verdict("bad", f"{words}, more than {format_share(self._rate)}.", share, expected)
        return Verdict("ok", f"{words}.", share, expected)


def _cause(report: RunPayload) -> str:
    """Return why a run failed, for the end of a sentence."""
    if report.problem is not UNSET and report.problem:
        return f": {report.problem[:_MAX_PROBLEM].rstrip('.')}"
    return f" with exit code {report.exit_code}" + (f" ({report.signal})" if report.signal is not UNSET else "")
