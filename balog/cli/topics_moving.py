"""``balog topics dump | ingest | offsets | redrive``: what moves messages, or a group."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import click
import msgspec

from balog import config as configs
from balog.cli.output import progress_bar, reporter
from balog.errors import ConfigError, EventError, TopicError
from balog.expressions import Expression
from balog.expressions.functions import parse_time
from balog.signals import StopSignals
from balog.storage import is_url, open_storage
from balog.topics import DeadLetter, open_topics
from balog.topics.ingest import Choice, Ingest, IngestState, IngestStats
from balog.topics.keys import RUN, key_reader
from balog.topics.redrive import Patch, Redrive

__all__ = ["dump", "ingest", "key_option", "offsets", "redrive", "topics_option"]

_report = reporter("balog topics")

_MAX_LINES = 20

topics_option = click.option(
    "--topics",
    "url",
    required=True,
    metavar="URL",
    help="Where the topics are: local:PATH, sqs:REGION, kafka:HOST:PORT.",
)
key_option = click.option(
    "--key",
    default=RUN,
    show_default=True,
    metavar="EXPR",
    help="Events of one value keep their order in Kafka and SQS FIFO; NULL for none.",
)
options_option = click.option(
    "--options", metavar="FILE", help='What the store of a URL takes, as JSON: {"endpoint_url": …}.'
)


class _Time(click.ParamType):  # type: ignore[type-arg]  # generic in some releases only
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, datetime):
            return value
        when = parse_time(value)
        if when is None:
            self.fail(f"{value!r} is no time; want 2026-11-20 or 2026-11-20T08:00:00, in UTC unless it names a zone")
        return when


class _Position(_Time):
    name = "earliest|latest|time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("earliest", "latest") or isinstance(value, float):
            return value
        return super().convert(value, param, ctx).timestamp()


@click.command("offsets", short_help="Tell how far a group is, or move it back or ahead.")
@topics_option
@click.argument("topic")
@click.option("--group", required=True, metavar="NAME", help="Whose position.")
@click.option("--to", type=_Position(), metavar="earliest|latest|TIME", help="Move it there; stop its consumers first.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def offsets(url: str, topic: str, group: str, to: Any, as_json: bool) -> None:
    """Tell how far a group is in TOPIC, or move it: back, to handle events again, or ahead, to skip them."""
    with open_topics(url) as home:
        chosen = home.topic(topic)
        if not chosen.keeps_groups:
            raise TopicError(f"topic {topic}: a queue has no positions to show or move")
        state = chosen.group_state(group) if to is None else chosen.seek(group, to)
    if as_json:
        click.echo(msgspec.json.encode(state))
    else:
        click.echo(
            f"{topic} {group}: position {state.position}, lag {state.lag}, in flight {state.in_flight},"
            f" waiting {state.waiting}, dead {state.dead}"
        )


@click.command("redrive", short_help="Give dead letters to their group again.")
@topics_option
@click.argument("topic")
@click.option("--group", required=True, metavar="NAME", help="Whose dead letters.")
@click.option("--where", metavar="EXPR", help="Only events for which this is true.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a member first: payload.currency=EUR, context.retry=true, channel=… The value is JSON or a text.",
)
@click.option("--unset", multiple=True, metavar="PATH", help="Take a member away first.")
@click.option("--dry-run", is_flag=True, help="Print the events as they would go back, and leave all where they are.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Look at most at so many dead letters.")
def redrive(
    url: str,
    topic: str,
    group: str,
    where: str | None,
    pairs: tuple[str, ...],
    unset: tuple[str, ...],
    dry_run: bool,
    limit: int | None,
) -> None:
    """Give dead letters of TOPIC to their group again, as new messages, mended if asked.

    A letter is gone only once its message is back. What is no event, before or after the change, stays.
    """
    lines = 0

    def tell(letter: DeadLetter, body: bytes) -> None:
        if dry_run:
            click.echo(body)

    def refuse(letter: DeadLetter, error: EventError) -> None:
        nonlocal lines
        lines += 1
        if lines <= _MAX_LINES:
            _report(f"{letter.id} stays: what comes of it is no event: {error}")

    decide = Redrive(Expression(where) if where else None, Patch(pairs, unset), dry_run, tell, refuse)
    with open_topics(url) as home:
        back = home.topic(topic).redrive(group, decide, limit)
    told = [f"{decide.chosen} would go back" if dry_run else f"{back} went back"]
    told += [f"{decide.unwanted} were not chosen"] if decide.unwanted else []
    told += [f"{decide.no_events} are no events and stay"] if decide.no_events else []
    told += [f"{decide.refused} would be no events any more and stay"] if decide.refused else []
    _report(f"of {group}'s dead letters {', '.join(told)}")
    if decide.refused:
        sys.exit(1)


@click.command("dump", short_help="Write events to files that balog report reads.")
@topics_option
@click.argument("topic")
@click.option("--to", required=True, metavar="PATH|URL", help="The archive: a folder, or s3://…, gs://…, ftp://…")
@click.option(
    "--group",
    default="balog-dump",
    show_default=True,
    metavar="NAME",
    help="Goes on where this group's last dump ended.",
)
@click.option("--consume", is_flag=True, help="For a queue: take the messages out of it, once they are in the files.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many messages.")
@click.option("--compression", type=click.Choice(["gzip", "zstd"]), default="gzip", show_default=True)
@options_option
def dump(
    url: str,
    topic: str,
    to: str,
    group: str,
    consume: bool,
    limit: int | None,
    compression: Any,
    options: str | None,
) -> None:
    """Write the events of TOPIC to files that `balog report` and Spark read: TO/TOPIC/date=…/….jsonl.gz

    By a group of its own, so that no other group loses a message. A queue has no groups: without --consume its messages
    are hidden from its consumers for as long as this takes, and then given back.
    """
    from balog.outbound.dump import dump as run
    from balog.sinks.store import StoreSinkConfig

    place: dict[str, Any] = {"url": to, "options": _options(options)} if is_url(to) else {"path": to}
    if options and "path" in place:
        raise ConfigError("--options is for a URL such as s3://…, a folder takes none")
    config = StoreSinkConfig(topic=topic, compression=compression, **place)
    with open_topics(url) as home, StopSignals() as stop, progress_bar("dumping", None) as show:
        chosen = home.topic(topic)
        sink = config.build()
        if not chosen.exists():
            raise TopicError(f"topic {topic}: no such topic in this home")
        sink.open()
        try:
            counts = run(
                chosen,
                group,
                sink,
                keep=not (chosen.keeps_groups or consume),
                limit=limit,
                step=lambda counts: show(counts.written, f"{counts.written} events"),
                should_stop=stop.came,
            )
        finally:
            sink.close()
        held = chosen.group_state(group).in_flight if chosen.keeps_groups else 0
    told = [f"{counts.written} events are in {to}"]
    told += [f"{held} are held by another dump, or one that was killed: dump again in a minute"] if held else []
    told += [f"{counts.left} messages were given back"] if counts.left else []
    told += [f"{counts.dead} are no events and dead letters of {group} now"] if counts.dead else []
    _report("; ".join(told))
    if stop.number is not None:
        sys.exit(128 + stop.number)
    if held:
        sys.exit(1)


@click.command("ingest", short_help="Publish archived events again.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH|URL…")
@topics_option
@click.option("--topic", required=True, metavar="NAME", help="Where the events go.")
@click.option("--after", type=_Time(), metavar="TIME", help="Only events of this time or later.")
@click.option("--before", type=_Time(), metavar="TIME", help="Only events before this time.")
@click.option("--channel", metavar="GLOB", help="Only events of channels that match.")
@click.option("--glob", "files", metavar="GLOB", help="Only files whose path below PATH matches.")
@key_option
@click.option("--dry-run", is_flag=True, help="Read and count, and publish nothing.")
@click.option("--state", metavar="FILE", help="Remember there how far it is, and go on from there the next time.")
@click.option("--quarantine", metavar="FILE", help="Append bad lines there, with file, line and reason.")
@options_option
def ingest(
    paths: tuple[str, ...],
    url: str,
    topic: str,
    after: datetime | None,
    before: datetime | None,
    channel: str | None,
    files: str | None,
    key: str,
    dry_run: bool,
    state: str | None,
    quarantine: str | None,
    options: str | None,
) -> None:
    """Publish archived events again: files of JSON lines, or of older lines time⇥channel⇥payload; also .gz and .zst.

    An event that the topic holds is not stored twice, where the home keeps ids. Folders date=YYYY-MM-DD of other days
    are passed over.

    \b
    balog topics ingest archive/orders --topics local:topics --topic orders --after 2026-11-01
    balog topics ingest s3://dumps --topics sqs:eu-west-1 --topic orders --glob '2026/11/*' --state ingest.state
    """
    key_of = key_reader(key, "--key")
    read = _options(options)
    stores = [open_storage(path, read if is_url(path) else None, "PATH") for path in paths]
    told = 0

    def say(text: str) -> None:
        nonlocal told
        told += 1
        if told <= _MAX_LINES:
            _report(text)
        elif told == _MAX_LINES + 1:
            _report("there are more, which are only counted" + ("" if quarantine else "; --quarantine FILE keeps them"))

    with ExitStack() as open_now:
        home = open_now.enter_context(open_topics(url))
        into = home.topic(topic)
        progress = None
        if state is not None:
            progress = IngestState(state, f"{topic} of {home.url.partition('?')[0]}")
            open_now.callback(progress.close)
        aside = None
        if quarantine is not None:
            aside = open_now.enter_context(open(quarantine, "ab"))
        stop = open_now.enter_context(StopSignals())
        run = Ingest(
            None if dry_run else into,
            Choice(after, before, channel, files),
            key_of=key_of,
            progress=progress,
            quarantine=aside,
            say=say,
            step=lambda done, counts: show(done, f"{counts.sent} events"),
            should_stop=stop.came,
        )
        found = [(store, run.find(store)) for store in stores]
        if not any(names for _, names in found):
            raise ConfigError(f"there is no file to read in {', '.join(paths)}")
        show = open_now.enter_context(progress_bar("ingesting", sum(size for _, names in found for _, size in names)))
        try:
            for store, names in found:
                run.run(store, names)
                store.close()
        finally:
            if run.counts.sent or sys.exc_info()[0] is None:
                _report(_summary(run.counts, dry_run))
    if stop.number is not None:
        sys.exit(128 + stop.number)
    if run.counts.bad or run.counts.damaged:
        sys.exit(1)


def _summary(counts: IngestStats, dry_run: bool) -> str:
    if dry_run:
        told = [f"{counts.sent} events of {counts.files} files would be published"]
    else:
        told = [f"{counts.new} events of {counts.files} files were published"]
        told += [f"{counts.sent - counts.new} were there already"] if counts.sent > counts.new else []
    told += [f"{counts.unwanted} were not chosen"] if counts.unwanted else []
    told += [f"{counts.bad} lines were refused"] if counts.bad else []
    told += [f"{counts.damaged} files are damaged"] if counts.damaged else []
    return ", ".join(told)


def _options(path: str | None) -> dict[str, Any]:
    return {} if path is None else configs.load(path, dict[str, Any])
