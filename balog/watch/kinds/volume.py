"""Volume: records and bytes of each stream and run, against the band of their history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from msgspec import UNSET

from balog.payload import ExpectedBand
from balog.watch.bands import Band, BandHistory, BandOptions, expect, learn
from balog.watch.durations import format_duration, parse_duration, parse_share
from balog.watch.kind_config import VolumeBand
from balog.watch.kinds.base import SeriesSample, Verdict, WithoutClock, limit
from balog.watch.observations import RunObserved


class VolumeEvaluator(WithoutClock):
    """Judges the records and bytes of successful runs. A failed run is the failures' matter and is not learned."""

    wants = (RunObserved,)
    state_type = BandHistory

    def __init__(self, options: VolumeBand, zone: tzinfo) -> None:
        self._options = options
        self._band = BandOptions(
            sensitivity=options.sensitivity,
            tolerance=parse_share(options.tolerance),
            seasonality=options.seasonality,
            training=parse_duration(options.training),
            min_runs=options.min_runs,
            adapt=parse_duration(options.adapt),
            zone=zone,
        )
        self._measures = ("records", "bytes") if options.measure == "both" else (options.measure,)

    def samples(self, observation: RunObserved) -> Iterator[SeriesSample]:
        """Yield the counts of each stream; those of the whole run if its streams were not counted."""
        report = observation.report
        if report.outcome != "succeeded":
            return
        for measure in self._measures:
            labels = (("measure", measure),) if len(self._measures) > 1 else ()
            counts = [(one.stream, getattr(one, measure)) for one in report.streams]
            for stream, count in counts or [("", getattr(report, measure))]:
                if count is not UNSET:
                    yield SeriesSample(observation.pipeline, stream, float(count), observation.run, labels)

    def judge(self, state: BandHistory, value: float, now: float) -> Verdict:
        """Judge a count and learn from it unless it is an anomaly."""
        band = expect(state, now, self._band)
        problem = self._problem(state, value, band)
        renewed = learn(state, now, value, self._band, is_anomaly=bool(problem))
        if band is None:
            count = len(state.values)
            return Verdict("learning", f"Learning from {count} run{'s' * (count != 1)}.", value)
        expected = ExpectedBand(low=round(band.low, 3), high=round(band.high, 3))
        if renewed:
            lasted = format_duration(self._band.adapt)
            return Verdict("ok", f"The new level has lasted for {lasted} and is the normal one now.", value, expected)
        if problem:
            low, high = f"{band.low:,.0f}", f"{band.high:,.0f}"
            return Verdict("bad", f"{value:,.0f} is {problem}; {low} to {high} were expected.", value, expected)
        return Verdict("ok", "The value is within its band.", value, expected)

    def _problem(self, state: BandHistory, value: float, band: Band | None) -> str:
        if band is None:
            return ""
        if value == 0 and self._options.zero and band.center and 0.0 not in state.values:
            return "the first zero of the history"
        side = limit(value, band.low, band.high)
        if side == "over":
            return "above the band" if self._options.spike else ""
        return "below the band" if side and self._options.drop else ""
