"""Quarantine: records and lines that a run rejected."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Struct

from balog.event.payload import ExpectedBand
from balog.watch.config.durations import format_share, parse_share
from balog.watch.config.monitors import MonitorConfig, QuarantineLimits
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import RunObserved


class QuarantineState(Struct, SeriesMemory):
    """Nothing: each run is judged alone."""

    def judge(self, evaluator: QuarantineEvaluator, value: tuple[int, int], now: float) -> Verdict:
        """Judge a run's rejected records."""
        over, most_share = evaluator.over, evaluator.share
        rejected, accepted = value
        share = rejected / (rejected + accepted) if rejected else 0.0
        words = f"{rejected:,} of {rejected + accepted:,} records were rejected"
        if over is not None and rejected > over:
            return Verdict("bad", f"{words}, more than {over:,}.", rejected, ExpectedBand(high=over))
        if most_share is not None:
            expected = ExpectedBand(high=most_share)
            if share > most_share:
                return Verdict(
                    "bad", f"{words}: {format_share(share)}, more than {format_share(most_share)}.", share, expected
                )
            return Verdict("ok", f"{words}.", share, expected)
        return Verdict("ok", f"{words}.", rejected, ExpectedBand(high=over))


class QuarantineEvaluator(Evaluator):
    """Judges the rejected records of each stream, and the invalid lines of the run as those of no stream."""

    wants = (RunObserved,)
    state_type = QuarantineState

    def __init__(self, options: QuarantineLimits, monitor: MonitorConfig) -> None:
        self.share = None if options.share_over is None else parse_share(options.share_over)
        self.over = options.over

    def samples(self, observation: RunObserved) -> Iterator[SeriesSample]:
        """Yield rejected and accepted records."""
        report = observation.report
        for count in report.streams if report else ():
            rejected = 0 if count.quarantined is UNSET else count.quarantined
            yield SeriesSample(observation.pipeline, count.stream, (rejected, count.records), observation.run)
        if report and report.invalid_lines is not UNSET:
            yield SeriesSample(observation.pipeline, "", (report.invalid_lines, report.records), observation.run)
