"""``balog replay --failed``: patch the events that an event service rejected, and send them to it again."""

from __future__ import annotations

import os
import sys
import time

import click

from balog.cli.output import reporter
from balog.errors import ConfigError
from balog.event import Event, encode
from balog.expressions import Expression
from balog.secrets import Secret
from balog.signals import StopSignals
from balog.topics import open_topics
from balog.topics.redrive import Patch

__all__ = ["replay_failed"]

_report = reporter("balog replay")

_MAX_LINES = 20
_DRY_RUN = 1000


def replay_failed(
    url: str,
    service: str | None,
    token_file: str | None,
    patch: str | None,
    where: str | None,
    limit: int | None,
    dry_run: bool,
) -> None:
    """Send the rejected events again; exit with 1 if any stays.

    Args:
        url: the topics that hold the rejected events.
        service: URL of the service; None only for a dry run.
        token_file: file with the bearer token; None reads ``BALOG_TOKEN``.
        patch: file of changes; None for none.
        where: expression that selects events; None for all.
        limit: maximum number of events to read; None for all.
        dry_run: print the events instead of sending them.
    """
    from balog.delivery.api.failed_events import FAILED_EVENTS
    from balog.delivery.client import ServiceClient
    from balog.delivery.replay import FailedEventReplay

    if service is None and not dry_run:
        raise ConfigError("--failed needs --service, the URL of the service to send the events to")
    changes = Patch.load(patch) if patch is not None else Patch()
    condition = Expression(where) if where is not None else None
    began, reported = time.monotonic(), 0

    def complain(id: str, reason: str) -> None:
        nonlocal reported
        reported += 1
        if reported <= _MAX_LINES:
            _report(f"{id} stays: {reason}")

    def show(event: Event) -> None:
        if dry_run:
            click.echo(encode(event))

    with (
        open_topics(url) as topics,
        ServiceClient(service or "http://localhost", token=_token(token_file)) as client,
        StopSignals() as stop,
    ):
        replay = FailedEventReplay(topics.topic(FAILED_EVENTS), client, changes, condition, show, complain)
        counts = replay.dry_run(limit or _DRY_RUN) if dry_run else replay.run(limit, stop.came)
    if reported > _MAX_LINES:
        _report(f"and {reported - _MAX_LINES} more")
    verb = "would be sent" if dry_run else f"were sent in {time.monotonic() - began:.1f} s"
    _report(
        f"{counts.sent} events {verb}; {counts.left} stay: {counts.refused} rejected again, "
        f"{counts.invalid} not valid events, {counts.filtered} not selected"
    )
    if stop.number is not None:
        sys.exit(128 + stop.number)
    if counts.refused or counts.invalid:
        sys.exit(1)


def _token(file: str | None) -> Secret | None:
    if file is not None:
        return Secret(file=file)
    return Secret(env="BALOG_TOKEN") if os.environ.get("BALOG_TOKEN") else None
