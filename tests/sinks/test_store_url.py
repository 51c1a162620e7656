"""The store sink at a URL: staged on disk, uploaded whole. ``file://`` and ``memory://`` stand for the other side."""

import gzip
import json
import os
from datetime import datetime
from hashlib import sha256

import msgspec
import pytest

from balog.common.storage import StorageError
from balog.common.storage.local import LocalStorage
from balog.delivery import Dispatcher
from balog.sinks import Retrying, SinkError
from balog.sinks.archive import store_part
from balog.sinks.store import StoreSinkConfig
from tests.forks import in_child
from tests.sinks.archives import deliveries
from tests.stand_ins.batches import refused
from tests.waiting import wait_for


def config(root, is_local=False, **more):
    remote = root / "remote"
    place = {"path": str(remote)} if is_local else {"url": remote.as_uri(), "staging": str(root / "staging")}
    return StoreSinkConfig(**place, topic="t", **{"max_age": 60, **more})


def build(root, is_local=False, **more):
    sink = config(root, is_local, **more).build()
    sink.open()
    return sink


def unpack(file):
    return gzip.decompress(file.read_bytes())


def lines(root):
    return [line for file in sorted(root.glob("remote/t/date=*/[!.]*")) for line in unpack(file).splitlines()]


def staged(root):
    return [path for path in (root / "staging").rglob("*") if path.is_file()]


def manifests(root):
    return [json.loads(file.read_bytes()) for file in sorted(root.glob("remote/t/_manifest/*.json"))]


def test_events_come_by_topic_and_date_with_a_manifest_for_each_file(tmp_path):
    sink = build(tmp_path)
    sink.write(deliveries(3, day=19) + deliveries(200, day=20))
    sink.write(deliveries(2, day=20))
    assert lines(tmp_path) == []
    sink.close()

    assert len(lines(tmp_path)) == 205
    found = {item["file"]: item for item in manifests(tmp_path)}
    for file in tmp_path.glob("remote/t/date=*/[!.]*"):
        said = found.pop(str(file.relative_to(tmp_path / "remote" / "t")))
        times = [json.loads(line)["header"]["timestamp"] for line in unpack(file).splitlines()]
        assert said["events"] == len(times)
        assert said["bytes"] == file.stat().st_size
        assert said["sha256"] == sha256(file.read_bytes()).hexdigest()
        assert msgspec.convert(said["min_timestamp"], datetime) == msgspec.convert(min(times), datetime)
        assert msgspec.convert(said["max_timestamp"], datetime) == msgspec.convert(max(times), datetime)
    assert found == {}
    assert staged(tmp_path) == []


@pytest.mark.parametrize("is_local", [False, True])
def test_an_old_enough_file_becomes_visible_without_another_event(tmp_path, is_local):
    sink = build(tmp_path, is_local, max_age=0.1)
    sink.write(deliveries(5))
    wait_for(lambda: len(lines(tmp_path)) == 5)
    sink.close()


class Refusing:
    """Makes uploads fail while it is on."""

    def __init__(self, monkeypatch):
        self.on = True
        self.tries = 0
        upload = LocalStorage.upload

        def refuse(storage, file, name=""):
            self.tries += 1
            if self.on:
                raise StorageError(f"{storage.url}/{name}: 503 Slow Down")
            upload(storage, file, name)

        monkeypatch.setattr(LocalStorage, "upload", refuse)


@pytest.fixture
def refusing(monkeypatch):
    return Refusing(monkeypatch)


def leave(root, refusing, batch, reason="503 Slow Down"):
    """Write a batch that can't be uploaded to its end; afterwards the store takes files again."""
    sink = build(root)
    sink.write(batch)
    with pytest.raises(SinkError, match=reason):
        sink.close()
    assert lines(root) == []
    refusing.on = False


def test_a_store_that_refuses_fails_no_batch_and_is_said_once(tmp_path, refusing, capsys):
    """Given a store that is down for a while, then batches are taken, one line says so, and later all is there once."""
    sink = build(tmp_path, max_file_bytes=1024, retry=Retrying(first=0.05, longest=0.1))
    for _ in range(3):
        sink.write(deliveries(50))
    wait_for(lambda: refusing.tries > 2)
    assert lines(tmp_path) == []
    refusing.on = False
    wait_for(lambda: len(lines(tmp_path)) == 150)
    sink.close()

    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "503 Slow Down" in said[0]
    assert "uploads again" in said[1]
    assert len(lines(tmp_path)) == 150
    assert staged(tmp_path) == []


def test_what_could_not_be_uploaded_at_the_end_is_uploaded_by_the_next(tmp_path, refusing):
    leave(tmp_path, refusing, deliveries(5, day=1) + deliveries(5, day=2), "503 Slow Down; 2 files stay")
    build(tmp_path).close()
    assert len(lines(tmp_path)) == 10
    assert staged(tmp_path) == []


def test_what_waits_is_uploaded_by_a_broker_that_gets_no_event(tmp_path, refusing):
    leave(tmp_path, refusing, deliveries(10))
    said = []
    dispatcher = Dispatcher([config(tmp_path)], said.append)
    wait_for(lambda: len(lines(tmp_path)) == 10)
    dispatcher.close(10)
    assert (staged(tmp_path), said) == ([], [])


def write_without_end(sink):
    for _ in range(1000):
        sink.write(deliveries(500))


def test_no_more_is_taken_than_may_wait(tmp_path, refusing, monkeypatch):
    """Given a store that is down for long, then the staging folder stays bounded and the dispatcher is told."""
    monkeypatch.setattr("balog.sinks.store._MAX_STAGED_BYTES", 1 << 20)
    sink = build(tmp_path, max_file_bytes=1024)
    with pytest.raises(SinkError, match="bytes wait in") as caught:
        write_without_end(sink)
    assert caught.value.retryable
    assert sum(path.stat().st_size for path in staged(tmp_path)) < 2 << 20
    refusing.on = False
    wait_for(lambda: not list((tmp_path / "staging").rglob("date=*/[!.]*.gz")))
    sink.write(deliveries(1))
    sink.close()


@pytest.mark.parametrize("step", ["rename data", "rename manifest", "uploaded", "unlinked"])
@pytest.mark.parametrize("is_local", [False, True])
def test_a_writer_killed_at_any_step_of_finishing_loses_and_doubles_nothing(tmp_path, step, is_local):
    def write():
        kill_at(step)
        sink = build(tmp_path, is_local)
        sink.write(deliveries(10))
        sink.close()

    is_killed = not is_local or step.startswith("rename")  # a folder on this machine has no upload
    assert in_child(write) == (7 if is_killed else 0)
    for _ in range(2):
        build(tmp_path, is_local).close()
    assert len(lines(tmp_path)) == 10
    (manifest,) = manifests(tmp_path)
    (file,) = tmp_path.glob("remote/t/date=*/[!.]*")
    assert manifest["events"] == 10
    assert manifest["sha256"] == sha256(file.read_bytes()).hexdigest()
    assert staged(tmp_path) == []
    assert list(tmp_path.rglob(".*")) == []


def kill_at(step):
    rename, upload, unlink = os.rename, LocalStorage.upload, os.unlink

    def killing_rename(old, new):
        if step == ("rename manifest" if str(new).endswith(".json") else "rename data"):
            os._exit(7)
        rename(old, new)

    def killing_upload(storage, file, name=""):
        upload(storage, file, name)
        if step == "uploaded":
            os._exit(7)

    def killing_unlink(path, *args, **options):
        unlink(path, *args, **options)
        if step == "unlinked":
            os._exit(7)

    os.rename, LocalStorage.upload, os.unlink = killing_rename, killing_upload, killing_unlink


def test_an_upload_that_was_done_is_not_done_again(tmp_path, monkeypatch):
    """Given a writer that died after its upload, then the next finds the file there and sends only the manifest."""

    def write():
        os.unlink = lambda *_: os._exit(7)
        sink = build(tmp_path)
        sink.write(deliveries(10))
        sink.close()

    assert in_child(write) == 7
    sent = []
    upload = LocalStorage.upload
    monkeypatch.setattr(
        LocalStorage, "upload", lambda self, file, name="": (sent.append(name), upload(self, file, name))
    )
    build(tmp_path).close()
    assert [name.partition("/")[0] for name in sent] == ["_manifest"]
    assert len(lines(tmp_path)) == 10


def test_two_at_once_share_a_staging_folder(tmp_path):
    first, second = build(tmp_path), build(tmp_path)
    first.write(deliveries(5))
    second.write(deliveries(5))
    second.close()
    first.write(deliveries(5))
    first.close()
    assert len(lines(tmp_path)) == 15
    assert len(manifests(tmp_path)) == 2
    assert staged(tmp_path) == []


def test_what_waits_for_one_place_is_not_sent_to_another(tmp_path, refusing):
    leave(tmp_path, refusing, deliveries(5))
    other = StoreSinkConfig(url=(tmp_path / "other").as_uri(), staging=str(tmp_path / "staging"), topic="t").build()
    other.open()
    other.close()
    assert list(tmp_path.rglob("other/**/*.gz")) == []
    assert len(staged(tmp_path)) == 2


def test_a_probe_leaves_nothing(tmp_path):
    sink = build(tmp_path)
    sink.probe()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    (tmp_path / "remote" / "t" / "_manifest").rmdir()
    (tmp_path / "remote" / "t").rmdir()
    (tmp_path / "remote" / "t").write_text("a file where the folder should be")
    with pytest.raises(SinkError, match=r"File exists|Not a directory"):
        sink.probe()
    sink.close()


def test_the_default_staging_folder_is_the_user_s(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    sink = StoreSinkConfig(url="memory://x", topic="t").build()
    assert str(sink._folder).startswith(f"{tmp_path}/balog/staging/memory-x-")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"path": "a", "url": "s3://b"},
        {"path": "a", "staging": "b"},
        {"path": "a", "options": {"x": 1}},
        {"url": "s3://b/c", "max_age": 0},
    ],
)
def test_a_config_that_contradicts_itself_is_refused(more):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "store", "topic": "t", **more}, StoreSinkConfig)


def test_of_a_batch_of_several_days_only_what_was_not_written_comes_again(tmp_path, monkeypatch):
    sink = build(tmp_path)
    batch = deliveries(5, day=1) + deliveries(5, day=2) + deliveries(5, day=1)
    real, calls = os.fsync, []

    def fail_second(descriptor):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail_second)
        error = refused(sink, batch, "No space left")
    assert error.remaining == [5, 6, 7, 8, 9]
    sink.write([batch[index] for index in error.remaining])
    sink.close()
    assert sorted(lines(tmp_path)) == sorted(body for _, body in batch)


def test_a_folder_that_cannot_be_synced_does_not_end_the_sink(tmp_path, monkeypatch):
    def refuse(folder):
        raise OSError(5, "Input/output error")

    sink = build(tmp_path, max_file_bytes=1024)
    with monkeypatch.context() as broken:
        broken.setattr(store_part, "sync_folder", refuse)
        sink.write(deliveries(50))
        sink.write(deliveries(50))
    sink.close()
    assert len(lines(tmp_path)) == 100
    assert len(manifests(tmp_path)) == 2


@pytest.mark.parametrize("is_local", [False, True])
def test_what_a_killed_writer_left_is_finished_by_the_next(tmp_path, is_local):
    """Given a writer that died in the middle of a block, then every batch that it had confirmed is in a whole file."""

    def write():
        sink = build(tmp_path, is_local)
        sink.write(deliveries(1000))
        sink.write(deliveries(1000))
        with open(next(tmp_path.rglob("*.part")), "ab") as file:
            file.write(b"\x12\x34 torn")

    assert in_child(write) == 0
    assert lines(tmp_path) == []
    for _ in range(2):
        build(tmp_path, is_local).close()
        assert len(lines(tmp_path)) == 2000
    (manifest,) = manifests(tmp_path)
    assert manifest["events"] == 2000
    assert staged(tmp_path) == []
    assert list(tmp_path.rglob(".*")) == []
