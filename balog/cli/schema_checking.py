"""``balog schema check`` and ``diff``: may a version follow another one, and what is new in it."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, get_args

import click
import msgspec

from balog.cli.output import print_table, reporter
from balog.cli.registries import name_of, open_named, registry_options
from balog.errors import ConfigError, EventError
from balog.registry import Registry, Schema, make_validator
from balog.registry.comparing import CompatibilityReport, Mode, compare, compare_history, least_version
from balog.registry.comparing.comparison import document_of
from balog.registry.comparing.diff import differences
from balog.registry.comparing.document import path_of
from balog.registry.names import order, parse_file_name
from balog.registry.samples import read_samples
from balog.topics import open_topics
from balog.topics.inspection import look

__all__ = ["check", "diff"]

_report = reporter("balog schema")

_MOST_TOLD = 20


class _Tried(msgspec.Struct, frozen=True):
    """A stored event that the new version refuses, and where; ``place`` is its file and line, or its message."""

    place: str
    path: str
    reason: str


class _Events(msgspec.Struct):
    """What became of stored events: ``others`` were of other types."""

    tried: int = 0
    failed: int = 0
    others: int = 0
    faults: list[_Tried] = []


@click.command(
    "check",
    short_help="May a version follow another one, or a type's history?",
    epilog="\b\nExit codes:\n0  compatible\n1  not, or by too small a step, or a stored event is refused\n2  wrong use",
)
@registry_options
@click.argument("schemas", nargs=-1, required=True, metavar="[OLD] NEW")
@click.option("--type", metavar="NAME", help="NEW's type.  [default: its file's folder]")
@click.option("--message", default="", metavar="NAME", help="Of a .proto file with several: the message.")
@click.option(
    "--mode",
    type=click.Choice(get_args(Mode)),
    default="backward",
    show_default=True,
    help="Who must still understand whom: backward, the new version the old events.",
)
@click.option(
    "--open/--strict",
    "is_open",
    default=True,
    help="Whether an optional property may be added to an open model.  [default: open]",
)
@click.option(
    "--events", multiple=True, type=click.File("rb"), metavar="FILE", help="Try NEW on these, too. Repeatable."
)
@click.option("--topics", "url", metavar="URL", help="With --topic: where it is (local:PATH, sqs:REGION …).")
@click.option("--topic", metavar="NAME", help="Try NEW on the newest events of a topic, too.")
@click.option("--last", type=click.IntRange(min=1), default=1000, show_default=True, help="How many of each.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(
    place: str | None,
    options: str | None,
    schemas: Sequence[str],
    type: str | None,
    message: str,
    mode: Mode,
    is_open: bool,
    events: Sequence[IO[bytes]],
    url: str | None,
    topic: str | None,
    last: int,
    as_json: bool,
) -> None:
    """Tell whether NEW may follow OLD, or all versions that a registry has.

    OLD and NEW are files (JSON Schema or .proto), or TYPE/VERSION of a registry. Judged are JSON, protobuf's wire and
    the tables; what breaks comes with a payload that one version takes and the other refuses. What could not be decided
    counts as not compatible.

    \b
    balog schema check order/1.0.0.json order/1.1.0.json
    balog schema check order/1.1.0.json --registry schemas --mode full_transitive
    balog schema check order/1.0.0 draft.json --registry schemas --events yesterday.jsonl.gz
    balog schema check draft.json --type order --registry schemas --topics local:topics --topic orders
    """
    if len(schemas) > 2:
        raise ConfigError("want NEW, or OLD and NEW")
    if (url is None) != (topic is None):
        raise ConfigError("--topics and --topic go together")
    with open_named(place, options) as registry:
        new = _schema(schemas[-1], registry, type, message)
        if len(schemas) == 2:
            history = [_schema(schemas[0], registry, new.type, message)]
            verdict = compare(history[0], new, mode, open=is_open)
        else:
            history = _history(registry, new, place)
            verdict = compare_history(history, new, mode, open=is_open)
    least = least_version(history, verdict) if all(one.version for one in history) else None
    too_small = bool(least and new.version) and order(new.version) < order(least)
    tried = _try(new, events, url, topic, last) if events or url else None
    if as_json:
        click.echo(_as_json(new, verdict, least, tried))
    else:
        _print(verdict)
        _summarize(new, verdict, mode, least, too_small, tried)
    if not verdict.compatible or too_small or (tried is not None and tried.failed):
        sys.exit(1)


@click.command(
    "diff",
    short_help="What is new in a version, in words.",
    epilog="\b\nExit codes:\n0  done, with or without differences\n2  wrong use",
)
@registry_options
@click.argument("old")
@click.argument("new")
@click.option("--message", default="", metavar="NAME", help="Of a .proto file with several: the message.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def diff(place: str | None, options: str | None, old: str, new: str, message: str, as_json: bool) -> None:
    """Tell what changed from OLD to NEW: files, or TYPE/VERSION of a registry.

    \b
    balog schema diff order/1.0.0.json order/1.1.0.json
    balog schema diff order/1.0.0 order/1.1.0 --registry schemas
    """
    with open_named(place, options) as registry:
        before, after = (document_of(_schema(one, registry, None, message)) for one in (old, new))
    changes = differences(before, after)
    rows = [("PATH", "WHAT")]
    for change in changes:
        row = {"path": path_of(change.path), "reason": change.reason}
        if as_json:
            click.echo(msgspec.json.encode({**row, "narrows": change.narrows, "widens": change.widens}))
        rows.append((row["path"], row["reason"]))
    if not as_json and changes:
        print_table(rows)


def _schema(said: str, registry: Registry, type: str | None, message: str) -> Schema:
    """Read a file, or get TYPE/VERSION of a registry."""
    path = Path(os.path.abspath(said))
    if not path.is_file():
        name, slash, version = said.partition("/")
        if path.suffix in (".json", ".proto") or said.count("/") > 1:
            raise ConfigError("no such file", said)
        return registry.get(name, version if slash else None)
    name_says = parse_file_name(path.name)
    version = "" if name_says is None else name_says.version
    if type is None:
        type = "" if name_says is None else path.parent.name
    schema = Schema(
        type, version, "protobuf" if path.suffix == ".proto" else "json", path.read_bytes(),
        message or ("" if name_says is None else name_says.message),
    )  # fmt: skip
    return registry.bundle(schema)


def _history(registry: Registry, new: Schema, place: str | None) -> list[Schema]:
    if not new.type:
        raise ConfigError("--type: say which; only a file at TYPE/VERSION.json says it by itself")
    if place is None and new.type not in registry.types():
        raise ConfigError("--registry: name the one that has its older versions, or give OLD, too")
    versions = registry.versions(new.type)
    below = [one for one in versions if not new.version or order(one) < order(new.version)]
    return [registry.get(new.type, one) for one in below]


def _try(new: Schema, files: Sequence[IO[bytes]], url: str | None, topic: str | None, last: int) -> _Events:
    """Hold the last stored payloads of each place against the new version."""
    validator = make_validator(new)
    events = _Events(faults=[])
    for place, payload, prefix, problem in _stored(files, url, topic, last):
        if problem is None and _is_other(payload, new.type):
            events.others += 1
            continue
        events.tried += 1
        found = [problem] if problem else [(prefix + path[1:], reason) for path, reason in validator.check(payload)]
        events.failed += bool(found)
        events.faults += [_Tried(place, path, reason) for path, reason in found]
    return events


def _stored(
    files: Sequence[IO[bytes]], url: str | None, topic: str | None, last: int
) -> Iterator[tuple[str, bytes, str, tuple[str, str] | None]]:
    """Give place, payload, where in the event that is, and why there is none."""
    for file in files:
        try:
            for sample in deque(read_samples(file), maxlen=last):
                problem = None if sample.problem is None else (sample.problem.path, sample.problem.reason)
                yield f"{name_of(file)}: {sample.place}", sample.payload, sample.prefix, problem
        except EventError as error:
            yield name_of(file), b"", "$", (error.path, error.reason)
    if url is not None and topic is not None:
        with open_topics(url) as home:
            for message, event in look(home.topic(topic), last, newest=True):
                place = f"{topic}: {message.id}"
                if isinstance(event, EventError):
                    yield place, b"", "$", (event.path, event.reason)
                else:
                    yield place, bytes(event.raw_payload), "$.payload", None


def _is_other(payload: bytes, type: str) -> bool:
    try:
        said = msgspec.json.decode(payload).get("cls_type")
    except (msgspec.DecodeError, AttributeError):
        return False
    return bool(type) and said not in (None, type)


def _as_json(new: Schema, verdict: CompatibilityReport, least: str | None, tried: _Events | None) -> bytes:
    said: dict[str, Any] = {"type": new.type, "version": new.version, **msgspec.to_builtins(verdict)}
    said["least_version"] = least
    if tried is not None:
        said["events"] = tried
    return msgspec.json.encode(said)


def _print(verdict: CompatibilityReport) -> None:
    rows = [("LAYER", "", "PATH", "WHAT")]
    for found in verdict.findings:
        word = "undecided" if found.undecided else "breaks" if found.breaks else "fine"
        rows.append((found.layer, word, found.path, found.reason))
    if len(rows) > 1:
        print_table(rows)
    for found in verdict.findings:
        if found.example is not None:
            refuses = f"the {found.refused_by} version refuses" if found.refused_by else "see"
            click.echo(f"\n{found.path}: {found.reason}: {refuses}\n  {msgspec.json.encode(found.example).decode()}")
    ddl = [found.ddl for found in verdict.findings if found.ddl]
    if ddl:
        click.echo("\n" + "\n".join(f"{line};" for line in ddl))


def _summarize(
    new: Schema, verdict: CompatibilityReport, mode: Mode, least: str | None, too_small: bool, tried: _Events | None
) -> None:
    if tried is not None:
        for fault in tried.faults[:_MOST_TOLD]:
            click.echo(f"{fault.place}: {fault.path}: {fault.reason}")
        if len(tried.faults) > _MOST_TOLD:
            _report(f"{len(tried.faults) - _MOST_TOLD} more faults are not told")
        others = f"; {tried.others} of other types were left out" if tried.others else ""
        _report(f"{tried.tried} stored events tried, {tried.failed} refused{others}")
    step = f"; the least version is {least}" if least else f"; the least step is {verdict.bump}"
    small = f", and {new.version} is too small a step" if too_small else ""
    _report(f"{'compatible' if verdict.compatible else 'not compatible'} ({mode}){step}{small}")
