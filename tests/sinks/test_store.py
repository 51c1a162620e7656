import errno
import fcntl
import gzip
import os

import pytest

from balog.common.errors import ConfigError
from balog.sinks import SinkError
from balog.sinks import store as store_module
from balog.sinks.archive import store_part as part_module
from balog.sinks.store import StoreSinkConfig
from tests.forks import in_child
from tests.sinks.archives import deliveries
from tests.stand_ins.batches import refused


def build(root, **more):
    sink = StoreSinkConfig(path=str(root), topic="t", **more).build()
    sink.open()
    return sink


def lines(root):
    files = sorted(root.glob("t/date=*/*.jsonl.gz"))
    return [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def test_a_file_that_is_large_enough_is_finished(tmp_path):
    sink = build(tmp_path, max_file_bytes=1024)
    for _ in range(5):
        sink.write(deliveries(20))
    assert len(list(tmp_path.rglob("*.gz"))) == 5
    sink.close()
    assert len(lines(tmp_path)) == 100


def test_many_days_at_once_do_not_hold_many_files_open(tmp_path):
    sink = build(tmp_path)
    for day in range(1, 29):
        sink.write(deliveries(1, day=day))
    assert len(list(tmp_path.rglob("*.part"))) == store_module._MAX_OPEN_FILES
    sink.close()
    assert len(lines(tmp_path)) == 28


def test_a_killed_mender_is_no_loss_and_no_double(tmp_path, monkeypatch):
    assert in_child(lambda: build(tmp_path).write(deliveries(10))) == 0
    part = next(tmp_path.rglob("*.part"))
    with part.open("ab") as file:
        file.write(bytes(4096))  # as a power failure leaves it
    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", lambda a, b: os._exit(7))
        assert in_child(build, tmp_path) == 7
    assert part.exists()
    orphan = part.read_bytes()
    build(tmp_path).close()
    assert len(lines(tmp_path)) == 10
    part.write_bytes(orphan)  # as when the mender dies after it has renamed its file
    build(tmp_path).close()
    assert len(lines(tmp_path)) == 10
    assert list(tmp_path.rglob(".*.part")) == []


def test_a_full_disk_leaves_whole_batches_and_takes_the_batch_again(tmp_path, monkeypatch):
    """Given a disk that fills in the middle of a batch, when it has room again, then no event is torn or doubled."""
    sink = build(tmp_path)
    sink.write(deliveries(100))
    batch = deliveries(100)
    write_all = part_module.write_all

    def torn(file, data):
        write_all(file, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(part_module, "write_all", torn)
    assert refused(sink, batch, "No space left on device").retryable
    monkeypatch.undo()
    sink.write(batch)
    sink.close()
    found = lines(tmp_path)
    assert len(found) == len(set(found)) == 200


def refuse(old, new):
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("topic", ["../up", "a/b", ".hidden", "", "a b"])
def test_a_topic_that_is_no_plain_name_is_refused(tmp_path, topic):
    with pytest.raises(ConfigError):
        StoreSinkConfig(path=str(tmp_path), topic=topic).build()


def test_a_full_file_that_cannot_be_finished_is_not_a_failed_batch(tmp_path, monkeypatch):
    """Given a disk without room for a file's last bytes, then its events are there once when there is room again."""
    sink = build(tmp_path, max_file_bytes=1024)

    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", refuse)
        sink.write(deliveries(50))
        sink.write(deliveries(50))
        assert lines(tmp_path) == []
    sink.write(deliveries(50))
    sink.close()
    assert len(lines(tmp_path)) == 150
    assert list(tmp_path.rglob(".*")) == []


def test_a_file_that_cannot_be_finished_at_the_end_is_finished_by_the_next(tmp_path, monkeypatch):
    sink = build(tmp_path)
    sink.write(deliveries(5))

    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", refuse)
        with pytest.raises(SinkError, match="1 file stays hidden"):
            sink.close()
    build(tmp_path).close()
    assert len(lines(tmp_path)) == 5


def test_a_new_file_that_a_mender_took_for_an_orphan_is_made_again(tmp_path, monkeypatch):
    """Given a mender that comes between a file's making and its locking, then no event goes into a removed file."""
    flock = fcntl.flock
    taken = []

    def mender_first(file, how):
        if not taken:
            taken.append(next(tmp_path.rglob("*.part")))
            taken[0].unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", mender_first)
    sink = build(tmp_path)
    sink.write(deliveries(5))
    sink.close()
    assert len(taken) == 1
    assert len(lines(tmp_path)) == 5
