"""``balog filter``: a filter of the service's document as a Spark job."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from balog.cli.shared import options
from balog.cli.shared.engines import absolute_url, existing_topics
from balog.cli.shared.output import reporter
from balog.cli.shared.spark import SparkPlace, spark_options, spark_packages
from balog.common import config as configs
from balog.common.errors import BalogError, ConfigError
from balog.service.control import check
from balog.service.document import ControlDocument, Filter
from balog.service.jobs.filters import make_selection
from balog.sinks import SinkConfig
from balog.sinks.store import StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig

if TYPE_CHECKING:
    from balog.analytics.filter import Filtered


@click.command("filter")
@click.argument("name")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--config", "document", required=True, metavar="FILE", help="The document with the filter.")
@click.option("--topics", "url", metavar="URL", help=options.TOPICS_HELP)
@click.option("--to", "archive", metavar="ARCHIVE", help="Write to an archive, a folder or s3://…, not to the topic.")
@spark_options
def command(
    name: str, paths: tuple[str, ...], document: str, url: str | None, archive: str | None, spark_place: SparkPlace
) -> None:
    """Run the filter NAME with Spark, once over what there is.

    It reads the filter's sources in the topics of --topics, or PATHs: files, folders, globs, URLs of stores, as `balog
    report` does. It writes what the service's filter would write, with the same ids, to the filter's topic in the
    topics of --topics, or to --to.

    \b
    balog filter big-orders --config document.json --topics local:topics
    balog filter big-orders --config document.json s3://dumps/orders --topics kafka:localhost:9092
    balog filter big-orders --config document.json s3://dumps/orders --to s3://dumps/big
    """
    config = _find(document, name)
    if url is None and (archive is None or not paths):
        reason = "the filter reads its sources from topics" if not paths else "the filter writes to a topic"
        raise ConfigError(f"{reason}; give --topics URL", "the command line")
    sink = _sink(config, url, archive)
    sources = list(paths) or existing_topics("balog filter", config.sources, url or "")
    done = _run(config, sources, sink, spark_place)
    where = f"{archive}/{config.to}" if archive is not None else f"topic {config.to}"
    click.echo(f"{done.wanted:,} events wanted, {done.written:,} written to {where}, {done.refused:,} refused")
    if done.refused:
        raise BalogError(f"{sink.name} refused {done.refused:,} events: {done.reason}")


def _find(document: str, name: str) -> Filter:
    loaded = configs.load(document, ControlDocument, variables=False)
    index = next((number for number, config in enumerate(loaded.filters) if config.name == name), None)
    if index is None:
        known = ", ".join(config.name for config in loaded.filters) or "none"
        raise ConfigError(f"no filter {name!r:.110}; there are {known:.300}", document, "$.filters")
    for fault in check(loaded):
        if fault.path.startswith(f"$.filters[{index}]"):
            raise ConfigError(fault.reason, document, fault.path)
    return loaded.filters[index]


def _sink(config: Filter, url: str | None, archive: str | None) -> SinkConfig:
    """Return the config of the sink to write to; raise before Spark starts if it is invalid."""
    sink: SinkConfig
    if archive is None:
        sink = TopicSinkConfig(url=absolute_url(url or ""), topic=config.to)
    elif "://" in archive:
        sink = StoreSinkConfig(url=archive, topic=config.to)
    else:
        sink = StoreSinkConfig(path=os.path.abspath(archive), topic=config.to)
    sink.build().close()
    return sink


def _run(config: Filter, sources: list[str], sink: SinkConfig, spark_place: SparkPlace) -> Filtered:
    with spark_packages("balog filter"):
        from balog.analytics.filter import filter_events, read_events
        from balog.analytics.progress import progress
        from balog.analytics.reading.inputs import absolute, read_inputs

    selection = make_selection(config)
    paths = [absolute(source) for source in sources]
    read_inputs({"paths": json.dumps(paths)}).files()  # what can't be read need not wait for Spark
    with (
        progress(spark_place.waiting, reporter("balog filter"), is_slow=True) as say,
        spark_place.session("balog filter") as spark,
    ):
        say("Filtering")
        events = read_events(spark, paths, selection)
        with say.watching(spark):
            return filter_events(events, selection, sink)
