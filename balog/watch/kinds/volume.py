"""Volume: records of each stream and run, against the band of their history."""

from __future__ import annotations

from collections.abc import Iterator

from balog.event.payload import ExpectedBand
from balog.watch.bands.band_history import Band, BandHistory, BandOptions
from balog.watch.bands.bands import expect, recurs
from balog.watch.bands.slots import name_of
from balog.watch.config.calendars import parse_zone
from balog.watch.config.durations import format_duration, parse_share
from balog.watch.config.monitors import MonitorConfig, VolumeBand
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict, limit
from balog.watch.observations import EARLIEST, RunObserved, seconds_of


class VolumeState(BandHistory, SeriesMemory):
    """The history of one stream, and its band."""

    def judge(self, evaluator: VolumeEvaluator, value: tuple[float, float], now: float) -> Verdict:
        """Judge a count and the start of its run, and learn from it unless it is an anomaly."""
        options = evaluator.band
        count, start = value
        when = max(min(start, now), EARLIEST)
        band = expect(self, when, options)
        problem = _problem(count, band)
        if problem and band is not None and recurs(self, count, band, options):
            problem = ""
        moved = self.learn(when, count, band, options, is_anomaly=bool(problem))
        if band is None or not band.is_known:
            runs = len(self.values)
            return Verdict("learning", f"Learning from {runs} run{'s' * (runs != 1)}.", count)
        expected = ExpectedBand(low=round(band.low, 3), high=round(band.high, 3))
        if moved:
            lasted = format_duration(options.adapt)
            return Verdict("ok", f"The new level has lasted for {lasted} and is the normal one now.", count, expected)
        if problem:
            slot = name_of(self.season_by(options), band.slot, is_of_month=bool(band.effect))
            limits = f"{band.low:,.0f} to {band.high:,.0f} were expected{slot and f' for {slot}'}"
            return Verdict("bad", f"{count:,.0f} is {problem}; {limits}.", count, expected)
        return Verdict("ok", "The value is within its band.", count, expected)


class VolumeEvaluator(Evaluator):
    """Judges the records of successful runs. A failed run is the failures' matter and is not learned."""

    wants = (RunObserved,)
    state_type = VolumeState

    def __init__(self, options: VolumeBand, monitor: MonitorConfig) -> None:
        self.band = BandOptions(
            sensitivity=options.sensitivity,
            tolerance=parse_share(options.tolerance),
            seasonality=options.seasonality,
            zone=parse_zone(monitor.timezone),
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


def _problem(value: float, band: Band | None) -> str:
    if band is None or not band.is_known:
        return ""
    if value == 0 and band.is_never_zero:
        return "a zero, of which the history has none"
    return {"over": "above the band", "under": "below the band", "": ""}[limit(value, band.low, band.high)]
