"""Volume: records of each stream and run, against the band of their history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from balog.event.payload import ExpectedBand
from balog.watch.bands.band_history import BandHistory, BandOptions, season_of
from balog.watch.bands.band_learning import learn, recurs
from balog.watch.bands.bands import Band, expect
from balog.watch.bands.slots import name_of
from balog.watch.config.durations import format_duration, parse_share
from balog.watch.config.kind_config import VolumeBand
from balog.watch.kinds.base import SeriesSample, Verdict, WithoutClock, limit
from balog.watch.observations import EARLIEST, RunObserved, seconds_of


class VolumeEvaluator(WithoutClock):
    """Judges the records of successful runs. A failed run is the failures' matter and is not learned."""

    wants = (RunObserved,)
    state_type = BandHistory

    def __init__(self, options: VolumeBand, zone: tzinfo) -> None:
        self._band = BandOptions(
            sensitivity=options.sensitivity,
            tolerance=parse_share(options.tolerance),
            seasonality=options.seasonality,
            zone=zone,
        )

    def samples(self, observation: RunObserved) -> Iterator[SeriesSample]:
        """Yield the counts of each stream; those of the whole run if its streams were not counted."""
        report = observation.report
        if report is None or report.outcome != "succeeded":
            return
        start = seconds_of(report.started) if isinstance(report.started, str) else None
        if start is None:
            start = observation.time - report.duration
        counts = [(stream_count.stream, stream_count.records) for stream_count in report.streams]
        for stream, count in counts or [("", report.records)]:
            yield SeriesSample(observation.pipeline, stream, (float(count), start), observation.run)

    def judge(self, state: BandHistory, value: tuple[float, float], now: float) -> Verdict:
        """Judge a count and the start of its run, and learn from it unless it is an anomaly."""
        count, start = value
        when = max(min(start, now), EARLIEST)
        band = expect(state, when, self._band)
        problem = self._problem(count, band)
        if problem and band is not None and recurs(state, count, band, self._band):
            problem = ""
        moved = learn(state, when, count, band, self._band, is_anomaly=bool(problem))
        if band is None or not band.is_known:
            runs = len(state.values)
            return Verdict("learning", f"Learning from {runs} run{'s' * (runs != 1)}.", count)
        expected = ExpectedBand(low=round(band.low, 3), high=round(band.high, 3))
        if moved:
            lasted = format_duration(self._band.adapt)
            return Verdict("ok", f"The new level has lasted for {lasted} and is the normal one now.", count, expected)
        if problem:
            slot = name_of(season_of(state, self._band), band.slot, is_of_month=bool(band.effect))
            limits = f"{band.low:,.0f} to {band.high:,.0f} were expected{slot and f' for {slot}'}"
            return Verdict("bad", f"{count:,.0f} is {problem}; {limits}.", count, expected)
        return Verdict("ok", "The value is within its band.", count, expected)

    def _problem(self, value: float, band: Band | None) -> str:
        if band is None or not band.is_known:
            return ""
        if value == 0 and band.is_never_zero:
            return "a zero, of which the history has none"
        return {"over": "above the band", "under": "below the band", "": ""}[limit(value, band.low, band.high)]
