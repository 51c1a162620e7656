"""``balog topics``: inspect topics, publish to them, dump them, and retry dead letters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import IO, Any

import click
import msgspec

from balog.cli.shared import options
from balog.cli.shared.output import FirstLines, escaped, print_table, reporter
from balog.cli.topics.transfer import dump, offsets, redrive
from balog.common.errors import ConfigError, EventError, MessageError, TopicError
from balog.common.text import counted
from balog.event import LEVELS, Event
from balog.filters import Expression
from balog.topics import Message, Received, open_topics
from balog.topics.inspection import inspect, look
from balog.topics.keys import RUN, key_reader
from balog.topics.publisher import SchemaCheck, as_message, publish_all, wrap

_report = reporter("balog topics")

_MAX_SHOWN = 200


@click.group(
    "topics",
    cls=options.CommandGroup,
    epilog="\b\nExit codes:\n0  done\n1  failed, or an event was rejected\n2  wrong use, or no such topic",
)
def command() -> None:
    """Inspect topics, publish to them, dump them, and retry dead letters.

    \b
    balog topics list --topics local:topics
    balog topics describe --topics local:topics orders
    balog topics peek --topics local:topics orders --where "level >= 'ERROR'"
    balog topics redrive --topics local:topics orders --group balog --dry-run
    balog topics dump --topics sqs:eu-west-1 orders --to s3://logs/archive
    """


for _command in (dump, offsets, redrive):
    command.add_command(_command)


@command.command("list", short_help="List the topics.")
@options.topics
def list_topics(url: str) -> None:
    """List the topics: messages, megabytes, groups. Exits with 1 if a topic can't be read."""
    unread = 0
    with open_topics(url) as topics:
        rows = [("TOPIC", "MESSAGES", "MB", "GROUPS")]
        for name in topics.names():
            try:
                state = topics.topic(name).describe()
            except (ConfigError, TopicError) as error:
                _report(str(error))
                unread += 1
                continue
            groups = ", ".join(group.name for group in state.groups) or "-"
            rows.append((name, str(state.messages), _megabytes(state.bytes), groups))
        print_table(rows, numbers=True)
    if unread:
        sys.exit(1)


@command.command("describe", short_help="Show a topic's size, rate, types and groups.")
@options.topics
@click.argument("topic")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def describe_topic(url: str, topic: str, as_json: bool) -> None:
    """Show the size of TOPIC, the position of its groups, and the rate and types of its newest 1000 events.

    Of a queue, these are 10 events.
    """
    with open_topics(url) as topics:
        inspection = inspect(topics.topic(topic))
    if as_json:
        click.echo(msgspec.json.encode(inspection))
        return
    state = inspection.state
    size = "" if state.bytes is None else f", {_megabytes(state.bytes)} MB"
    click.echo(f"{state.name}: {counted(state.messages, 'message')}{size}")
    if state.oldest is not None:
        click.echo(f"oldest: {_time(state.oldest)}")
    if inspection.rate is not None:
        click.echo(f"rate: {inspection.rate:.3g} messages a second, from the newest {inspection.sampled}")
    if state.groups:
        click.echo("")
        rows = [("GROUP", "LAG", "IN FLIGHT", "WAITING", "DEAD")]
        rows += [
            (each.name, f"{each.lag}", f"{each.in_flight}", f"{each.waiting}", f"{each.dead}") for each in state.groups
        ]
        print_table(rows, numbers=True)
    if inspection.types:
        click.echo("")
        types = [("CLS_TYPE", f"SHARE OF {inspection.sampled}")]
        types += [(escaped(name), f"{count / inspection.sampled:.1%}") for name, count in inspection.types.items()]
        print_table(types, numbers=True)


@command.command("peek", short_help="Print messages without consuming them.")
@options.topics
@click.argument("topic")
@options.integer("--limit", default=10, help="Maximum number of messages.")
@click.option("--newest", is_flag=True, help="Print the newest instead of the oldest.")
@options.where("Print only events for which this is true, among 10,000; among 10 of a queue.")
@click.option("--raw", is_flag=True, help="Print the raw messages, one a line.")
def peek_topic(url: str, topic: str, limit: int, newest: bool, where: Expression | None, raw: bool) -> None:
    """Print messages of TOPIC without consuming them.

    Groups are not affected, except in a queue: there a peek hides messages for a while and counts as a delivery.
    """
    with open_topics(url) as topics:
        for message, event in look(topics.topic(topic), limit, newest=newest, where=where):
            if raw:
                click.echo(message.body)
            else:
                _show(message, event)


@command.command("publish", short_help="Publish events, one a line of a file or of stdin.")
@options.topics
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--check", is_flag=True, help="Reject events that violate the schemas of the registry.")
@options.registry
@options.pairs(
    "--payload",
    metavar="NAME=VALUE",
    help="Lines are plain JSON objects: make events of them, and add this to each payload.",
)
@click.option(
    "--key",
    default=RUN,
    show_default=True,
    metavar="EXPR",
    help="Message key: in Kafka and SQS FIFO, events of one key keep their order; NULL for no key.",
)
@click.option(
    "--channel", default="balog.topics.publish", show_default=True, help="With --payload: channel of the events."
)
@options.choice("--level", of=list(LEVELS), default="INFO", help="With --payload: level of the events.")
def publish_lines(
    url: str, topic: str, file: IO[bytes], check: bool, registry_place: options.RegistryPlace, payload: dict[str, str],
    key: str, channel: str, level: Any,
) -> None:  # fmt: skip
    """Publish events to TOPIC, one a line of FILE (or of standard input).

    An invalid line is reported with its number, an event that the topic rejects with its id; all others are published.
    If the topic fails, the command reports how many events are stored.

    \b
    balog topics publish --topics local:topics orders events.jsonl
    echo '{"rows": 3}' | balog topics publish --topics local:topics orders --payload cls_type=app.job
    """
    key_of = key_reader(key, "--key")
    source = options.name_of(file)
    refuse = FirstLines(_report)

    def refuse_message(message: Message, error: MessageError) -> None:
        refuse(f"{source}: event {message.id}: {error}")

    def read(checker: SchemaCheck | None) -> Iterator[Message]:
        for number, line in enumerate(file, 1):
            text = line.rstrip(b"\r\n")
            if not text.strip():
                continue
            try:
                event = wrap(text, channel, level, payload) if payload else text
                yield as_message(event, checker, key_of)
            except EventError as error:
                refuse(f"{source}: line {number}: {error}")

    sent = new = 0
    with ExitStack() as stack:
        registry = stack.enter_context(registry_place.open()) if check else None
        checker = None if registry is None else SchemaCheck(registry)
        topics = stack.enter_context(open_topics(url))
        try:
            for batch in publish_all(topics.topic(topic), read(checker), refuse_message):
                sent, new = sent + batch.sent, new + batch.new
        except (TopicError, KeyboardInterrupt):
            _report(f"{counted(sent, 'event', 'are')} stored, the first ones of {source}")
            raise
    there = f" ({sent - new} there already)" if sent - new else ""
    _report(
        f"{counted(new, 'event', 'were')} published{there}"
        + (f", {counted(refuse.count, 'line', 'were')} rejected" if refuse.count else "")
    )
    if refuse.count:
        sys.exit(1)


def _show(message: Received, event: Event | EventError) -> None:
    if isinstance(event, EventError):
        click.echo(f"{_time(message.published)} {escaped(message.id)} is not an event: {event}")
        click.echo(f"  {message.body[:_MAX_SHOWN]!r}")
        return
    kind = " ".join(part for part in (event.cls_type, event.version) if part)
    header = event.header
    parts = (f"{header.timestamp.isoformat()}", event.level or "-", header.channel, kind or "-", header.id)
    click.echo(escaped(" ".join(parts)))
    for name, value in header.context.items():
        click.echo(escaped(f"  {name}: {msgspec.json.encode(value).decode()}"))
    body = msgspec.json.format(bytes(event.raw_payload), indent=2).decode()
    click.echo(escaped("\n".join(f"  {line}" for line in body.splitlines()), keep="\n"))


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.1f}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
