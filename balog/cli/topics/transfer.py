"""``balog topics dump | offsets | redrive``: move messages, or the position of a group."""

from __future__ import annotations

import sys
from typing import Any

import click

from balog.cli.shared import options
from balog.cli.shared.output import FirstLines, exit_after, reporter
from balog.common.errors import ConfigError, EventError, TopicError, TopicNotFoundError
from balog.common.signals import StopSignals
from balog.common.storage import is_url
from balog.common.text import counted, suggest
from balog.filters import Expression
from balog.filters.functions import parse_time
from balog.topics import DeadLetter, Topic, open_topics
from balog.topics.redrive import Patch, Redrive

_report = reporter("balog topics")


class _Position(click.ParamType):  # type: ignore[type-arg]  # generic in some releases only
    name = "earliest|latest|time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("earliest", "latest") or isinstance(value, float):
            return value
        when = parse_time(value)
        if when is None:
            self.fail(
                f"{value!r} is not a time; expected 2026-11-20 or 2026-11-20T08:00:00, in UTC unless it names a zone"
            )
        return when.timestamp()


@click.command("offsets", short_help="Show or move the position of a group.")
@options.topics
@click.argument("topic")
@options.group("Consumer group.")
@click.option(
    "--to", type=_Position(), metavar="earliest|latest|TIME", help="New position; stop the group's consumers first."
)
def offsets(url: str, topic: str, group: str, to: Any) -> None:
    """Show the position of a group in TOPIC, or move it: back to handle events again, ahead to skip them."""
    with open_topics(url) as topics:
        chosen = topics.topic(topic)
        if not chosen.keeps_groups:
            raise TopicError(f"topic {topic}: a queue has no positions to show or move")
        if to is None:
            _note_unknown(chosen, group)
        state = chosen.group_state(group) if to is None else chosen.seek(group, to)
    click.echo(
        f"{topic} {group}: position {state.position}, lag {state.lag}, in flight {state.in_flight},"
        f" waiting {state.waiting}, dead {state.dead}"
    )


def _note_unknown(topic: Topic, group: str) -> None:
    """Print a line if no consumer of the group has read the topic yet: its name may be mistyped."""
    groups = [state.name for state in topic.describe().groups]
    if group not in groups:
        _report(f"no consumer of {group} has read {topic.name} yet{suggest(group, groups)}")


@click.command("redrive", short_help="Publish dead letters to their group again.")
@options.topics
@click.argument("topic")
@options.group("Consumer group of the dead letters.")
@options.where("Only events for which this is true.")
@options.repeated(
    "--set",
    "pairs",
    metavar="PATH=VALUE",
    help="Set a field first: payload.currency=EUR, context.retry=true, channel=… The value is JSON or text.",
)
@options.repeated("--unset", metavar="PATH", help="Remove a field first.")
@click.option("--dry-run", is_flag=True, help="Print the events that would be published; change nothing.")
@options.integer("--limit", help="Maximum number of dead letters to read.")
def redrive(
    url: str, topic: str, group: str, where: Expression | None, pairs: tuple[str, ...], unset: tuple[str, ...],
    dry_run: bool, limit: int | None,
) -> None:  # fmt: skip
    """Publish the dead letters of TOPIC to their group again, as new messages, with changes if you ask for them.

    A dead letter is deleted only after its message is published. A message that is not a valid event stays.
    """
    refusals = FirstLines(_report)

    def show(dead_letter: DeadLetter, body: bytes) -> None:
        if dry_run:
            click.echo(body)

    def refuse(dead_letter: DeadLetter, error: EventError) -> None:
        refusals(f"{dead_letter.id} stays: the changed message is not a valid event: {error}")

    decide = Redrive(where, Patch(pairs, unset), dry_run, show, refuse)
    with open_topics(url) as topics:
        chosen = topics.topic(topic)
        if chosen.keeps_groups:
            _note_unknown(chosen, group)
        back = chosen.redrive(group, decide, limit)
    published = counted(decide.chosen if dry_run else back, "dead letter")
    parts = [f"{published} of {group} {'would be ' if dry_run else ''}published"]
    parts += [f"{decide.unwanted} not selected"] if decide.unwanted else []
    parts += [f"{decide.no_events} kept: not valid events"] if decide.no_events else []
    parts += [f"{decide.refused} kept: the change makes them invalid"] if decide.refused else []
    _report(", ".join(parts))
    if decide.refused:
        sys.exit(1)


@click.command("dump", short_help="Write events to files that balog report reads.")
@options.topics
@click.argument("topic")
@click.option("--to", required=True, metavar="PATH|URL", help="The archive: a folder, or s3://…, gs://…, ftp://…")
@options.group("Consumer group of the dump; it continues where its last dump ended.", "balog-dump")
@click.option("--consume", is_flag=True, help="For a queue: delete the messages once they are in the files.")
@options.integer("--limit", help="Maximum number of messages.")
@options.store
def dump(url: str, topic: str, to: str, group: str, consume: bool, limit: int | None, options_file: str | None) -> None:
    """Write the events of TOPIC to files that `balog report` and Spark read: TO/TOPIC/date=…/….jsonl.gz

    The dump is a consumer group of its own, so other groups are not affected. A queue has no groups: without --consume
    its messages are hidden from consumers during the dump, and then released.
    """
    from balog.delivery.dump import dump as run
    from balog.sinks.store import StoreSinkConfig

    store: dict[str, Any] = {"url": to, "options": options.load_options(options_file)} if is_url(to) else {"path": to}
    if options_file and "path" in store:
        raise ConfigError("--options needs a URL such as s3://…; a folder has no options")
    config = StoreSinkConfig(topic=topic, **store)
    with open_topics(url) as topics, StopSignals() as stop:
        chosen = topics.topic(topic)
        sink = config.build()
        if not chosen.exists():
            raise TopicNotFoundError(f"topic {topic}")
        sink.open()
        try:
            counts = run(
                chosen,
                group,
                sink,
                keep=not (chosen.keeps_groups or consume),
                limit=limit,
                should_stop=stop.came,
            )
        finally:
            sink.close()
        held = chosen.group_state(group).in_flight if chosen.keeps_groups else 0
    parts = [f"{counted(counts.written, 'event', 'are')} in {to}"]
    parts += [f"{held} are held by another dump, or by one that was killed: dump again in a minute"] if held else []
    parts += [f"{counted(counts.left, 'message', 'were')} released"] if counts.left else []
    parts += [f"{counts.dead} are not valid events, and are dead letters of {group} now"] if counts.dead else []
    _report("; ".join(parts))
    exit_after(stop, failed=bool(held))
