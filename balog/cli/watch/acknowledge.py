"""``balog watch acknowledge``: somebody looks after an alert."""

from __future__ import annotations

import click

from balog.cli.shared.output import reporter, user_at_host
from balog.cli.watch.operators import OperatorPlace, target_options, why
from balog.watch.alerts.alert_events import acknowledgement, now, parse_end

_report = reporter("balog watch acknowledge")


@click.command("acknowledge", short_help="Acknowledge alerts that fire.")
@click.argument("match", metavar="KEY")
@click.option("--for", "until", metavar="DURATION|TIME", help="Until when.  [default: until they resolve]")
@why
@target_options
def command(match: str, until: str | None, why: str, target: OperatorPlace) -> None:
    """Acknowledge the firing alerts of a key, or of a monitor; KEY may be a glob.

    The acknowledgement is an event. Every watcher of the topic knows it, and so does the history.

    \b
    balog watch acknowledge orders-arrive --why "on it" --topics local:topics --topic singer-events
    """
    ends = None if until is None else parse_end(until, now())
    event = acknowledgement(match, ends, why, user_at_host())
    target.put(event)
    _report(f"{match}: acknowledged until " + (event.payload["until"] or "it resolves"))
