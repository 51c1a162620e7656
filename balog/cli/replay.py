"""``balog replay``: send the events in a spool to their sinks, or rejected events to the service again."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from balog.cli.shared import options
from balog.cli.shared.output import FirstLines, age, exit_after, reporter
from balog.common import config as configs
from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.common.signals import StopSignals
from balog.common.text import counted
from balog.delivery.replay import Backlog, Plan, SpoolReplay, enter_folder, find_backlogs, plan, read_backlog, redrive
from balog.delivery.stats import SinkStats
from balog.event import Event, encode
from balog.filters import Expression
from balog.sinks import SinkConfig
from balog.topics import open_topics
from balog.topics.redrive import Patch

_report = reporter("balog replay")

_DRY_RUN = 1000  # failed events that a dry run reads without --limit


@click.command(
    epilog="\b\nExit codes:\n0  nothing is left, except events that running brokers or replays hold\n"
    "1  events are left\n2  wrong use, or a sink that can't be built; nothing was sent"
)
@click.argument("spool", type=options.FilePath(path_type=Path), required=False)
@click.option("--dead", "with_dead", is_flag=True, help="Also send the dead letters.")
@click.option("--dry-run", is_flag=True, help="Print what waits; send nothing.")
@options.config("Broker's config that builds the sinks.")
@click.option(
    "--failed", "url", metavar="URL", help="Instead of a spool: the topics with the events that a service rejected."
)
@click.option("--service", metavar="URL", help="With --failed: the service to send to; its token is in BALOG_TOKEN.")
@click.option("--patch", metavar="FILE", help='With --failed: changes to make first, {"set", "compute", "unset"}.')
@options.where("With --failed: only events for which this is true, such as payload.type = 'order'.")
@options.integer("--limit", help="With --failed: maximum number of events to read.")
def command(
    spool: Path | None,
    with_dead: bool,
    dry_run: bool,
    path: str | None,
    url: str | None,
    **of_failed: Any,
) -> None:
    """Send the events in SPOOL to their sinks, or the events that a service rejected to the service again.

    SPOOL is the folder of a broker's "spool". Events that a running broker or replay holds are left to it. An event
    leaves the spool when its sink has accepted it. The command ends when nothing is left, or no sink has accepted an
    event for a minute.

    \b
    balog replay spool --dry-run
    balog replay spool
    balog replay spool --config broker.json --dead
    balog replay --failed local:topics --patch patch.json --service http://localhost:8080

    With --failed, each event keeps its id. An event that is rejected again stays in the topic, for a better patch.
    """
    if url is not None:
        if spool is not None or with_dead or path is not None:
            raise click.UsageError("--failed replaces SPOOL, and does not go with --dead or --config")
        _replay_failed(url, dry_run, **of_failed)
        return
    if spool is None or any(given is not None for given in of_failed.values()):
        raise click.UsageError("give SPOOL, or --failed URL with its options")
    spool = spool.absolute()
    backlogs = find_backlogs(spool)
    if dry_run:
        for backlog in backlogs:
            click.echo(_line(backlog))
        return
    newer = _sinks(path)
    plans = [plan(backlog, newer) for backlog in backlogs if backlog.events or (with_dead and backlog.dead_letters)]
    if with_dead:
        for chosen in plans:
            _redrive(chosen.backlog)
    with StopSignals() as stop:
        code = _send(spool, plans, stop.came)
        for backlog in backlogs:
            if backlog.held:
                held = counted(backlog.held, "event", "are")
                _report(f"{backlog.name}: {held} held by a running broker or replay, which sends them")
        sys.exit(128 + stop.number if stop.number is not None else code)


def _replay_failed(
    url: str, dry_run: bool, service: str | None, patch: str | None, where: Expression | None, limit: int | None
) -> None:  # fmt: skip
    """Send the events that a service rejected to it again; exit with 1 if any stays."""
    from balog.service.client import ServiceClient
    from balog.service.failed_event_replay import FailedEventReplay
    from balog.service.intake.router import FAILED_EVENTS_TOPIC

    if service is None and not dry_run:
        raise ConfigError("--failed needs --service, the URL of the service to send the events to")
    changes = Patch.load(patch) if patch is not None else Patch()
    token = Secret(env="BALOG_TOKEN") if os.environ.get("BALOG_TOKEN") else None
    began, complaints = time.monotonic(), FirstLines(_report)

    def show(event: Event) -> None:
        if dry_run:
            click.echo(encode(event))

    with (
        open_topics(url) as topics,
        ServiceClient(service or "http://localhost", token=token) as client,
        StopSignals() as stop,
    ):
        replay = FailedEventReplay(
            topics.topic(FAILED_EVENTS_TOPIC),
            client,
            changes,
            where,
            show,
            lambda id, reason: complaints(f"{id} stays: {reason}"),
        )
        counts = replay.dry_run(limit or _DRY_RUN) if dry_run else replay.run(limit, stop.came)
    if complaints.hidden:
        _report(f"and {complaints.hidden} more")
    sent = counted(counts.sent, "event", "" if dry_run else "were")
    done = "would be sent" if dry_run else f"sent in {time.monotonic() - began:.1f} s"
    _report(
        f"{sent} {done}; {counted(counts.left, 'event', 'stay')}: {counts.refused} rejected again, "
        f"{counts.invalid} not valid, {counts.filtered} not selected"
    )
    exit_after(stop, failed=bool(counts.refused or counts.invalid))


def _sinks(path: str | None) -> Sequence[SinkConfig] | None:
    if path is None:
        return None
    from balog.broker.config import BrokerConfig

    return configs.load(path, BrokerConfig).sinks


def _redrive(backlog: Backlog) -> None:
    try:
        redrive(backlog)
    except OSError as error:
        _report(f"{backlog.name}: its dead letters stay: {error.strerror or error}")


def _send(spool: Path, plans: Sequence[Plan], should_stop: Callable[[], bool]) -> int:
    here, code, sent = os.getcwd(), 0, 0
    by_cwd = sorted(plans, key=lambda item: item.cwd or "")
    for cwd, group in itertools.groupby(by_cwd, key=lambda item: item.cwd or ""):
        chosen = list(group)
        os.chdir(here)
        enter_folder(cwd or None, _report)
        for item, stats in zip(chosen, SpoolReplay(spool, chosen, _report).run(should_stop)):
            code = _report_result(item, stats) or code
            sent += stats.delivered
    os.chdir(here)
    if not plans or sent:
        _report(f"{counted(sent, 'event', 'were')} sent" if plans else "no events wait")
    return code


def _report_result(item: Plan, stats: SinkStats) -> int:
    if left := read_backlog(item.backlog.folder).events:
        _report(f"{item.config.name}: {counted(left, 'event', 'wait')} in {item.backlog.folder}")
    if stats.dead:
        rejected = counted(stats.dead, "event", "were")
        _report(f"{item.config.name}: {rejected} rejected; see {item.backlog.folder / 'dead'}")
    return int(bool(left or stats.dead or stats.lost))


def _line(backlog: Backlog) -> str:
    parts = [f"{counted(backlog.events, 'event', 'wait')}, {counted(backlog.bytes, 'byte')}"]
    if backlog.oldest is not None:
        parts[0] += f", the oldest of {backlog.oldest:%Y-%m-%dT%H:%M:%SZ} ({age(backlog.oldest)})"
    if backlog.dead_letters:
        parts.append(counted(backlog.dead_letters, "dead letter"))
    if backlog.held:
        parts.append(f"{backlog.held} more are held by a running broker or replay")
    if backlog.problem:
        parts.append(f"give --config: {backlog.problem}")
    return f"{backlog.name}: " + "; ".join(parts)
