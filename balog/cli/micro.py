"""``balog micro``: the whole event service in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from balog.errors import BalogError
from balog.signals import StopSignals

if TYPE_CHECKING:
    from balog.delivery.micro import Micro

__all__ = ["command"]

_LOOK_SECONDS = 0.5
_MAX_LINES = 20


@click.command(
    "micro",
    epilog="\b\nExit codes:\n0  no event was refused, and the command ended with 0\n1  an event was refused\n"
    "2  wrong use\n*  else the command's own",
)
@click.option("--registry", metavar="PLACE", help="Schemas; without them, events of unknown types are taken.")
@click.option("--document", metavar="FILE", help="Streams, filters, tables and callbacks; else a topic for each type.")
@click.option("--data", metavar="FOLDER", help="Keep topics and versions there; else they go away at the end.")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: :8080; any free port with a command]")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD [ARG …]]")
def command(
    registry: str | None, document: str | None, data: str | None, listen: str | None, cmd: tuple[str, ...]
) -> None:
    """Run the event service with everything it stands on: topics, fallback, schemas and document in one folder.

    Events that are refused are told on stderr, with the path of each fault. http://localhost:8080/ shows what comes.
    With a command, the service lasts as long as it, and the command finds it in the variables BALOG_SERVICE and, for
    balog's logger, BALOG_OUTPUT: a check for CI that a program's events are what the schemas say.

    \b
    balog micro --registry schemas
    balog micro --registry schemas -- pytest tests
    balog micro --registry schemas -- tap-foo --config config.json
    """
    from balog.delivery.micro import Micro

    code = 0
    with Micro(registry, document, data=data, listen=listen or (":0" if cmd else ":8080")) as micro:
        before = len(micro.failed())  # of an earlier run, where --data has kept it
        if cmd:
            code = _run(cmd, micro.url)
        else:
            _say(f"listens at {micro.url}; events go to {micro.url}/v1/events")
            _wait(micro, before)
        failed = micro.failed()[before:]
        counts = micro.taken()
        kinds = ", ".join(f"{name} {count}" for name, count in counts.most_common(_MAX_LINES))
        _say(f"{counts.total()} events taken{f' ({kinds})' if kinds else ''}, {len(failed)} refused")
        if cmd:
            for one in failed[:_MAX_LINES]:
                _say(f"refused: {one}")
    sys.exit(code or bool(failed))


def _run(cmd: Sequence[str], url: str) -> int:
    environment = {"BALOG_OUTPUT": url, **os.environ, "BALOG_SERVICE": url}
    try:
        with subprocess.Popen(cmd, env=environment) as child, StopSignals(child.send_signal):
            code = child.wait()
    except OSError as error:
        raise BalogError(f"{cmd[0]} cannot be run: {error.strerror or error}") from None
    return 128 - code if code < 0 else code


def _wait(micro: Micro, told: int) -> None:
    """Wait for the end, and tell what is refused meanwhile."""
    import select

    with StopSignals() as stop:
        while stop.number is None:
            select.select([stop.wake], [], [], _LOOK_SECONDS)
            failed = micro.failed()
            for one in failed[told:]:
                _say(f"refused: {one}")
            told = len(failed)


def _say(message: str) -> None:
    click.echo(f"balog micro: {message}", err=True)
