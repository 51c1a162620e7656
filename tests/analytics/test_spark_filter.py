"""A filter in Spark and the same one in the service: the same events, with the same ids."""

import gzip
import json
import time
from datetime import datetime, timezone
from random import Random

import msgspec
import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from balog.analytics import filter as spark_filter
from balog.analytics.filter import filter_events, read_events
from balog.common.storage.local import LocalStorage
from balog.event import decode, encode
from balog.service.document import Filter
from balog.service.jobs.filters import FilterJob, make_selection
from balog.sinks.store import StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.topics import Message, open_topics
from tests.filters.predicates import Predicates

pytestmark = pytest.mark.spark

VALUES = [
    "",
    "a",
    "1.5",
    "größe '\"\\\n",
    0,
    1,
    -3,
    2.5,
    1e20,
    2**53 - 1,
    True,
    False,
    None,
    [1, {"b": None}],
    {"a": [1.5]},
]
SELECTED = ["payload.a", "payload.b", "payload.n", "payload.n.l[1]", "context.k", "context['k8s.pod']", "timestamp",
            "level", "channel", "payload.a || channel", "payload.a + 1", "CAST(payload.b AS STRING)", "payload.a > 1",
            "payload.b / payload.a", "CASE WHEN composition THEN id ELSE payload.a END", "payload.missing"]  # fmt: skip


def make_event(random, number):
    payload = {key: random.choice(VALUES) for key in "ab" if random.random() < 0.9}
    payload["n"] = {"k s": random.choice(VALUES), "l": [random.choice(VALUES), {"z": random.choice(VALUES)}]}
    payload |= {"cls_type": random.choice(["metric", "log"])} if random.random() < 0.7 else {}
    header = {
        "id": f"LG{number:022d}",
        "channel": random.choice(["tap.a", "größe"]),
        "timestamp": random.choice(
            ["2026-11-20T05:46:12.000001Z", "2026-11-20T00:00:00+02:00", "1969-01-01T00:00:00Z"]
        ),
        "composition": random.random() < 0.3,
        "context": {
            key: random.choice(["a", 7, 1.5, {"x": [True]}]) for key in ("k", "k8s.pod") if random.random() < 0.7
        },
    }
    old = random.random() < 0.15
    header |= {} if old else {"level": random.choice(["INFO", "ERROR"])}
    return encode(decode(json.dumps({"schema": "0.0.1" if old else "1.0.0", "header": header, "payload": payload})))


def make_filter(random, number):
    predicates = Predicates(
        random, ["channel", "context.k", "payload.a"], ["payload.a", "payload.b"], ["composition"], ["level >= 'ERROR'"]
    )
    where = predicates.condition(2) if random.random() < 0.8 else None
    chosen = {f"f{at}": text for at, text in enumerate(random.sample(SELECTED, 6))} if random.random() < 0.7 else None
    made = {"select": chosen, "cls_type": "part", "version": "1.0.0"} if chosen else {}
    return Filter(name=f"filter-{number}", sources=("events",), to=f"out-{number}", where=where, **made)


def plain(body):
    return msgspec.json.decode(body)


def read(home, topic):
    return [plain(one.body) for one in home.topic(topic).peek(1000)] if home.topic(topic).exists() else []


def by_id(documents):
    found = {document["header"]["id"]: document for document in documents}
    assert len(found) == len(documents), "an event is there twice"
    return found


@pytest.fixture
def home(tmp_path):
    with open_topics(f"local:{tmp_path}/topics") as home:
        random = Random(7)
        lines = [make_event(random, number) for number in range(200)]
        home.topic("events").publish([Message(plain(line)["header"]["id"], line) for line in lines])
        yield home


@pytest.mark.parametrize("seed", range(3))
def test_spark_and_the_service_make_the_same_events(spark, home, seed):
    for number in range(4):
        config = make_filter(Random(100 * seed + number), number)
        selection = make_selection(config)
        events = [decode(one.body) for one in home.topic("events").peek(1000)]
        expected = [plain(encode(selection.make(event))) for event in events if selection.wants(event)]

        frame = read_events(spark, [f"{home.url}#events"], selection)
        done = filter_events(frame, selection, TopicSinkConfig(url=home.url, topic=config.to))

        assert (done.wanted, done.written, done.refused) == (len(expected), len(expected), 0), config
        assert by_id(read(home, config.to)) == by_id(expected), config


def test_both_at_the_same_topic_change_nothing(spark, home):
    config = Filter(
        name="late",
        sources=("events",),
        to="both",
        where="payload.a IS NOT NULL",
        select={"a": "payload.a"},
        cls_type="x",
    )
    selection = make_selection(config)
    job = FilterJob(config, home.url, print)
    job.start()
    try:
        filter_events(
            read_events(spark, [f"{home.url}#events"], selection),
            selection,
            TopicSinkConfig(url=home.url, topic="both"),
        )
        while job.status().done < 200:
            time.sleep(0.01)
    finally:
        job.stop(5)
    events = [decode(one.body) for one in home.topic("events").peek(1000)]
    assert by_id(read(home, "both")).keys() == {
        selection.make(event).header.id for event in events if selection.wants(event)
    }


@pytest.mark.parametrize("dies_at", [3, 6])
def test_a_worker_that_dies_leaves_nothing_twice_in_an_archive(tmp_path, monkeypatch, dies_at):
    """Given one that dies while it reads, or with one of its files there, then what is there is the next attempt's."""
    config = StoreSinkConfig(path=str(tmp_path / "archive"), topic="t")
    rows = [
        {
            "id": f"LG{number:022}",
            "channel": "c",
            "timestamp": datetime(2026, 11, 20 + number % 2, tzinfo=timezone.utc),
            "level": "INFO",
            "schema": "0.1.0",
            "composition": False,
            "context_json": None,
            "payload_json": "{}",
        }
        for number in range(6)
    ]

    def run(dies):
        def batches():
            for number, row in enumerate(rows):
                if dies and number == dies_at:
                    raise KeyboardInterrupt
                yield pa.RecordBatch.from_pylist([row])

        list(spark_filter._write(batches(), make_selection(Filter(name="f", sources=("s",), to="t")), config, "LGjob"))

    upload, uploaded = LocalStorage.upload, []

    def die(self, file, name):
        upload(self, file, name)
        uploaded.append(name)
        if len(uploaded) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "upload", die)
        with pytest.raises(KeyboardInterrupt):
            run(True)
    run(False)

    files = sorted((tmp_path / "archive" / "t").glob("date=*/*"))
    lines = [decode(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert sorted(event.header.id for event in lines) == [row["id"] for row in rows]
    assert [file.name for file in files] == ["LGjob-00000-00000.jsonl.gz", "LGjob-00000-00001.jsonl.gz"]
    assert len(list((tmp_path / "archive" / "t" / "_manifest").iterdir())) == 2


def test_an_archive_becomes_another_archive(spark, home, tmp_path):
    lines = [one.body for one in home.topic("events").peek(1000)]
    for part in range(3):
        (tmp_path / f"{part}.jsonl").write_bytes(b"\n".join([*lines[part::3], b"no event"]))
    selection = make_selection(Filter(name="errors", sources=("events",), to="errors", where="level = 'ERROR'"))
    paths = [str(tmp_path / f"{part}.jsonl") for part in range(3)]

    done = filter_events(
        read_events(spark, paths, selection), selection, StoreSinkConfig(path=str(tmp_path / "archive"), topic="errors")
    )

    wanted = {plain(line)["header"]["id"] for line in lines if plain(line)["header"].get("level") == "ERROR"}
    found = spark.read.format("balog").load(str(tmp_path / "archive"))
    assert sorted(row.id for row in found.select("id").collect()) == sorted(wanted)
    assert done.written == len(wanted)
