"""``balog config``: push, compare and roll back versions of the control document."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from balog.cli.shared import options
from balog.cli.shared.output import exit_if_invalid, print_table, user_at_host, utc
from balog.common import config as configs
from balog.common.errors import ConfigError
from balog.common.storage import Options
from balog.common.text import counted, cut, printable
from balog.service.control.diff import DocumentChange, diff
from balog.service.control.remote import Control, open_control
from balog.service.control.store import DocumentVersion, Pushed, ServiceStatus
from balog.service.control.validation import read_document

_SILENT = 6.0
_LOOK_AGAIN = 0.5  # seconds
_MAX_SHOWN = 120


class ControlPlace(NamedTuple):
    """The version store that the options name. A service gets the token of ``$BALOG_TOKEN``."""

    place: str
    options_file: str | None

    @contextmanager
    def open(self) -> Iterator[Control]:
        """Open the store for the time of a block."""
        if self.options_file and self.place.startswith(("http://", "https://")):
            raise ConfigError("--options is for a store; a service has its own")
        file = self.options_file
        store_options = configs.load(file, Options) if file else None
        with closing(open_control(self.place, store_options, os.environ.get("BALOG_TOKEN"))) as control:
            yield control


_control = options.bundle(
    "store",
    ControlPlace,
    click.option(
        "--control",
        "place",
        required=True,
        metavar="PLACE",
        help="Store of the versions: a folder, s3://…, or a service, http(s)://…, with its token in BALOG_TOKEN.",
    ),
    options.store,
)
_message = click.option("-m", "--message", default="", metavar="TEXT", help="Reason for the change.")


@click.group(
    "config",
    cls=options.CommandGroup,
    epilog="\b\nExit codes:\n0  done\n1  rejected, or a service has an error\n2  wrong use",
)
def command() -> None:
    """Push, compare and roll back versions of the control document, which configures event services.

    \b
    balog config push streams.json -m "orders get a rate" --control s3://bucket/control
    balog config status --control s3://bucket/control
    balog config diff 11 12 --control s3://bucket/control
    balog config rollback --control s3://bucket/control
    """


@command.command(short_help="Make a document the newest version.")
@click.argument("file", metavar="FILE", type=options.FilePath(path_type=Path))
@_message
@click.option("--dry-run", is_flag=True, help="Check, print what would change, and push nothing.")
@options.integer("--base", least=0, help="The version that you edited; the command fails if there is a newer one.")
@_control
def push(file: Path, message: str, dry_run: bool, base: int | None, store: ControlPlace) -> None:
    """Push the document in FILE as the newest version. Every service then applies it.

    An invalid document is rejected with all of its errors. Secrets that it names need not exist here. Without --base,
    the new version follows the newest one.
    """
    data = _checked(file)
    with store.open() as control:
        head = control.head()
        changes = diff(control.document(head.sha) if head else b"{}", data)
        if dry_run:
            _show_changes(changes)
            count = counted(len(changes), "change")
            click.echo(f"{file}: ok; {count} to version {head.number if head else 0}; nothing was pushed")
            return
        newest = base if base is not None else head.number if head else 0
        entry = control.push(data, who=user_at_host(), message=message, base=newest)
    if head is not None and entry.number == head.number:
        click.echo(f"version {entry.number} is this document already")
    else:
        click.echo(f"version {entry.number}: {counted(len(changes), 'change')}")
    _exit_if_rejected(entry)


@command.command("diff", short_help="Show the differences between two versions or files.")
@click.argument("old", required=False, metavar="[OLD")
@click.argument("new", required=False, metavar="[NEW]]")
@_control
def diff_command(old: str | None, new: str | None, store: ControlPlace) -> None:
    """Show the differences between OLD and NEW, each the number of a version or a file.

    With one argument, the command compares it with the newest version; with none, the newest with the one before.
    Version 0 is the empty document. Parts are matched by their names. Exits with 1 if there is a difference.
    """
    with store.open() as control:
        head = control.head()
        newest = head.number if head else 0
        if old is None:
            old = str(max(newest - 1, 0))
        elif new is None and not old.isdigit():
            old, new = str(newest), old
        changes = diff(_document(control, old), _document(control, new if new is not None else str(newest)))
    _show_changes(changes)
    sys.exit(1 if changes else 0)


@command.command(short_help="List the versions, the newest first.")
@options.integer("--limit", most=10_000, default=20, help="Maximum number of versions.")
@_control
def history(limit: int, store: ControlPlace) -> None:
    """List the versions: number, time, author, action, first digits of the document's SHA-256, and reason."""
    with store.open() as control:
        entries = control.entries(limit)
    rows = [("VERSION", "WHEN", "WHO", "WHAT", "DOCUMENT", "WHY")]
    rows += [
        (str(entry.number), utc(entry.when), _line(entry.who), _action(entry), entry.sha[:12], _line(entry.message))
        for entry in entries
    ]
    print_table(rows)


@command.command(short_help="Print a version's document.")
@click.argument("number", required=False, type=click.IntRange(min=0))
@_control
def show(number: int | None, store: ControlPlace) -> None:
    """Print the document of version NUMBER (default: the newest) as JSON that you can edit and push."""
    with store.open() as control:
        if number is None:
            head = control.head()
            data = control.document(head.sha) if head else b"{}"
        else:
            data = _document(control, str(number))
    click.echo(msgspec.json.format(data, indent=2))


@command.command(short_help="Push the document of an older version again.")
@click.argument("number", required=False, type=click.IntRange(min=0))
@_message
@_control
def rollback(number: int | None, message: str, store: ControlPlace) -> None:
    """Push the document of version NUMBER as a new version; by default, the last document that differs."""
    with store.open() as control:
        head = control.head()
        newest = head.number if head else 0
        entry = control.rollback(number, who=user_at_host(), message=message, base=newest)
    if head is not None and entry.number == head.number:
        click.echo(f"version {entry.number} has this document already")
    else:
        click.echo(f"version {entry.number}: the document of version {entry.origin} again")
    _exit_if_rejected(entry)


@command.command(short_help="Show the version that each service applied.")
@options.seconds(
    "--wait", most=3600, default=0.0, help="Wait for services that are behind, for so many seconds at most."
)
@_control
def status(wait: float, store: ControlPlace) -> None:
    """Show the version and the health of each service that reported in the last day.

    Exits with 1 if a service is behind, has rejected the newest version, has a job with an error, or has missed six
    reports. A service that was stopped is healthy. Use --wait right after a push.
    """
    deadline = time.monotonic() + wait
    with store.open() as control:
        while True:
            head, services = control.head(), control.services()
            newest = head.number if head else 0
            is_any_behind = any(service.head < newest and service.state != "stopped" for service in services)
            if not is_any_behind or time.monotonic() >= deadline:
                break
            time.sleep(min(_LOOK_AGAIN, max(deadline - time.monotonic(), 0.0)))
    errors = {service.service: _errors(service, newest) for service in services}
    click.echo(f"newest: version {newest}" + (f", {utc(head.when)} by {_line(head.who)}" if head else ""))
    rows = [("SERVICE", "VERSION", "STATE", "REPORTED", "JOBS", "TROUBLE")]
    for info in services:
        reasons = "; ".join(errors[info.service]) or "-"
        rows.append((_line(info.service), str(info.number), info.state, utc(info.when), str(len(info.jobs)), reasons))
    if services:
        print_table(rows)
    else:
        click.echo("no service has reported in the last day")
    sys.exit(1 if any(errors.values()) else 0)


def _exit_if_rejected(entry: DocumentVersion) -> None:
    """Exit with the reason if the service behind the API could not apply the version."""
    if isinstance(entry, Pushed) and entry.applied.state == "refused":
        click.echo(f"the service keeps version {entry.applied.number}: {_line(entry.applied.reason)}", err=True)
        sys.exit(1)


def _errors(status: ServiceStatus, newest: int) -> list[str]:
    """Return the errors of a service, each as a clause."""
    if status.state == "stopped":
        return []
    reasons = []
    silent = (datetime.now(timezone.utc) - status.when).total_seconds()
    if silent > _SILENT * status.every:
        reasons.append(f"silent for {silent:.0f} s")
    if status.state == "refused":
        reasons.append(_line(status.reason))
    elif status.number < newest:
        reasons.append(f"behind by {newest - status.number}" + (f": {_line(status.reason)}" if status.reason else ""))
    reasons += [f"{job.kind} {_line(job.name)}: {_line(job.error)}" for job in status.jobs if job.error]
    return reasons


def _checked(file: Path) -> bytes:
    """Return a valid document as JSON; print the problems of an invalid one and exit."""
    data = msgspec.json.encode(configs.load(file, Any, variables=False))
    _, problems = read_document(data, str(file))
    exit_if_invalid(file, problems, 1, "; nothing was pushed")
    return data


def _document(control: Control, named: str) -> bytes:
    """Return the document of a version or a file as JSON."""
    if not named.isdigit():
        return msgspec.json.encode(configs.load(named, dict[str, Any], variables=False))
    return control.document(control.entry(int(named)).sha) if int(named) else b"{}"


def _show_changes(changes: Iterable[DocumentChange]) -> None:
    for change in changes:
        if change.kind != "added":
            _show_change("-", "red", change, change.old)
        if change.kind != "removed":
            _show_change("+", "green", change, change.new)


def _show_change(sign: str, colour: str, change: DocumentChange, value: Any) -> None:
    text = f"{sign} {change.path}{' in order' if change.kind == 'moved' else ''}: {msgspec.json.encode(value).decode()}"
    click.secho(printable(text), fg=colour)


def _action(entry: DocumentVersion) -> str:
    return entry.action if entry.origin is None else f"{entry.action} to {entry.origin}"


def _line(text: str) -> str:
    shown = printable(text, " ")
    return cut(shown, _MAX_SHOWN)
