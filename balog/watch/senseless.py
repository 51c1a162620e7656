"""Find what is well-formed in a monitor but makes no sense, such as one that can never fire."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from math import ceil

from balog.counts import counted
from balog.errors import BalogError, ConfigError
from balog.watch.durations import format_duration, parse_duration, parse_share
from balog.watch.monitors import MonitorConfig
from balog.watch.seasons import SEASON_SPAN

_LINK_FIELDS = ("pipeline", "stream", "run_id")
_FIELD = re.compile(r"\{(\w+)\}")
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""Texts, quoted names and comments of SQL."""


def find_senseless_parts(monitor: MonitorConfig, place: str) -> Iterator[ConfigError]:
    """Yield the problems of a monitor whose texts are right.

    Args:
        place: the monitor's JSONPath.
    """
    if not monitor.name.isprintable():
        yield ConfigError("has a character that cannot be printed", path=f"{place}.name")
    for name in ("pipeline", "stream"):
        patterns = getattr(monitor, name)
        if not patterns or (isinstance(patterns, list) and "" in patterns):
            yield ConfigError('an empty glob matches nothing; leave it out, or write "*"', path=f"{place}.{name}")
    whole = next((name for name in ("duration", "failures", "lag") if getattr(monitor, name) is not None), None)
    if whole is not None and monitor.stream != "*":
        yield ConfigError(f"{whole} has no streams, so nothing would fire; leave it out", path=f"{place}.stream")
    if "" in monitor.labels:
        yield ConfigError("a label needs a name", path=f"{place}.labels")
    unknown = [field for field in _FIELD.findall(monitor.link or "") if field not in _LINK_FIELDS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in _LINK_FIELDS)
        yield ConfigError(f"there is no {{{unknown[0]:.40}}}; there are {known}", path=f"{place}.link")
    if monitor.link is not None and not monitor.link.lower().startswith(("https://", "http://")):
        yield ConfigError("is not a URL; want https:// or http://", path=f"{place}.link")
    yield from _never_fires(monitor, place)
    if monitor.sql is not None and (reason := _problem_of_query(monitor.sql)):
        yield ConfigError(reason, path=f"{place}.sql")


def _never_fires(monitor: MonitorConfig, place: str) -> Iterator[ConfigError]:
    changes, band = monitor.schema, monitor.volume
    if changes is not None and changes.breaking == changes.additive == "ignore":
        yield ConfigError("ignores every change", path=f"{place}.schema")
    if band is not None and (_seconds(band.training) or float("inf")) < SEASON_SPAN[band.seasonality]:
        days = f"{SEASON_SPAN[band.seasonality] / 86400:.0f}d"
        yield ConfigError(
            f"{band.seasonality} needs at least {days}, so it would learn for ever", path=f"{place}.volume.training"
        )
    for kind, name in (("failures", "rate_over"), ("quarantine", "share_over")):
        share = getattr(getattr(monitor, kind), name, None)
        if share is not None and _share(share) >= 1.0:
            yield ConfigError("no share is larger", path=f"{place}.{kind}.{name}")
    limits = {
        "threshold": (monitor.threshold.under, monitor.threshold.over) if monitor.threshold else (None, None),
        "duration": (_seconds(monitor.duration.under), _seconds(monitor.duration.over))
        if monitor.duration
        else (None, None),
    }
    for name, (under, over) in limits.items():
        if under is not None and over is not None and under > over:
            yield ConfigError("under is larger than over, so every value fires", path=f"{place}.{name}")
    if limits["duration"][0] == 0.0:
        yield ConfigError("no run is shorter", path=f"{place}.duration.under")


def find_narrow_windows(monitors: Sequence[MonitorConfig]) -> Iterator[str]:
    """Yield a note on each window that cannot hold ``min_runs`` at the rhythm that a ``freshness`` monitor expects.

    Args:
        monitors: monitors without problems.
    """
    rhythms = [(one, parse_duration(one.freshness.every)) for one in monitors if one.freshness is not None]
    for monitor in monitors:
        failures, duration, volume = monitor.failures, monitor.duration, monitor.volume
        if failures is not None and failures.rate_over is not None:
            option, text, least, advice = "within", failures.within, failures.min_runs, " or use in_a_row"
        elif duration is not None and duration.p95_over is not None:
            option, text, least, advice = "against", duration.against, duration.min_runs, ""
        elif volume is not None:
            option, text, least, advice = "training", volume.training, volume.min_runs, ""
        else:
            continue
        for other, every in rhythms:
            count = ceil(parse_duration(text) / every)
            if count < least and _share_pipelines(monitor, other):
                apart = f"where runs are {format_duration(every)} apart, as in {other.name}"
                holds = f"{option} of {text} holds {counted(count, 'run')}, and min_runs is {least}"
                yield f"{monitor.name} judges nothing {apart}: {holds}; widen {option}, lower min_runs{advice}"
                break


def _share_pipelines(one: MonitorConfig, other: MonitorConfig) -> bool:
    """Return whether a glob of a monitor matches one of another."""
    mine, others = ([each.pipeline] if isinstance(each.pipeline, str) else each.pipeline for each in (one, other))
    return any(fnmatchcase(a, b) or fnmatchcase(b, a) for a in mine for b in others)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else parse_duration(text)
    except BalogError:
        return None  # it is reported where it stands


def _share(text: str) -> float:
    try:
        return parse_share(text)
    except BalogError:
        return 0.0  # it is reported where it stands


def _problem_of_query(sql: str) -> str:
    """Return why a text is not one SELECT with a value; "" if it may be one. The tables are not looked at."""
    plain = _QUOTED.sub(" ", sql)
    if not re.match(r"(?:SELECT|WITH)\b", plain.lstrip(" \t\r\n("), re.IGNORECASE):
        return "is not a query; want one SELECT with a column called value"
    if plain.partition(";")[2].strip():
        return "is more than one statement; want one SELECT with a column called value"
    if "value" not in sql.lower() and not re.search(r"(?:^|[\s,.])\*", plain):
        return "has no column called value; write SELECT … AS value"
    return ""
