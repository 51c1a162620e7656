"""Events on a real S3, with and without trouble."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from balog.analytics.reading import remote
from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.remote import StoragePool, store_options
from balog.analytics.reading.tasks import plan
from balog.common.backoff import Backoff
from balog.common.errors import ConfigError
from tests.analytics.reading.conftest import read_tasks
from tests.services.servers.faulty import running_proxy
from tests.services.servers.s3 import KEY, SECRET, running_s3

pytestmark = pytest.mark.service

REGION = '{"client_kwargs": {"region_name": "us-east-1"}}'
COLUMNS = "id string, quarantine struct<file string, offset bigint, reason string, raw string>"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def proxy(server, monkeypatch):
    """A way to the server that can fail; the waits between tries are short."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(remote, "TRIES", 4)
    monkeypatch.setattr(remote, "BACKOFF", Backoff(0.01, 0.01))
    monkeypatch.setattr(remote, "_failing_stores", set())
    with running_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def storages(proxy):
    return StoragePool(store_options({"endpoint_url": proxy.url, "storage_options": REGION}))


@pytest.fixture
def bucket(server) -> Path:
    """A bucket's folder; its name is the bucket's."""
    return server.bucket(f"bucket-{uuid4().hex}")


def put(path: Path, numbers: range = range(0)) -> None:
    """Put events of these numbers straight into the folder of the server, with what it keeps beside an object."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in numbers:
        header = {"id": f"LG{number:022d}", "channel": "c", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO"}
        lines.append(json.dumps({"schema": "0.1.0", "header": header, "payload": {"cls_type": "x", "pad": "." * 200}}))
    data = "".join(line + "\n" for line in lines).encode()
    data = gzip.compress(data) if path.suffix == ".gz" else data
    path.write_bytes(data)
    os.setxattr(path, "user.user.content-md5", hashlib.md5(data).digest())


def ids(numbers: range) -> list[str]:
    return [f"LG{number:022d}" for number in numbers]


def test_folders_globs_and_single_objects_are_read_plain_and_packed_cut_anywhere(bucket, storages):
    put(bucket / "t/date=2026-11-20/a.jsonl", range(30_000))
    put(bucket / "t/date=2026-11-20/b.jsonl.gz", range(30_000, 40_000))
    put(bucket / "t/date=2026-11-21/c.jsonl", range(40_000, 40_001))
    put(bucket / "t/_manifest/c.jsonl", range(1))
    put(bucket / "t/date=2026-11-21/.d.jsonl", range(1))
    put(bucket / "t/date=2026-11-21/empty.jsonl")
    put(bucket / "t/README.md")
    base = f"s3://{bucket.name}/t"
    files = find_files(base, storages)
    assert [file.path.removeprefix(base) for file in files] == [
        "/date=2026-11-20/a.jsonl",
        "/date=2026-11-20/b.jsonl.gz",
        "/date=2026-11-21/c.jsonl",
        "/date=2026-11-21/empty.jsonl",
    ]
    assert all(abs(file.modified - os.path.getmtime(bucket / file.path[len(base) - 1 :])) < 2 for file in files[:3])
    tasks = plan(files, 8)
    assert sum(piece.path.endswith("a.jsonl") for task in tasks for piece in task) > 1
    assert read_tasks(tasks, storages) == (Counter(ids(range(40_001))), [])
    for paths in ([f"{base}/*/*.gz", f"{base}/date=2026-11-21"], f"s3a://{bucket.name}/t/**/[bc].*"):
        assert read_tasks(plan(find_files(paths, storages), 1), storages) == (Counter(ids(range(30_000, 40_001))), [])
    assert [file.path for file in find_files(f"{base}/README.md", storages)] == [f"{base}/README.md"]


def test_folders_full_of_objects_take_one_request(bucket, storages, proxy):
    for number in range(140):
        put(bucket / f"date=2026-11-{number % 28 + 1:02d}/{number}.jsonl")
    proxy.counted.clear()
    assert len(find_files(f"s3://{bucket.name}", storages)) == 140
    assert sum(proxy.counted.values()) == 1


def test_a_small_object_takes_one_request(bucket, storages, proxy):
    put(bucket / "a.jsonl", range(3))
    tasks = plan(find_files(f"s3://{bucket.name}/a.jsonl", storages), 1)
    proxy.counted.clear()
    assert read_tasks(tasks, storages) == (Counter(ids(range(3))), [])
    assert sum(proxy.counted.values()) == 1


@pytest.mark.parametrize("kind", ["503", "cut"])
def test_trouble_that_passes_costs_no_line(bucket, storages, proxy, kind):
    put(bucket / "a.jsonl", range(5000))
    put(bucket / "b.jsonl.gz", range(5000, 9000))
    tasks = plan(find_files(f"s3://{bucket.name}", storages), 1)
    asked: Counter[str] = Counter()

    def fault(method: str, path: str) -> str:
        asked[path] += 1
        return kind if asked[path] % 4 else ""

    proxy.fault = fault
    assert read_tasks(tasks, storages) == (Counter(ids(range(9000))), [])
    assert sum(asked.values()) > 8


def test_trouble_that_stays_is_a_row_of_quarantine_for_each_object(bucket, storages, proxy):
    put(bucket / "a.jsonl", range(10))
    put(bucket / "b.jsonl", range(10, 20))
    tasks = plan(find_files(f"s3://{bucket.name}", storages), 1)
    proxy.fault = lambda method, path: "503" if "b.jsonl" in path else ""
    counted, (bad,) = read_tasks(tasks, storages)
    assert counted == Counter(ids(range(10)))
    assert (bad["file"], bad["offset"]) == (f"s3://{bucket.name}/b.jsonl", 0)
    assert bad["reason"].startswith("can't be read: ")


def test_an_object_that_went_away_is_a_row_of_quarantine(bucket, storages):
    put(bucket / "a.jsonl", range(10))
    put(bucket / "b.jsonl.gz", range(10))
    tasks = plan(find_files(f"s3://{bucket.name}", storages), 1)
    (bucket / "b.jsonl.gz").unlink()
    counted, (bad,) = read_tasks(tasks, storages)
    assert counted == Counter(ids(range(10)))
    assert (bad["file"], bad["offset"], bad["reason"]) == (
        f"s3://{bucket.name}/b.jsonl.gz",
        0,
        "can't be read: no such file",
    )


def test_what_is_not_there_or_not_allowed_is_refused_before_anything_runs(bucket, storages, monkeypatch):
    for path in (f"s3://{bucket.name}/nothing", "s3://no-such-bucket-anywhere/a", f"s3://{bucket.name}/*.jsonl"):
        with pytest.raises(ConfigError, match=r"no such file|no file matches"):
            find_files(path, storages)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    monkeypatch.setattr(remote, "_stores", {})
    with pytest.raises(ConfigError, match="no permission") as caught:
        find_files(f"s3://{bucket.name}", storages)
    assert "hunter2" not in str(caught.value)


@pytest.mark.spark
def test_spark_reads_a_store_in_its_workers(bucket, proxy, spark, tmp_path):
    """The secrets come from files: the environment of the session that tests share was made before this one's."""
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "secret").write_text(SECRET)
    secrets = {name: {"file": str(tmp_path / name)} for name in ("key", "secret")}
    put(bucket / "a.jsonl", range(3000))
    put(bucket / "b.jsonl.gz", range(3000, 5000))
    reader = spark.read.format("balog").schema(COLUMNS).option("endpoint_url", proxy.url)
    reader = reader.option("storage_options", json.dumps({**secrets, **json.loads(REGION)}))
    assert reader.load(f"s3://{bucket.name}").where("quarantine is null").distinct().count() == 5000
    with pytest.raises(Exception, match="would show a secret") as caught:
        reader.option("secret", "hunter2").load(f"s3://{bucket.name}").count()
    assert "hunter2" not in str(caught.value)


def balog(server: Any, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command without Spark; child processes get the server's address and keys from the environment."""
    program = "import sys; sys.modules['pyspark'] = None; from balog.cli import main; main()"
    environment = {**os.environ, "AWS_ENDPOINT_URL_S3": server.url, "AWS_DEFAULT_REGION": "us-east-1"}
    environment |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
    # S3Proxy knows no checksums in answers
    environment |= {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_a_report_and_a_query_of_objects_need_no_spark(server, bucket: Path) -> None:
    put(bucket / "a.jsonl", range(40_000))
    put(bucket / "more" / "b.jsonl.gz", range(40_000, 41_000))
    url = f"s3://{bucket.name}"
    done = balog(server, "report", url, "--json", "--no-html")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [row["reason"] for row in report["quarantine"]] == []
    assert (report["events"], report["files"]) == (41_000, 2)
    done = balog(
        server, "query", f'SELECT count(DISTINCT id) AS n FROM balog."{url}"', "--source", url, "--format", "csv"
    )
    assert (done.returncode, done.stdout.split()) == (0, ["n", "41000"]), done.stderr
