"""``balog watch preview``: what sinks would send for an alert."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import click
import msgspec

from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete_errors
from balog.cli.shared import options
from balog.cli.shared.output import escaped
from balog.common import config as configs
from balog.common.errors import ConfigError, EventError
from balog.event import Event, decode
from balog.filters import Expression
from balog.watch.alerts.alert_events import sample_alert

_MAX_ALERTS = 100


@click.command("preview", short_help="Print what sinks would send for an alert.")
@click.option("--sinks", "path", required=True, metavar="FILE", help="A broker's config, as of `balog watch --sinks`.")
@click.option("--alert", "file", type=click.File("rb"), metavar="FILE",
              help="Events of alerts, one a line; - for stdin.  [default: an example]")  # fmt: skip
@options.choice(
    "--state", of=("firing", "resolved", "acknowledged", "no_data"), default="firing", help="Of the example."
)
def command(path: str, file: IO[bytes] | None, state: Any) -> None:
    """Print what each sink of a config would send for an alert. Nothing is sent, and no secret is read or shown.

    \b
    balog watch preview --sinks sinks.yaml --state resolved
    balog watch monitors.yaml --source day.jsonl | balog watch preview --sinks sinks.yaml --alert -
    """
    with complete_errors(path):
        config = configs.load(path, BrokerConfig)
    alerts = [sample_alert(state)] if file is None else list(islice(_read(file), _MAX_ALERTS))
    filters = [_filter(path, f"$.sinks[{number}].where", sink.where) for number, sink in enumerate(config.sinks)]
    for event in alerts:
        for number, sink in enumerate(config.sinks):
            try:
                text = _preview(sink, filters[number], event)
            except ConfigError as error:
                raise ConfigError(error.reason, path, f"$.sinks[{number}].{error.path}") from None
            click.echo(escaped(f"# {sink.name}"))
            click.echo(escaped(text, keep="\n"))
            click.echo()
    if not alerts:
        click.echo("balog watch preview: there is no alert", err=True)
        sys.exit(1)


def _filter(path: str, field: str, text: str | None) -> Expression | None:
    try:
        return None if text is None else Expression(text)
    except ConfigError as error:
        raise ConfigError(error.reason, path, field) from None


def _preview(sink: Any, where: Expression | None, event: Event) -> str:
    if where is not None and not where.matches(event):
        return f"nothing: the event does not match {sink.where}"
    if not sink.takes(event):
        return f"nothing: the sink does not send the state {event.payload.get('state')}"
    text: str | None = sink.preview(event)
    if text is not None:
        return text
    return "the event, in the sink's own form:\n" + msgspec.json.format(bytes(event.raw_payload)).decode()


def _read(file: IO[bytes]) -> Iterator[Event]:
    source = options.name_of(file)
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            event = decode(line)
        except EventError as error:
            raise ConfigError(f"{source}: line {number}: {error}") from None
        if event.cls_type == "alert":
            yield event
