"""The numbers and names that pages state are the code's."""

import pytest
from balog_clickhouse import sink, table

from balog.analytics.reporting import comparison
from balog.broker.batches.writer import MAX_AGE
from balog.broker.state import StateConfig
from balog.cli.forward import MAX_ATTEMPTS
from balog.consumers.queueing import in_flight
from balog.registry import complexity, json_schema
from balog.registry.protobuf import compiler, descriptors, message
from balog.registry.schema import MAX_SCHEMA_BYTES
from balog.service import service
from balog.service.api import failed_events
from balog.service.control import applier
from balog.service.intake import drain, topic_writer
from balog.service.intake.fallback import GROUP, Fallback
from balog.service.intake.recent_ids import RecentIds
from balog.service.intake.router import FAILED_EVENTS_TOPIC, UNTYPED_TOPIC, topic_for_type
from balog.service.jobs.callbacks import consumer, endpoint, job
from balog.singer.batch.compression import Limits
from balog.sinks.store import StoreSinkConfig
from balog.tap.endpoints import file_stream
from balog.tap.patterns import file_formats
from balog.tap.schema import documents, inference
from balog.tap.streams import discovery
from balog.topics.local import DEFAULT_RETENTION
from balog.topics.memory import MemoryTopics
from balog.topics.sqs.claim_check import MAX_BODY_BYTES
from balog.topics.sqs.topic import _REDRIVE_RATE
from balog.watch.bands import band_history, bands, estimates, seasons
from balog.watch.config.monitors import VolumeBand
from tests.documentation import page_text

NUMBERS = {
    "bands": [
        f"fewer than {seasons.MIN_BUCKET} comparable runs",
        f"the last {estimates.MAX_COMPARABLE} comparable runs",
        f"beyond {band_history.MAX_VALUES:,} runs",
        f"all of the last {estimates.MAX_RESIDUALS}",
        f"At most {band_history.MAX_PER_HOUR} runs of each hour",
        f"divided by {estimates.MEDIAN_SQUARE}",
        f"percentile divided by {estimates.HIGH_SQUARE}",
        f"forgotten after {band_history.TRAINING / 86400:.0f} days",
        f"So {VolumeBand().sensitivity:g} is the default of `sensitivity`",
        f"`sensitivity` is multiplied by {bands.RETURN} until",
    ],
    "callbacks": [
        f"at most {endpoint._MAX_ANSWER >> 10} KiB are read",
        f"the events in flight are posted again {job.LEASE:g} seconds later",
        f"has {consumer.WINDOW} in flight for each concurrent request",
        f"at most {consumer.MAX_WINDOW_BYTES >> 20} MiB",
        "fails five times in a row",
        "has three attempts:",
    ],
    "control control-versions control-api": [
        f"the last {applier._MAX_ATTEMPTS},",
    ],
    "durability": [
        f"does not answer for {topic_writer.TIMEOUT:g} seconds",
        f"after at most {topic_writer._FIRST_RETRY} seconds, later at most {topic_writer._LONGEST_RETRY:g} seconds",
        f"after at most {drain._LEASE:g} seconds",
        f"the last {RecentIds()._half:,} are known",
        f"`{Fallback(MemoryTopics()).topic('TOPIC').name}`",
        f"group `{GROUP}`",
        f"go to `{UNTYPED_TOPIC}`",
        f"`{FAILED_EVENTS_TOPIC}`",
    ],
    "event-tables": [f"is beyond {table.MOST_COLUMNS}.", f"beyond {sink.MOST_TABLES} types"],
    "forwarding": [
        f"only after {MAX_ATTEMPTS} deliveries",
        f"until {in_flight.MAX_HELD:,} events or {in_flight.MAX_HELD_BYTES >> 20} MiB",
    ],
    "protobuf": [
        f"{compiler.MAX_SOURCE_BYTES >> 20} MiB; protoc runs in its own process for at most {compiler.MAX_SECONDS} s",
        f"and {compiler.MAX_MEMORY >> 30} GiB, and cannot read other files",
        f"| {message.MAX_DEPTH} levels below the payload, on the wire and in JSON |",
        f"and its nested messages | {message.MAX_DEFAULTS:,} |",
        f"| {descriptors.MAX_MESSAGES:,} |",
        f"of rules, {message.MAX_VIOLATIONS} |",
    ],
    "receive-callbacks": [f"reads files again every {endpoint.REREAD_SECONDS:g} seconds"],
    "registry": [
        f"a schema: {MAX_SCHEMA_BYTES >> 20} MiB, {complexity.MAX_DEPTH} levels deep, {complexity.MAX_UNFOLDED:,} ",
        f"At most {json_schema.MAX_VIOLATIONS} errors",
    ],
    "report-numbers": [f"Percentiles need {comparison.FEW} values on either side"],
    "service service-config": [
        f"forgets a deleted one within {service._REFRESH_SECONDS:g} seconds",
        f"At most {failed_events._PER_SECOND:g} of them and {failed_events._BYTES_PER_SECOND / (1 << 20):g} MiB",
    ],
    "sqs-topics": [f"up to {MAX_BODY_BYTES >> 20} MiB", f"at most {_REDRIVE_RATE:g} a second"],
    "tap-discovery": [f"at most {discovery.MAX_STREAMS:,} streams. A name has at most {discovery.MAX_NAME} printable"],
    "tap-files": [
        f"{file_stream.MAX_FILES:,} files a stream",
        f"{file_formats.MAX_LINE >> 20} MiB a line of JSON",
        f"{file_formats.MAX_DOCUMENT >> 20} MiB a JSON document or workbook",
        f"`max_bytes` ({file_formats.ReadOptions.max_bytes >> 30} GiB)",
    ],
    "tap-schemas": [
        f"the stream's own first {inference.MOST} records",
        f"a file of {documents.MAX_BYTES >> 20} MiB, {documents.MAX_DEPTH} levels of objects and lists, "
        f"{documents.MAX_NODES:,} schemas when references are resolved",
    ],
    "topics-command topics": [f"kept for {DEFAULT_RETENTION / 86400:.0f} days"],
}


@pytest.mark.parametrize("pages", NUMBERS)
def test_the_numbers_of_a_page_are_the_code_s(pages: str) -> None:
    words = " ".join(page_text(*pages.split()).split())
    assert [number for number in NUMBERS[pages] if number not in words] == []


def test_the_numbers_that_pages_have_in_words_or_examples_are_the_code_s() -> None:
    assert (consumer.THRESHOLD, consumer.LONGEST, consumer.LEAST_ATTEMPTS) == (5, 60, 3)
    assert (MAX_AGE, *Limits()) == (300, 8 << 30, 250)
    store = StoreSinkConfig(url="s3://b/c", topic="t")
    assert (store.max_file_bytes, store.build()._max_age) == (128 << 20, 300)
    assert StateConfig(hold=True).every == 1
    assert topic_for_type("x" * 70) == "x" * 70
    assert topic_for_type("x" * 71) != "x" * 71
