"""Failures: failed runs in a row, errors that were not seen before, and the share of failed runs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Struct, field

from balog.common.text import counted
from balog.event.payload import ExpectedBand, RunPayload
from balog.watch.config.durations import format_duration, format_share, parse_duration, parse_share
from balog.watch.config.monitors import FailureLimits, MonitorConfig
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
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


class FailureState(Struct, SeriesMemory):
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

    def judge(
        self, evaluator: FailureEvaluator, value: RunObserved | bool | tuple[str, str] | None, now: float
    ) -> Verdict | None:
        """Judge a run, an outcome, an error or the mere existence of a pipeline."""
        if isinstance(value, RunObserved):
            return self._judge_row(evaluator, value, now)
        if self.begun is None:
            self.begun = now
        if isinstance(value, bool):
            return self._judge_rate(evaluator, value, now)
        if value is not None:
            return self._judge_error(evaluator, *value, now)
        if now - self.begun < LEARN:
            return Verdict("learning", "Learning which errors are known ones.")
        return None if self.last_new is not None else Verdict("ok", "No new error has come.")

    def deadline(self, evaluator: FailureEvaluator) -> float | None:
        """Return when a new error has been quiet for long enough, or the oldest failure leaves the window."""
        if self.last_new is not None:
            return self.last_new + QUIET
        failed = [when for when, is_failed in self.runs if is_failed] if evaluator.rate is not None else []
        return failed[0] + evaluator.within if failed else None

    def tick(self, evaluator: FailureEvaluator, now: float) -> Verdict | None:
        """Resolve after the quiet time; judge the rate without the runs that left the window."""
        if self.last_new is not None:
            self.last_new, self.new = None, []
            return Verdict("ok", f"No new error, and no repeat of one, has come for {format_duration(QUIET)}.")
        return self._rate_verdict(evaluator, now)

    def _judge_row(self, evaluator: FailureEvaluator, run: RunObserved, now: float) -> Verdict:
        """Judge the runs since the last success, in the order of their times: one may come late, or twice."""
        when = min(run.time, now)
        if run.outcome == "succeeded":
            self.succeeded = when if self.succeeded > now else max(self.succeeded, when)  # the clock was set back
            self.failed = [failure for failure in self.failed if self.succeeded < failure[0] <= now]
        elif when >= self.succeeded and (when, run.run) not in self.failed:
            self.failed = [*self.failed, (when, run.run)][-MAX_RUNS:]
        count, least = len(self.failed), evaluator.options.in_a_row or 1
        expected = ExpectedBand(high=least - 1)
        if count < least:
            words = f"{counted(count, 'run')} failed since the last success." if count else "A run succeeded."
            return Verdict("ok", words, float(count), expected)
        words = "The run failed" if count == 1 else f"{count:,} runs failed in a row"
        if run.report and when == max(self.failed)[0]:
            words += f"{', the last one' if count > 1 else ''}{_cause(run.report)}"
        return Verdict("bad", f"{words}.", float(count), expected)

    def _judge_error(self, evaluator: FailureEvaluator, fingerprint: str, message: str, now: float) -> Verdict | None:
        last = self.known.pop(fingerprint, None)
        self.known[fingerprint] = now  # at the end: the order is that of the last times
        if len(self.known) > MAX_FINGERPRINTS:
            del self.known[next(iter(self.known))]
        if now - (self.begun or 0.0) < LEARN:
            return Verdict("learning", f"Learning which errors are known ones: {len(self.known)} so far.")
        if last is not None and now - last <= FORGET:
            if self.last_new is not None:
                if fingerprint in self.new:
                    self.last_new = now  # it is not quiet
                return None
            return Verdict("ok", "The error is a known one.", fingerprint)
        self.last_new, self.new = now, [*self.new, fingerprint][-MAX_FINGERPRINTS:]
        return Verdict("bad", f"An error that is not in the history: {message}", fingerprint, is_repeated=True)

    def _judge_rate(self, evaluator: FailureEvaluator, is_failed: bool, now: float) -> Verdict:
        self.runs.append((now, is_failed))
        if len(self.runs) > MAX_RUNS:
            del self.runs[0]
        return self._rate_verdict(evaluator, now) or Verdict("learning", f"Learning from {len(self.runs)} runs.")

    def _rate_verdict(self, evaluator: FailureEvaluator, now: float) -> Verdict | None:
        if evaluator.rate is None:
            return None
        self.runs = [run for run in self.runs if run[0] + evaluator.within > now]
        count, failed = len(self.runs), sum(is_failed for _, is_failed in self.runs)
        if count < evaluator.options.min_runs:
            if not self.is_judged:
                return Verdict("learning", f"Learning from {counted(count, 'run')}.")
            return Verdict("ok", "No run has failed.", 0.0) if not failed else None
        self.is_judged = True
        share = failed / count
        words = f"{failed} of {count} runs failed within {format_duration(evaluator.within)}"
        expected = ExpectedBand(high=evaluator.rate)
        if share > evaluator.rate:
            return Verdict("bad", f"{words}, more than {format_share(evaluator.rate)}.", share, expected)
        return Verdict("ok", f"{words}.", share, expected)


class FailureEvaluator(Evaluator):
    """Judges errors and the outcomes of runs."""

    state_type = FailureState

    def __init__(self, options: FailureLimits, monitor: MonitorConfig) -> None:
        self.options = options
        self.within = parse_duration(options.within)
        self.rate = None if options.rate_over is None else parse_share(options.rate_over)
        errors: tuple[type[Observation], ...] = (ErrorObserved,) if options.new_fingerprint else ()
        self.wants: tuple[type[Observation], ...] = (RunObserved, *errors)

    def samples(self, observation: RunObserved | ErrorObserved) -> Iterator[SeriesSample]:
        """Yield errors, runs for a row, and outcomes of runs: True for a failure."""
        pipeline, run = observation.pipeline, observation.run
        if isinstance(observation, ErrorObserved):
            yield SeriesSample(pipeline, "", (observation.fingerprint, observation.message), run, _ERRORS)
            return
        if self.options.in_a_row is not None:
            yield SeriesSample(pipeline, "", observation, run, _ROW)
        if self.rate is not None:
            yield SeriesSample(pipeline, "", observation.outcome == "failed", run, _RATE)
        if self.options.new_fingerprint:
            yield SeriesSample(pipeline, "", None, run, _ERRORS)  # the pipeline is known from its first run on


def _cause(report: RunPayload) -> str:
    """Return why a run failed, for the end of a sentence."""
    if report.problem is not UNSET and report.problem:
        return f": {report.problem[:_MAX_PROBLEM].rstrip('.')}"
    return f" with exit code {report.exit_code}" + (f" ({report.signal})" if report.signal is not UNSET else "")
