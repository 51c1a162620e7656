"""Read files of monitors, and check what types cannot express: durations, calendars, conditions, exactly one kind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from math import ceil
from typing import Any

import msgspec

from balog.common import config as configs
from balog.common.config.problems import intact
from balog.common.errors import ConfigError, ConfigProblems
from balog.common.text import counted
from balog.filters import Expression
from balog.watch.config.calendars import Calendar, parse_zone
from balog.watch.config.durations import format_duration, parse_duration, parse_factor, parse_period, parse_share
from balog.watch.config.monitors import KINDS, MonitorConfig, MonitorsFile


def _parse_quiet_hours(text: str) -> Calendar:
    calendar = Calendar(text)
    if calendar.is_always_open:
        raise ConfigError(f"{text!r:.80} is always, so no alert would be sent; name days or hours")
    return calendar


def _parse_largest_share(text: str) -> None:
    if parse_share(text) >= 1.0:
        raise ConfigError("no share is larger")


_PARSERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("every", "within", "against", "no_data"), parse_period),
    **dict.fromkeys(("grace", "for", "resolve_after"), parse_duration),
    "p95_over": parse_factor,
    "tolerance": parse_share,
    **dict.fromkeys(("rate_over", "share_over"), _parse_largest_share),
    "calendar": Calendar,
    "quiet_hours": _parse_quiet_hours,
    "timezone": parse_zone,
    "where": Expression,
}

_LINK_FIELDS = ("pipeline", "stream", "run_id")

_NEEDS_ONE = {
    "duration": ("p95_over", "over", "under"),
    "failures": ("in_a_row", "new_fingerprint", "rate_over"),
    "quarantine": ("share_over", "over"),
    "threshold": ("over", "under"),
}


def find_semantic_problems(monitors: Sequence[MonitorConfig]) -> list[ConfigError]:
    """Return the problems of monitors whose types are right, each with its JSONPath in the file."""
    problems: list[ConfigError] = []
    names: set[str] = set()
    for number, monitor in enumerate(monitors):
        path = f"$.monitors[{number}]"
        if monitor.name in names:
            problems.append(ConfigError(f"the name {monitor.name!r:.80} is there twice", path=f"{path}.name"))
        names.add(monitor.name)
        problems += _fields(monitor, path)
        problems += _kinds(monitor, path)
        problems += _globs_and_links(monitor, path)
        problems += _limits(monitor, path)
    return problems


def _fields(options: Any, struct_path: str) -> Iterator[ConfigError]:
    """Parse the texts of a struct and of its structs."""
    for field in msgspec.structs.fields(options):
        value, path = getattr(options, field.name), f"{struct_path}.{field.encode_name}"
        if isinstance(value, msgspec.Struct):
            yield from _fields(value, path)
            continue
        parse = _PARSERS.get(field.encode_name)
        if field.encode_name in ("over", "under") and isinstance(value, str):  # of a duration
            parse = parse_duration
        if parse is None or value is None:
            continue
        try:
            parse(value)
        except ConfigError as error:
            yield ConfigError(error.reason, path=path)


def _kinds(monitor: MonitorConfig, path: str) -> Iterator[ConfigError]:
    chosen = [name for name in KINDS if getattr(monitor, name) is not None]
    if not chosen:
        yield ConfigError(f"a monitor needs a kind; add one of {', '.join(KINDS)}", path=path)
    elif len(chosen) > 1:
        yield ConfigError(f"{' and '.join(chosen)} are two kinds; write a monitor for each", path=f"{path}.{chosen[1]}")
    for name, options in _NEEDS_ONE.items():
        struct = getattr(monitor, name)
        if struct is not None and not any(_is_set(getattr(struct, option)) for option in options):
            yield ConfigError(f"needs one of {', '.join(options)}", path=f"{path}.{name}")
    if monitor.metric is not None and monitor.threshold is None:
        yield ConfigError("needs a threshold, such as {over: 3, within: 1h}", path=f"{path}.metric")
    if monitor.threshold is not None and monitor.metric is None:
        yield ConfigError("belongs to metric only", path=f"{path}.threshold")


def _globs_and_links(monitor: MonitorConfig, path: str) -> Iterator[ConfigError]:
    if not monitor.name.isprintable():
        yield ConfigError("has a character that cannot be printed", path=f"{path}.name")
    for name in ("pipeline", "stream"):
        patterns = getattr(monitor, name)
        if not patterns or (isinstance(patterns, list) and "" in patterns):
            yield ConfigError('an empty glob matches nothing; leave it out, or write "*"', path=f"{path}.{name}")
    whole = next((name for name in ("duration", "failures", "lag") if getattr(monitor, name) is not None), None)
    if whole is not None and monitor.stream != "*":
        yield ConfigError(f"{whole} has no streams, so nothing would fire; leave it out", path=f"{path}.stream")
    unknown = [field for field in re.findall(r"\{(\w+)\}", monitor.link or "") if field not in _LINK_FIELDS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in _LINK_FIELDS)
        yield ConfigError(f"there is no {{{unknown[0]:.40}}}; there are {known}", path=f"{path}.link")
    if monitor.link is not None and not monitor.link.lower().startswith(("https://", "http://")):
        yield ConfigError("is not a URL; expected https:// or http://", path=f"{path}.link")


def _is_set(value: object) -> bool:
    return value is not None and value is not False  # 0 is a limit


def _limits(monitor: MonitorConfig, path: str) -> Iterator[ConfigError]:
    """Yield the limits of a monitor that fire at every value, or at none."""
    changes, threshold, duration = monitor.schema, monitor.threshold, monitor.duration
    if changes is not None and changes.breaking == changes.additive == "ignore":
        yield ConfigError("ignores every change", path=f"{path}.schema")
    limits = {
        "threshold": (None, None) if threshold is None else (threshold.under, threshold.over),
        "duration": (None, None) if duration is None else (_seconds(duration.under), _seconds(duration.over)),
    }
    for name, (under, over) in limits.items():
        if under is not None and over is not None and under > over:
            yield ConfigError("under is larger than over, so every value fires", path=f"{path}.{name}")
    if limits["duration"][0] == 0.0:
        yield ConfigError("no run is shorter", path=f"{path}.duration.under")


def _seconds(text: str | None) -> float | None:
    with suppress(ConfigError):  # it is reported where it stands
        return None if text is None else parse_duration(text)
    return None


def find_narrow_windows(monitors: Sequence[MonitorConfig]) -> Iterator[str]:
    """Yield a note on each window that cannot hold ``min_runs`` at the rhythm that a ``freshness`` monitor expects.

    Args:
        monitors: monitors without problems.
    """
    rhythms = [(config, parse_duration(config.freshness.every)) for config in monitors if config.freshness is not None]
    for monitor in monitors:
        failures, duration = monitor.failures, monitor.duration
        if failures is not None and failures.rate_over is not None:
            option, text, least, advice = "within", failures.within, failures.min_runs, " or use in_a_row"
        elif duration is not None and duration.p95_over is not None:
            option, text, least, advice = "against", duration.against, duration.min_runs, ""
        else:
            continue
        for other, every in rhythms:
            count = ceil(parse_duration(text) / every)
            if count < least and _share_pipelines(monitor, other):
                apart = f"where runs are {format_duration(every)} apart, as in {other.name}"
                holds = f"{option} of {text} holds {counted(count, 'run')}, and min_runs is {least}"
                yield f"{monitor.name} judges nothing {apart}: {holds}; widen {option}, lower min_runs{advice}"
                break


def _share_pipelines(monitor: MonitorConfig, other: MonitorConfig) -> bool:
    """Return whether a glob of a monitor matches one of another."""
    mine, others = ([each.pipeline] if isinstance(each.pipeline, str) else each.pipeline for each in (monitor, other))
    return any(fnmatchcase(a, b) or fnmatchcase(b, a) for a in mine for b in others)


def find_monitor_problems(path: str | os.PathLike[str]) -> tuple[MonitorsFile | None, list[ConfigError]]:
    """Read a file of monitors, and return it with all its problems; None if a problem leaves nothing to use.

    Raises:
        ConfigError: the file cannot be read, or is not of its format.
    """
    document, problems = configs.read(path)
    source = str(path)
    problems = configs.add_problems(problems, configs.find_problems(document, MonitorsFile, source))
    file, _, original = intact(document, MonitorsFile)
    if file is not None:
        problems += [
            ConfigError(error.reason, source, original(error.path)) for error in find_semantic_problems(file.monitors)
        ]
    return file, problems


def load_monitors(path: str | os.PathLike[str]) -> list[MonitorConfig]:
    """Read a file of monitors.

    Raises:
        ConfigError: the file cannot be read; ``ConfigProblems`` has all mistakes.
    """
    file, problems = find_monitor_problems(path)
    if problems or file is None:
        raise ConfigProblems(problems or [ConfigError("is not a file of monitors", str(path))])
    return file.monitors
