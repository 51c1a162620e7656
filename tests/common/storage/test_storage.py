import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError, MissingExtraError
from balog.common.storage import StorageError, is_url, open_storage
from balog.common.storage import factory as opening_module
from tests.forks import in_child


@pytest.fixture(params=["path", "file", "memory"])
def storage(request, tmp_path):
    urls = {
        "path": str(tmp_path / "a folder"),
        "file": (tmp_path / "a%20folder").as_uri(),
        "memory": f"memory://{uuid4().hex}",
    }
    return open_storage(urls[request.param])


def test_what_is_written_is_read_back(storage):
    storage.write(b"one", "a/b.json")
    storage.write(b"two!", "a/b.json")

    assert storage.read("a/b.json") == b"two!"
    assert storage.size("a/b.json") == 4
    assert abs(datetime.now(timezone.utc) - storage.modified("a/b.json")) < timedelta(minutes=5)
    with storage.open("a/b.json") as file:
        assert file.read() == b"two!"


def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    open_storage(str(pipe)).write(b"one")

    assert os.read(reader, 10) == b"one"
    assert pipe.is_fifo()
    os.close(reader)


def test_a_file_is_created_once(storage):
    assert storage.create(b"one", "a/b.json")
    assert not storage.create(b"two!", "a/b.json")

    assert storage.read("a/b.json") == b"one"
    assert [name for name, _ in storage.files()] == ["a/b.json"]


def test_of_many_who_create_a_file_one_wins(tmp_path):
    start = threading.Barrier(8)

    def create(number):
        start.wait(30)
        return open_storage(str(tmp_path)).create(b"%d" % number, "x")

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(8)))
    assert sum(won) == 1
    assert (tmp_path / "x").read_bytes() == b"%d" % won.index(True)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_creator_that_is_killed_leaves_no_file(tmp_path):
    def create():
        os.link = lambda *_: os._exit(7)
        open_storage(str(tmp_path)).create(b"new", "x")

    assert in_child(create) == 7
    assert open_storage(str(tmp_path)).create(b"other", "x")
    assert [name for name, _ in open_storage(str(tmp_path)).files()] == ["x"]


def test_a_place_that_cannot_create_refuses(tmp_path):
    with pytest.raises(StorageError, match="use local disk or S3") as caught:
        open_storage("local://" + str(tmp_path)).create(b"x", "y")
    assert not caught.value.retryable


def test_a_missing_file_is_none_and_removing_it_no_error(storage):
    assert storage.read("nothing") is None
    assert storage.size("nothing") is None
    storage.remove("nothing")


def test_a_file_is_uploaded_and_removed(storage, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "source").write_bytes(data)
    storage.upload(tmp_path / "source", "x/y")

    assert storage.read("x/y") == data
    storage.remove("x/y")
    assert storage.read("x/y") is None


def test_a_file_that_goes_while_its_folder_is_listed_hides_no_other(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    scan = os.scandir

    def scan_slowly(path):
        with scan(path) as found:
            entries = list(found)
        (tmp_path / "b").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(os, "scandir", scan_slowly)
    assert list(open_storage(str(tmp_path), None, "test").files()) == [("a", 1), ("c", 1)]


def test_a_file_that_is_too_large_is_not_read(storage):
    storage.write(b"x" * 11, "big")

    with pytest.raises(StorageError, match="right file"):
        storage.read("big", limit=10)


def test_a_missing_file_cannot_be_opened(storage):
    with pytest.raises(StorageError, match="nothing"):
        storage.open("nothing").read()


@given(data=st.binary(max_size=2000))
def test_bytes_come_back_as_they_were(data):
    storage = open_storage("memory://round/trip")
    storage.write(data, "x")

    assert storage.read("x") == data


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path / "state.json"))
    storage.write(b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            storage.write(b"new")
    assert caught.value.retryable
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
    assert storage.read() == b"old"


def test_a_writer_that_is_killed_leaves_the_old_file_whole(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path / "state.json"))
    storage.write(b"old")

    def write():
        os.rename = lambda *_: os._exit(7)
        storage.write(b"new" * 100_000)

    assert in_child(write) == 7
    assert storage.read() == b"old"


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "state.json")
    open_storage(str(tmp_path / "link.json")).write(b"{}")

    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real" / "state.json").read_bytes() == b"{}"


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    with pytest.raises(StorageError, match="is a folder"):
        open_storage(str(tmp_path)).write(b"x")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://user:hunter2@bucket/x", "credentials"),
        ("ftp://hunter2@host/x", "credentials"),
        ("simplecache::s3://bucket/x", "chain"),
        ("simplecache://x::s3://bucket/x", "chain"),
        ("https://host/x", "only be read"),
        ("s3://bucket/x?versionId=1", "place to write"),
        ("s3://", "place to write"),
        ("nosuch://x/y", "no kind of store"),
        ("file://elsewhere/x", "this machine"),
        ("", "not a URL"),
        ("a\nb", "not a URL"),
        ("a\0b", "not a URL"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_one_line(url, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        open_storage(url)
    assert caught.value.path == "url"
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["key", "secret", "token", "password", "passwd", "account_key", "sas_token", "aws_secret_access_key"]
)
def test_a_secret_in_the_options_is_refused(name):
    with pytest.raises(ConfigError, match="holds a secret") as caught:
        open_storage("s3://bucket/x", {"client_kwargs": {name: "hunter2"}})
    assert caught.value.path == f"options.client_kwargs.{name}"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("options", [{"client_kwargs": {"verify": False}}, {"use_ssl": False, "x": 1}])
def test_certificates_are_always_verified(options):
    with pytest.raises(ConfigError, match="always verified"):
        open_storage("s3://bucket/x", options)


def test_a_secret_that_is_missing_is_said_with_its_place(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ConfigError, match="NO_SUCH_KEY") as caught:
        open_storage("s3://bucket/x", {"key": {"env": "NO_SUCH_KEY"}})
    assert caught.value.path == "options.key"


def test_a_path_takes_no_options(tmp_path):
    with pytest.raises(ConfigError, match="takes none"):
        open_storage(str(tmp_path), {"endpoint_url": "http://x"})


def test_a_store_that_is_not_there_is_one_line_without_a_secret(monkeypatch):
    monkeypatch.setenv("S3_SECRET", "hunter2hunter2")
    options = {
        "endpoint_url": "http://127.0.0.1:9",
        "key": {"env": "S3_SECRET"},
        "secret": {"env": "S3_SECRET"},
        "config_kwargs": {"connect_timeout": 1},
    }
    with pytest.raises(StorageError) as caught:
        open_storage("s3://bucket/x", options).write(b"x", "y")
    assert caught.value.retryable
    assert str(caught.value).startswith("s3://bucket/x/y: ")
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_that_quotes_a_secret_does_not_show_it(monkeypatch):
    monkeypatch.setenv("A_KEY", "hunter2hunter2")
    storage = open_storage("memory://x", {"key": {"env": "A_KEY"}})

    assert str(storage.failure("y", OSError("bad key\nhunter2hunter2"))) == "memory://x/y: bad key ***"


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(opening_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\[s3\]'"):
        open_storage("s3://bucket/x")
    with pytest.raises(ConfigError, match="not installed"):
        open_storage("abfs://box/x")


def test_what_is_a_url():
    assert [text for text in ["s3://x", "file:x", "file:///x", "memory://", "a/b", "./a:b", "c:d"] if is_url(text)] == [
        "s3://x",
        "file:x",
        "file:///x",
        "memory://",
    ]


def test_files_are_given_folder_by_folder_without_hidden_ones(storage):
    for name in ("b.x", "a/z.x", "a/b/c.x", ".hidden/x", "_manifest/x", "a/.part", "date=1/x"):
        storage.write(b"12", name)
    assert list(storage.files()) == [("a/b/c.x", 2), ("a/z.x", 2), ("b.x", 2), ("date=1/x", 2)]
    asked = []
    chosen = storage.files(lambda folder: asked.append(folder) or folder == "a")
    assert list(chosen) == [("a/z.x", 2), ("b.x", 2)]
    assert asked == ["a", "a/b", "date=1"]


def test_a_file_is_its_own_only_one(tmp_path):
    (tmp_path / "_x").write_bytes(b"123")
    assert list(open_storage(str(tmp_path / "_x")).files()) == [("", 3)]


def test_a_place_that_is_not_there_has_no_files(storage):
    with pytest.raises(StorageError):
        list(storage.files())
