"""``balog replay --failed``: what an event service refused, mended and sent to it again."""

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
    """Do it; ends the process with 1 when something stays."""
    from balog.delivery.api.failed_events import FAILED_EVENTS
    from balog.delivery.client import Client
    from balog.delivery.replay import Replay

    if service is None and not dry_run:
        raise ConfigError("--failed wants --service, the URL of the service that is to take the events")
    mending = Patch.load(patch) if patch is not None else Patch()
    condition = Expression(where) if where is not None else None
    began, told = time.monotonic(), 0

    def complain(id: str, reason: str) -> None:
        nonlocal told
        told += 1
        if told <= _MAX_LINES:
            _report(f"{id} stays: {reason}")

    def show(event: Event) -> None:
        if dry_run:
            click.echo(encode(event))

    with (
        open_topics(url) as home,
        Client(service or "http://localhost", token=_token(token_file)) as client,
        StopSignals() as stop,
    ):
        replaying = Replay(home.topic(FAILED_EVENTS), client, mending, condition, show, complain)
        counts = replaying.dry_run(limit or _DRY_RUN) if dry_run else replaying.run(limit, stop.came)
    if told > _MAX_LINES:
        _report(f"and {told - _MAX_LINES} more")
    verb = "would be sent" if dry_run else f"were sent in {time.monotonic() - began:.1f} s"
    _report(
        f"{counts.sent} events {verb}; {counts.left} stay: {counts.refused} refused again, "
        f"{counts.unmended} no events, {counts.unwanted} not asked for"
    )
    if stop.number is not None:
        sys.exit(128 + stop.number)
    if counts.refused or counts.unmended:
        sys.exit(1)


def _token(file: str | None) -> Secret | None:
    if file is not None:
        return Secret(file=file)
    return Secret(env="BALOG_TOKEN") if os.environ.get("BALOG_TOKEN") else None
