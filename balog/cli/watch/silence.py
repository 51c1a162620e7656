"""``balog watch silence``: no notifications about an alert for some time."""

from __future__ import annotations

import click

from balog.cli.shared.output import reporter, user_at_host
from balog.cli.watch.operators import OperatorPlace, target_options, why
from balog.watch.alerts.alert_events import now, parse_end, silence

_report = reporter("balog watch silence")


@click.command("silence", short_help="Silence alerts for some time.")
@click.argument("match", metavar="NAME")
@click.argument("until", metavar="DURATION|TIME|end")
@why
@target_options
def command(match: str, until: str, why: str, target: OperatorPlace) -> None:
    """Silence the alerts of a monitor, or of a key, for some time; NAME may be a glob.

    The silence is an event. Every watcher of the topic knows it, and so does the history. An alert that still fires at
    its end is sent then. `end` instead of a duration ends a silence of the same NAME.

    \b
    balog watch silence orders-arrive 2h --why "the shop is being moved" --topics local:topics --topic singer-events
    balog watch silence 'shop-*' 2026-11-24T18:00:00+01:00 --why migration --topics local:topics --topic singer-events
    balog watch silence orders-arrive end --why done --topics local:topics --topic singer-events
    """
    began = now()
    ends = parse_end(until, began)
    event = silence(match, ends, why, user_at_host())
    target.put(event)
    is_over = f"{match}: a silence of this name, if there was one, has ended"
    _report(f"{match}: silenced until {event.payload['until']}" if ends > began else is_over)
