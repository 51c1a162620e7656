"""``balog micro``: the whole event service in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from balog.cli.shared.output import reporter
from balog.common.errors import BalogError
from balog.common.signals import StopSignals
from balog.common.text import counted

if TYPE_CHECKING:
    from balog.service.micro import Micro

_report = reporter("balog micro")

_LOOK_SECONDS = 0.5
_MAX_LINES = 20


@click.command(
    "micro",
    epilog="\b\nExit codes:\n0  no event was rejected, and the command exited with 0\n1  an event was rejected\n"
    "2  wrong use\n*  otherwise the exit code of the command",
)
@click.option(
    "--registry", metavar="PLACE", help="Registry of schemas. Without one, events of unknown types are accepted."
)
@click.option(
    "--document",
    metavar="FILE",
    help="Control document: streams, filters, tables, callbacks. Without one, each type has a topic.",
)
@click.option(
    "--data", metavar="FOLDER", help="Keep topics and versions in this folder. Without it, they are deleted at the end."
)
@click.option(
    "--listen", metavar="HOST:PORT", help="Address to listen on.  [default: :8080; with a command, a free port]"
)
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD [ARG …]]")
def command(
    registry: str | None, document: str | None, data: str | None, listen: str | None, cmd: tuple[str, ...]
) -> None:
    """Run the event service with everything that it needs: topics, fallback, schemas and document in one folder.

    Rejected events are printed on stderr, with the path of each error. http://localhost:8080/ shows accepted events.
    With CMD, the service runs until CMD ends; the variables BALOG_SERVICE and, for balog's logger, BALOG_OUTPUT name
    the service. Use this in CI to check that a program's events match the schemas.

    \b
    balog micro --registry schemas
    balog micro --registry schemas -- pytest tests
    balog micro --registry schemas -- tap-foo --config config.json
    """
    from balog.service.micro import Micro

    code = 0
    with Micro(registry, document, data=data, listen=listen or (":0" if cmd else ":8080")) as micro:
        before = len(micro.failed())  # from an earlier run with the same --data
        if cmd:
            code = _run(cmd, micro.url)
        else:
            _report(f"listens at {micro.url}; events go to {micro.url}/v1/events")
            _wait(micro, before)
        failed = micro.failed()[before:]
        counts = micro.taken()
        kinds = ", ".join(f"{name} {count}" for name, count in counts.most_common(_MAX_LINES))
        unkept = micro.unkept()
        rejected = len(failed) + unkept.total()
        _report(f"{counted(counts.total(), 'event')} accepted{f' ({kinds})' if kinds else ''}, {rejected} rejected")
        for status, count in unkept.items():
            _report(f"{counted(count, 'request or event', 'were')} rejected with {status}")
        if cmd:
            for event in failed[:_MAX_LINES]:
                _report(f"rejected: {event}")
    sys.exit(code or bool(rejected))


def _run(cmd: Sequence[str], url: str) -> int:
    environment = {"BALOG_OUTPUT": url, **os.environ, "BALOG_SERVICE": url}
    try:
        with subprocess.Popen(cmd, env=environment) as child, StopSignals(child.send_signal):
            code = child.wait()
    except OSError as error:
        raise BalogError(f"{cmd[0]} cannot be run: {error.strerror or error}") from None
    return 128 - code if code < 0 else code


def _wait(micro: Micro, reported: int) -> None:
    """Wait for a stop signal; print events as they are rejected."""
    import select

    with StopSignals() as stop:
        while stop.number is None:
            select.select([stop.wake], [], [], _LOOK_SECONDS)
            failed = micro.failed()
            for event in failed[reported:]:
                _report(f"rejected: {event}")
            reported = len(failed)
