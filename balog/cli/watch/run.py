"""``balog watch run``: run monitors on topics or files."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete_errors
from balog.broker.messages.descriptors import let_go
from balog.cli.shared import options
from balog.cli.shared.engines import EngineOptions, set_up_logging, summary
from balog.cli.shared.output import exit_if_invalid, reporter
from balog.common import config as configs
from balog.common.errors import BalogError, ConfigError
from balog.common.text import counted
from balog.event import encode
from balog.filters.functions import parse_time
from balog.watch.alerts.alert_events import as_event
from balog.watch.alerts.targets import LineTarget, SinkTarget
from balog.watch.config.config_check import find_monitor_problems, load_monitors
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation
from balog.watch.source import SourceEvents, evaluate_events
from balog.watch.state.leadership import LeaseRenewal, wait_to_lead
from balog.watch.state.redis import SCHEMES, RedisWatchStore, open_redis_store
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.steady_clock import SteadyClock
from balog.watch.stream import TopicWatch
from balog.watch.watcher import Watcher, WatchStore

_report = reporter("balog watch")

DRAIN_SECONDS = 10.0
"""Seconds that sinks have at the end for queued alerts."""

_FOR_TOPICS = ("state", "sinks_file", "group", "until_empty", "lease", "listen")


class _Place(NamedTuple):
    """Where the events come from."""

    url: str | None
    topics: tuple[str, ...]
    sources: tuple[Path, ...]


place_options = options.bundle(
    "inputs",
    _Place,
    click.option("--topics", "url", metavar="URL", help=options.TOPICS_HELP),
    options.repeated("--topic", "topics", metavar="NAME", help="A topic whose events are watched."),
    options.repeated(
        "--source",
        "sources",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file of events, evaluated once; the clock follows the events.",
    ),
)


@click.command(
    "run",
    epilog="\b\nExit codes:\n0      done, or stopped when asked\n1      failed\n"
    "2      wrong use, or a wrong file of monitors\n128+n  ended at once by a second signal n",
)
@click.argument("path", metavar="MONITORS", type=click.Path(path_type=Path))
@place_options
@click.option(
    "--state",
    metavar="FILE|URL",
    default="watch.sqlite",
    show_default=True,
    help="With --topics: file with the state of the monitors; redis://HOST:PORT/DB for several instances.",
)
@click.option(
    "--sinks", "sinks_file", metavar="FILE", help="With --topics: a broker's config; alerts go to its sinks, too."
)
@options.group("Consumer group of the watcher.", "watch")
@click.option("--until", metavar="TIME", help="Only events before this time.")
@click.option("--until-empty", is_flag=True, help="Exit when the group has no events left.")
@options.seconds(
    "--lease", least=0.1, most=12 * 3600, default=30.0, help="Time until the events of a killed watcher come again."
)
@click.option("--listen", metavar="HOST:PORT", help="Serve /metrics, /health and /ready at this address.")
def command(
    path: Path,
    inputs: _Place,
    state: str,
    sinks_file: str | None,
    group: str,
    until: str | None,
    until_empty: bool,
    lease: float,
    listen: str | None,
) -> None:
    """Run the monitors of MONITORS on topics, or once on files. Alerts are events on stdout, one a line.

    With --topics, the state, the alerts to send and the ids of handled events are kept in one file. The file of
    monitors is read again when it changes; a wrong one is reported, and the old one stays in use.

    \b
    balog watch monitors.yaml --topics local:topics --topic singer-events
    balog watch monitors.yaml --topics kafka:localhost:9092 --topic singer-events --sinks sinks.yaml --state /var/lib/w
    balog watch monitors.yaml --source archive/day.jsonl --until 2026-11-21
    """
    monitors = _load(path)
    if inputs.sources and (inputs.url is not None or inputs.topics):
        raise ConfigError("--source and --topics exclude each other; run the command twice")
    if inputs.sources:
        _check_unused()
        _watch_files(monitors, inputs.sources, until)
        return
    if inputs.url is None or not inputs.topics:
        raise ConfigError("nothing to watch; name topics with --topics URL --topic NAME, or files with --source")
    if until is not None:
        raise ConfigError("--until belongs to --source")
    engine_options = EngineOptions(inputs.url, until_empty, 1, lease, "none:", listen)
    parts = _Parts(path, monitors, engine_options, inputs.topics, group, sinks_file)
    if not state.startswith(SCHEMES):
        sqlite = SqliteWatchStore(state)
        with closing(sqlite):
            sqlite.claim()
            _watch_topics(parts, sqlite, None)
        return
    store = open_redis_store(state, group, lease)
    with closing(store):
        if until_empty and not store.claim():
            raise ConfigError("another instance leads, and it has the events; leave out --until-empty", "--state")
        while until_empty or wait_to_lead(store, _report):
            if not _watch_topics(parts, store, store):
                store.release()
                break
            _report("another instance leads; this one has stopped")


def _check_unused() -> None:
    """Raise ConfigError for an option that would do nothing with --source."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in _FOR_TOPICS and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise ConfigError(f"{option.opts[-1]} belongs to --topics; leave it out with --source")


def _load(path: Path) -> list[MonitorConfig]:
    file, problems = find_monitor_problems(path)
    exit_if_invalid(path, problems, 2)
    assert file is not None  # noqa: S101
    return file.monitors


def _watch_files(monitors: list[MonitorConfig], sources: tuple[Path, ...], until: str | None) -> None:
    for monitor in monitors:
        if monitor.lag is not None:
            _report(f"{monitor.name}: files have no values for lag; it stays silent")
    source = SourceEvents(sources)
    end = None if until is None else parse_time(until)
    if until is not None and end is None:
        raise ConfigError(f"--until {until!r:.60} is not a time; expected a date or RFC 3339")
    if end is None and (ahead := sum(event.header.timestamp.timestamp() > time.time() for event in source.events)):
        _report(f"{counted(ahead, 'event')} from the future moved the clock; --until TIME leaves out later events")
    alerts = 0
    for alert in evaluate_events(Evaluation(monitors), source.events, end.timestamp() if end else None):
        click.echo(encode(as_event(alert)))
        alerts += 1
    if source.invalid_lines:
        _report(f"left out {counted(source.invalid_lines, 'line')} without an event")
    _report(f"{counted(len(source.events), 'event')}, {counted(alerts, 'alert')}")


class _Parts(NamedTuple):
    """What a watcher of topics is made of, each time that it becomes the leader."""

    path: Path
    monitors: list[MonitorConfig]
    engine_options: EngineOptions
    topics: tuple[str, ...]
    group: str
    sinks_file: str | None


def _watch_topics(parts: _Parts, store: WatchStore, lease: RedisWatchStore | None) -> bool:
    """Watch until stopped. Return whether the lease was lost.

    Raises:
        BalogError: standard output was closed.
    """
    from balog.topics import open_topics

    hooks = set_up_logging("watch")
    lines = LineTarget()
    renewal = None if lease is None else LeaseRenewal(lease, _report)
    with ExitStack() as stack:
        if renewal is not None:
            stack.enter_context(renewal)  # before the state is loaded, which takes its time
        monitors = parts.monitors if lease is None else _read_again(parts)
        sinks = _open_sinks(parts.sinks_file, stack)
        watcher = Watcher(monitors, store, {"stdout": lines, **sinks}, SteadyClock())
        stack.callback(_finish, sinks, watcher, renewal)
        topics = stack.enter_context(open_topics(parts.engine_options.url))
        watch = TopicWatch(watcher, topics, parts.topics, parts.group, parts.path, _report)
        threads = len(set(parts.topics))
        engine = stack.enter_context(
            parts.engine_options.open(watch.hub, None, parts.group, [*hooks, *watch.hooks], concurrency=threads)
        )
        stack.enter_context(watch)
        lines.on_close = engine.stop
        if renewal is not None:
            renewal.on_lost = engine.stop
        try:
            if not lines.is_closed and not (renewal is not None and renewal.is_lost):
                watch.wait_for_leases(2 * parts.engine_options.lease)
                engine.run(parts.engine_options.until_empty)
            if parts.engine_options.until_empty:
                watch.step()
        finally:
            if sys.exc_info()[0] is None or engine.counts.received:
                _report(summary(engine.counts))
    if lines.is_closed:
        let_go(1)  # or Python complains when it flushes at its end
        raise BalogError("standard output was closed; the next start sends the alerts that were not written")
    return renewal is not None and renewal.is_lost


def _open_sinks(path: str | None, stack: ExitStack) -> dict[str, SinkTarget]:
    if path is None:
        return {}
    with complete_errors(path):
        config = configs.load(path, BrokerConfig)
        target = SinkTarget(config.sinks, config.spool, _report)
    stack.callback(target.close, DRAIN_SECONDS)
    return {"sinks": target}


def _finish(sinks: dict[str, SinkTarget], watcher: Watcher, renewal: LeaseRenewal | None) -> None:
    """Deliver what is queued, and mark what was delivered, so that the next start does not send it again.

    If another instance leads, it delivers.
    """
    is_lost = renewal is not None and renewal.is_lost
    for sink in sinks.values():
        sink.close(0.0 if is_lost else DRAIN_SECONDS)
    if not is_lost:
        watcher.flush()


def _read_again(parts: _Parts) -> list[MonitorConfig]:
    """Return the monitors of today: the former leader has used them, and the state is theirs."""
    try:
        return load_monitors(parts.path)
    except ConfigError as error:
        _report(f"the monitors were not changed: {error}")
        return parts.monitors
