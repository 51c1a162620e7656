"""``balog watch silence``, ``acknowledge`` and ``status``: what people do about alerts."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import NamedTuple

import click

from balog.cli.shared import options
from balog.cli.shared.output import escaped, print_table, reporter, user_at_host, utc
from balog.common.errors import ConfigError
from balog.common.text import counted
from balog.event import Event, encode
from balog.topics import Message, open_topics
from balog.watch.alerts.alert_events import acknowledgement, parse_end
from balog.watch.alerts.alert_events import silence as silence_event
from balog.watch.state.active_state import active_series, active_silences, read_state


class OperatorPlace(NamedTuple):
    """A topic of a backend, and why an event goes there."""

    url: str
    topic: str
    why: str

    def put(self, event: Event) -> None:
        """Publish the event; it is durable then.

        Raises:
            ConfigError: the URL or the topic's name is invalid, or there is no such topic.
            TopicError: the topic cannot be written.
        """
        with open_topics(self.url) as topics:
            topic = topics.topic(self.topic)
            if not topic.exists():
                raise ConfigError(f"there is no topic {self.topic} yet, so no watcher reads it", self.url)
            topic.publish([Message(event.header.id, encode(event), None)])


_target = options.bundle(
    "target",
    OperatorPlace,
    click.option("--why", required=True, metavar="TEXT", help="Why, for people."),
    options.topics,
    click.option("--topic", required=True, metavar="NAME", help="Topic that the watchers read."),
)


@click.command("silence", short_help="Silence alerts for some time.")
@click.argument("match", metavar="NAME")
@click.argument("until", metavar="DURATION|TIME|end")
@_target
def silence(match: str, until: str, target: OperatorPlace) -> None:
    """Silence the alerts of a monitor, or of a key, for some time; NAME may be a glob.

    The silence is an event. Every watcher of the topic knows it, and so does the history. An alert that still fires at
    its end is sent then. `end` instead of a duration ends a silence of the same NAME.

    \b
    balog watch silence orders-arrive 2h --why "the shop is being moved" --topics local:topics --topic singer-events
    balog watch silence 'shop-*' 2026-11-24T18:00:00+01:00 --why migration --topics local:topics --topic singer-events
    balog watch silence orders-arrive end --why done --topics local:topics --topic singer-events
    """
    began = datetime.now(timezone.utc)
    ends = parse_end(until, began)
    event = silence_event(match, ends, target.why, user_at_host())
    target.put(event)
    is_over = f"{match}: a silence of this name, if there was one, has ended"
    reporter("balog watch silence")(f"{match}: silenced until {event.payload['until']}" if ends > began else is_over)


@click.command("acknowledge", short_help="Acknowledge alerts that fire.")
@click.argument("match", metavar="KEY")
@click.option("--for", "until", metavar="DURATION|TIME", help="Until when.  [default: until they resolve]")
@_target
def acknowledge(match: str, until: str | None, target: OperatorPlace) -> None:
    """Acknowledge the firing alerts of a key, or of a monitor; KEY may be a glob.

    The acknowledgement is an event. Every watcher of the topic knows it, and so does the history.

    \b
    balog watch acknowledge orders-arrive --why "on it" --topics local:topics --topic singer-events
    """
    ends = None if until is None else parse_end(until, datetime.now(timezone.utc))
    event = acknowledgement(match, ends, target.why, user_at_host())
    target.put(event)
    reporter("balog watch acknowledge")(f"{match}: acknowledged until " + (event.payload["until"] or "it resolves"))


@click.command("status", epilog="\b\nExit codes:\n0  read\n1  the state is damaged or out of reach\n2  wrong use")
@click.option("--state", "store", metavar="FILE|URL", default="watch.sqlite", show_default=True, help="The watcher's.")
@options.group("Consumer group of watchers that share a state in Redis.", "watch")
def status(store: str, group: str) -> None:
    """List the series that are not well and the silences, as the watcher has stored them. It may run meanwhile.

    \b
    balog watch status --state watch.sqlite
    balog watch status --state redis://localhost:6379/0
    """
    state = read_state(store, group)
    series, silences = active_series(state), active_silences(state)
    if series:
        rows = [
            (row.shown or "", row.severity, _time(row.since), escaped(row.key), escaped(row.reason)) for row in series
        ]
        print_table([("state", "severity", "since", "series", "reason"), *rows])
    if silences:
        print_table([("silence", "until"), *((escaped(match), _time(until)) for match, until in silences)])
    clock = f"; the clock is at {_time(state.clock)}" if state.clock else ""
    reporter("balog watch status")(
        f"{len(series)} of {len(state.series)} series not well, {counted(len(silences), 'silence')}{clock}"
    )


def _time(seconds: float) -> str:
    return utc(datetime.fromtimestamp(seconds, timezone.utc))
