"""Time each sink's `write` beside a bare loop over its client library, which does the same work and nothing else.

    python -m benchmarks.sinks

Events are encoded before the clock starts. A sink gets them in batches of 1000 and has delivered them when its time is
up; the bare loop sends the same to the same place: a server in a process of its own that does next to nothing (see
`sink_server`), or a fresh folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click
import urllib3
from datadog.dogstatsd.base import DogStatsd
from elasticsearch import Elasticsearch, helpers
from prometheus_client import CollectorRegistry, Counter, push_to_gateway

from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.sinks import Delivery, SinkConfig
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.elastic import ElasticSinkConfig
from balog.sinks.pagerduty import PagerDutySinkConfig
from balog.sinks.prometheus import PrometheusSinkConfig, Pushgateway
from balog.sinks.statsd import StatsdSinkConfig
from balog.sinks.store import StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.sinks.webhook import WebhookSinkConfig
from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians

sys.path.append(str(Path(__file__).parents[1] / "plugins" / "balog-otlp"))

BATCH = 1000
DATAGRAM_BATCHES = 3  # as many as wait in a socket while nobody reads, or some would be lost


class Server(NamedTuple):
    """The other side of the sinks that send: a port for HTTP and UDP, and how many events came."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def came(self) -> int:
        return int(urllib3.request("GET", f"{self.url}/came").data)


class Place(NamedTuple):
    """What a sink has to write and where to."""

    batches: list[list[Delivery]]
    server: Server
    folder: Path
    stack: ExitStack

    @property
    def deliveries(self) -> list[Delivery]:
        return [delivery for batch in self.batches for delivery in batch]

    def fresh(self) -> Path:
        """Give a folder that is not there yet; what was in the one before is removed."""
        number = next(_numbers)
        shutil.rmtree(self.folder / str(number - 1), ignore_errors=True)
        return self.folder / str(number)


Way = Callable[[], float]


class Pair(NamedTuple):
    """The way through a sink and the bare loop of a client library; ``came`` is what the server must count for each."""

    library: str
    sink: Way
    bare: Way
    events: int
    came: int = 0


_numbers = count()


def event(number: int) -> Event:
    """Make an event of some 400 bytes."""
    metric = {"type": "counter", "metric": "record_count", "value": number, "tags": {"stream": "orders"}}
    context = {"fqdn": "host.example.com", "application": "tap-shop", "process": 4711, "run_id": "a1b2c3d4"}
    return Event.new("tap_shop.sync.metric", {"cls_type": "metric", "version": "1.0.0", **metric}, context=context)


def through(config: Callable[[], SinkConfig], place: Place) -> Way:
    """Give the way through a sink; building, opening and closing count."""

    def measure() -> float:
        made = config()
        began = time.perf_counter()
        sink = made.build()
        sink.open()
        for batch in place.batches:
            sink.write(batch)
        sink.close()
        return time.perf_counter() - began

    return measure


def webhook(place: Place) -> Pair:
    place = place._replace(batches=place.batches[:2])  # a request an event is slow on both sides
    pool = urllib3.PoolManager()

    def bare() -> float:
        began = time.perf_counter()
        for _, body in place.deliveries:
            pool.request("POST", place.server.url, body=body, headers={"Content-Type": "application/json"})
        return time.perf_counter() - began

    number = len(place.deliveries)
    return Pair("urllib3", through(lambda: WebhookSinkConfig(url=place.server.url), place), bare, number, number)


def webhook_batches(place: Place) -> Pair:
    pool = urllib3.PoolManager()

    def bare() -> float:
        began = time.perf_counter()
        for batch in place.batches:
            body = b"[" + b",".join(body for _, body in batch) + b"]"
            pool.request("POST", place.server.url, body=body, headers={"Content-Type": "application/json"})
        return time.perf_counter() - began

    ours = through(lambda: WebhookSinkConfig(url=place.server.url, per="batch"), place)
    return Pair("urllib3", ours, bare, len(place.deliveries), len(place.batches))


def elastic(place: Place) -> Pair:
    client = place.stack.enter_context(Elasticsearch(place.server.url))
    documents = [(event.header.id, json.loads(body)) for event, body in place.deliveries]

    def actions() -> Iterator[dict[str, Any]]:
        for name, document in documents:
            yield {
                "_op_type": "create",
                "_index": "logs-balog-default",
                "_id": name,
                "@timestamp": document["header"]["timestamp"],
                **document,
            }

    def bare() -> float:
        began = time.perf_counter()
        helpers.bulk(client, actions(), chunk_size=BATCH)
        return time.perf_counter() - began

    config = ElasticSinkConfig(url=place.server.url, compress=False)
    return Pair("elasticsearch", through(lambda: config, place), bare, len(documents), len(documents))


def statsd(place: Place) -> Pair:
    place = place._replace(batches=place.batches[:DATAGRAM_BATCHES])
    client = DogStatsd("127.0.0.1", place.server.port, disable_telemetry=True, disable_buffering=False)
    place.stack.callback(client.stop)
    points = [event.payload for event, _ in place.deliveries]

    def bare() -> float:
        began = time.perf_counter()
        for point in points:
            tags = [f"{key}:{tag}" for key, tag in point["tags"].items()]
            client.increment(point["metric"], point["value"], tags=tags)
        client.flush_buffered_metrics()
        return time.perf_counter() - began

    config = StatsdSinkConfig(host="127.0.0.1", port=place.server.port, format="dogstatsd", rate=1_000_000)
    return Pair("datadog", through(lambda: config, place), bare, len(points), len(points))


def prometheus(place: Place) -> Pair:
    """Push all that there is after each batch, as a broker does."""
    points = [[event.payload for event, _ in batch] for batch in place.batches]

    def bare() -> float:
        began = time.perf_counter()
        registry = CollectorRegistry()
        counter = Counter("record_count", "Records.", ["stream"], registry=registry)
        for batch in points:
            for point in batch:
                counter.labels(**point["tags"]).inc(point["value"])
            push_to_gateway(place.server.url, "bench", registry)
        return time.perf_counter() - began

    push = Pushgateway(url=place.server.url, job="bench")
    ours = through(lambda: PrometheusSinkConfig(pushgateway=push), place)
    return Pair("prometheus-client", ours, bare, len(place.deliveries), len(points))


def datadog_logs(place: Place) -> Pair:
    from datadog_api_client import ApiClient, Configuration
    from datadog_api_client.v2.api.logs_api import LogsApi
    from datadog_api_client.v2.model.content_encoding import ContentEncoding
    from datadog_api_client.v2.model.http_log import HTTPLog
    from datadog_api_client.v2.model.http_log_item import HTTPLogItem

    configuration = Configuration(host=place.server.url, api_key={"apiKeyAuth": "0" * 32})
    configuration.server_operation_index = {"v2.submit_log": 1}
    configuration.server_operation_variables = {
        "v2.submit_log": {"name": f"127.0.0.1:{place.server.port}", "protocol": "http"}
    }
    api = LogsApi(place.stack.enter_context(ApiClient(configuration)))
    logs = [
        {
            "message": "record_count",
            "ddsource": "balog",
            "hostname": "host.example.com",
            "service": "tap-shop",
            "payload": event.payload,
        }
        for event, _ in place.deliveries
    ]

    def bare() -> float:
        began = time.perf_counter()
        for first in range(0, len(logs), BATCH):
            items = [HTTPLogItem(**log) for log in logs[first : first + BATCH]]
            api.submit_log(HTTPLog(items), content_encoding=ContentEncoding("gzip"))
        return time.perf_counter() - began

    config = DatadogSinkConfig(api_key=Secret(env="HOME"), url=place.server.url, send=["logs"])
    number = len(logs)
    return Pair("datadog-api-client", through(lambda: config, place), bare, number, len(place.batches))


def otlp_logs(place: Place) -> Pair:
    from balog_otlp import OtlpSinkConfig
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    exporter = OTLPLogExporter(endpoint=f"{place.server.url}/v1/logs")
    place.stack.callback(exporter.shutdown)
    resource = Resource({"service.name": "tap-shop", "host.name": "host.example.com", "process.pid": 4711})
    scope = InstrumentationScope("balog")

    def record(event: Event) -> ReadableLogRecord:
        made = LogRecord(
            timestamp=int(event.header.timestamp.timestamp() * 1e9),
            severity_number=SeverityNumber.INFO,
            severity_text="INFO",
            body=event.payload,
            attributes={"run_id": "a1b2c3d4", "log.record.uid": event.header.id, "balog.channel": event.header.channel},
        )
        return ReadableLogRecord(made, resource, scope)

    records = [record(event) for event, _ in place.deliveries]

    def bare() -> float:
        began = time.perf_counter()
        for first in range(0, len(records), BATCH):
            exporter.export(records[first : first + BATCH])
        return time.perf_counter() - began

    config = OtlpSinkConfig(url=place.server.url, send=["logs"], compress=False)
    number = len(records)
    return Pair("opentelemetry-sdk", through(lambda: config, place), bare, number, len(place.batches))


def otlp_metrics(place: Place) -> Pair:
    from balog_otlp import OtlpSinkConfig
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    exporter = OTLPMetricExporter(endpoint=f"{place.server.url}/v1/metrics")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    provider = MeterProvider([reader], shutdown_on_exit=False)
    place.stack.callback(provider.shutdown)
    counter = provider.get_meter("balog").create_counter("record_count")

    def bare() -> float:
        began = time.perf_counter()
        number = 0
        for batch in place.batches:
            for _ in batch:
                counter.add(number, {"stream": "orders"})
                number += 1
            provider.force_flush()
        return time.perf_counter() - began

    config = OtlpSinkConfig(url=place.server.url, send=["metrics"], compress=False)
    number = len(place.deliveries)
    return Pair("opentelemetry-sdk", through(lambda: config, place), bare, number, len(place.batches))


def pagerduty(place: Place) -> Pair:
    pool = urllib3.PoolManager()
    failed = {"cls_type": "log", "version": "1.0.0", "message": "card declined", "severity": "ERROR"}
    events = [  # each of an application of its own, or they would be one incident and one request
        Event.new("tap_shop.sync", failed, level="ERROR", context={"application": f"tap-{number}", "fqdn": "host"})
        for number in range(2 * BATCH)
    ]
    deliveries = [Delivery(event, encode(event)) for event in events]
    place = place._replace(batches=[deliveries[:BATCH], deliveries[BATCH:]])

    def bare() -> float:
        began = time.perf_counter()
        for event in events:
            request = {
                "routing_key": "0" * 32,
                "event_action": "trigger",
                "dedup_key": event.header.context["application"],
                "payload": {
                    "summary": "card declined",
                    "source": "host",
                    "severity": "error",
                    "custom_details": {"payload": event.payload, "context": event.header.context},
                },
            }
            body = json.dumps(request).encode()
            pool.request(
                "POST", f"{place.server.url}/v2/enqueue", body=body, headers={"Content-Type": "application/json"}
            )
        return time.perf_counter() - began

    config = PagerDutySinkConfig(routing_key=Secret(env="HOME"), url=place.server.url)
    return Pair("urllib3", through(lambda: config, place), bare, len(events), len(events))


def store(place: Place) -> Pair:
    def bare() -> float:
        folder = place.fresh()
        folder.mkdir()
        began = time.perf_counter()
        packing = zlib.compressobj(6, zlib.DEFLATED, 31)
        with open(folder / "events.jsonl.gz", "wb", buffering=0) as file:
            for batch in place.batches:
                lines = b"\n".join(body for _, body in batch) + b"\n"
                file.write(packing.compress(lines) + packing.flush(zlib.Z_SYNC_FLUSH))
                os.fsync(file.fileno())
            file.write(packing.flush())
            os.fsync(file.fileno())
        return time.perf_counter() - began

    ours = through(lambda: StoreSinkConfig(path=str(place.fresh()), topic="events"), place)
    return Pair("zlib", ours, bare, len(place.deliveries))


def topic(place: Place) -> Pair:
    def bare() -> float:
        folder = place.fresh()
        folder.mkdir()
        began = time.perf_counter()
        home = sqlite3.connect(folder / "events.db", isolation_level=None)
        home.execute("PRAGMA journal_mode = WAL")
        home.execute("PRAGMA synchronous = FULL")
        home.execute("CREATE TABLE messages (number INTEGER PRIMARY KEY, id TEXT UNIQUE, body BLOB)")
        for batch in place.batches:
            home.execute("BEGIN IMMEDIATE")
            rows = [(event.header.id, body) for event, body in batch]
            home.executemany("INSERT INTO messages (id, body) VALUES (?, ?)", rows)
            home.execute("COMMIT")
        home.close()
        return time.perf_counter() - began

    ours = through(lambda: TopicSinkConfig(url=f"local:{place.fresh()}", topic="events"), place)
    return Pair("sqlite3", ours, bare, len(place.deliveries))


SINKS: dict[str, Callable[[Place], Pair]] = {
    "datadog, logs": datadog_logs,
    "elastic": elastic,
    "prometheus": prometheus,
    "statsd": statsd,
    "otlp, logs": otlp_logs,
    "otlp, metrics": otlp_metrics,
    "pagerduty": pagerduty,
    "store": store,
    "topic": topic,
    "webhook": webhook,
    "webhook, batches": webhook_batches,
}
"""By the row's name in the table; a row is added here."""


@contextmanager
def server() -> Iterator[Server]:
    """Run the other side."""
    command = [sys.executable, "-m", "benchmarks.sink_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()))
        process.communicate()


def check(name: str, pair: Pair, place: Place) -> None:
    """See that all events come by both ways, or their speed means nothing."""
    for way in (pair.sink, pair.bare):
        before = place.server.came()
        way()
        until = time.monotonic() + 10
        while (came := place.server.came() - before) < pair.came and time.monotonic() < until:
            time.sleep(0.01)  # datagrams wait in the kernel until the server gets its turn
        if came != pair.came:
            raise click.ClickException(f"{name}: the server counted {came}, not {pair.came}")


@click.command()
@click.option("--events", default=20_000, show_default=True, help="Events a round.")
@click.option("--rounds", default=9, show_default=True, help="Rounds, after one to warm up.")
@click.option(
    "--sink", "chosen", multiple=True, type=click.Choice(list(SINKS)), help="This sink only; may be repeated."
)
@click.option("--quick", is_flag=True, help="A few events only: does it run?")
def main(events: int, rounds: int, chosen: tuple[str, ...], quick: bool) -> None:
    """Compare what each sink takes with what its client library takes."""
    if quick:
        events, rounds = BATCH, 1
    made = [event(number) for number in range(events)]
    deliveries = [Delivery(made, encode(made)) for made in made]
    batches = [deliveries[first : first + BATCH] for first in range(0, events, BATCH)]
    click.echo(machine("balog", "urllib3", "elasticsearch", "datadog", "prometheus-client"))
    click.echo(f"medians of {rounds} rounds of {events} events of {len(deliveries[0].body)} bytes, events/s\n")
    click.echo(f"{'':20}{'balog':>10}{'bare loop':>12}{'× bare':>9}  by")
    seconds: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="balog-bench-") as home, server() as peer:
        for name in chosen or SINKS:
            with ExitStack() as stack:
                place = Place(batches, peer, Path(home), stack)
                pair = SINKS[name](place)
                check(name, pair, place)
                seconds[name] = interleaved({"balog": pair.sink, "bare": pair.bare}, rounds)
            table = medians(seconds[name])
            ours, bare = pair.events / table["balog"], pair.events / table["bare"]
            click.echo(f"{name:20}{ours:10,.0f}{bare:12,.0f}{ours / bare:9.2f}  {pair.library}")
    click.echo()
    for name, each in seconds.items():
        show_ratio(f"the bare loop's speed, {name}", each["bare"], each["balog"])


if __name__ == "__main__":
    main()
