"""``balog broker``: send the events in a Singer stream to sinks."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import click
import msgspec

from balog.broker.broker import EXIT_CODES, run_broker
from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete_errors
from balog.broker.dry_run import Diverted, offline
from balog.cli.shared import options
from balog.common import config as configs
from balog.sinks import Delivery


@click.command(epilog="\b\nExit codes:\n" + EXIT_CODES)
@options.config("The broker's config, as JSON.", required=True)
@click.option("--strip", is_flag=True, help="Remove LOG messages from the stream; most targets reject them.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Send nothing; print on stderr what each sink would get.")
@options.verbose
def command(path: str, strip: bool, is_dry: bool, is_verbose: bool) -> None:
    """Send the events in a Singer stream to sinks.

    The broker copies a Singer stream from stdin to stdout byte for byte. It turns LOG messages into events and sends
    them to the sinks of the config. A sink that fails never delays the stream.

    \b
    tap | balog broker --config broker.json | target

    \b
    broker.json:
      {"sinks": [
        {"type": "topic", "url": "local:topics", "topic": "singer-events"},
        {"type": "store", "path": "archive", "topic": "singer-events"}
      ]}
    """
    with complete_errors(path):
        config = configs.load(path, BrokerConfig)
    if strip:
        config = msgspec.structs.replace(config, strip=True)
    sinks = [Diverted(sink, _printer(sink.name)) for sink in config.sinks] if is_dry else None
    with ExitStack() as stack:
        if is_dry:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="balog-dry-run-"))
            config = offline(config, os.path.join(folder, "quarantine"))
        stack.enter_context(complete_errors(path))
        code = run_broker(config, is_verbose=is_verbose, sinks=sinks)
    sys.exit(code)


def _printer(name: str) -> Callable[[Sequence[Delivery]], None]:
    def show(batch: Sequence[Delivery]) -> None:
        for delivery in batch:
            click.echo(f"{name} would get {delivery.body.decode('utf-8', 'replace')}", err=True)

    return show
