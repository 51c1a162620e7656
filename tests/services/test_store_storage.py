"""Storage at real servers: S3Proxy and pyftpdlib."""

import datetime
import os
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import trustme

from balog.common.storage import StorageError, open_storage
from balog.common.storage import remote as remote_module
from tests.services.servers.ftp import running_ftp
from tests.services.servers.moto import running_moto
from tests.services.servers.s3 import running_s3

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def ftp(tmp_path):
    with running_ftp(tmp_path / "ftp") as server:
        yield server


@pytest.fixture(params=["s3", "ftp"])
def storage(request, monkeypatch):
    server = request.getfixturevalue(request.param)
    server.environment(monkeypatch)
    if request.param == "ftp":
        return open_storage(server.url("a/b c"), server.options())
    bucket = f"bucket-{uuid4().hex}"
    server.bucket(bucket)
    return open_storage(f"s3://{bucket}/a/b c", server.options())


def test_what_is_written_is_read_back_and_replaced(storage):
    storage.write(b"one", "x/y.json")
    storage.write(b"two!", "x/y.json")

    assert storage.read("x/y.json") == b"two!"
    assert storage.size("x/y.json") == 4
    age = datetime.datetime.now(datetime.timezone.utc) - storage.modified("x/y.json")
    assert abs(age) < datetime.timedelta(minutes=5)
    with storage.open("x/y.json") as file:
        assert file.read() == b"two!"
    storage.write(b"", "x/y.json")
    assert storage.read("x/y.json") == b""
    storage.remove("x/y.json")
    storage.remove("x/y.json")
    assert storage.read("x/y.json") is None
    assert storage.size("x/y.json") is None


def test_a_place_that_cannot_create_refuses_before_it_harms(storage):
    """Given FTP, or a store that ignores If-None-Match, as this S3Proxy does, then nothing is written."""
    storage.write(b"old", "x")
    with pytest.raises(StorageError, match=r"use local disk or S3|If-None-Match is ignored") as caught:
        storage.create(b"new", "x")
    assert not caught.value.retryable
    assert storage.read("x") == b"old"
    assert [name for name, _ in storage.files()] == ["x"]


def test_of_many_who_create_a_file_at_s3_one_wins(tmp_path, monkeypatch):
    with running_moto(tmp_path) as server:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        server.client("s3").create_bucket(
            Bucket="a-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        options = {"endpoint_url": server.endpoint}

        def create(number):
            return open_storage("s3://a-bucket/a/b c", options).create(b"%d" % number, "x/y")

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(create, range(8)))
        storage = open_storage("s3://a-bucket/a/b c", options)
        assert sum(won) == 1
        assert storage.read("x/y") == b"%d" % won.index(True)
        assert [name for name, _ in storage.files()] == ["x/y"]


def test_files_are_given_folder_by_folder(storage, request):
    for name in ("b.x", "a/z z.x", "date=2026-11-20/c.x", "_manifest/x", "a/.part"):
        storage.write(b"12", name)
    assert list(storage.files()) == [("a/z z.x", 2), ("b.x", 2), ("date=2026-11-20/c.x", 2)]
    assert list(storage.files(lambda folder: folder != "a")) == [("b.x", 2), ("date=2026-11-20/c.x", 2)]
    options = request.getfixturevalue(request.node.callspec.params["storage"]).options()
    one = open_storage(f"{storage.url}/b.x", options)
    assert list(one.files()) == [("", 2)]


def test_a_large_file_is_uploaded_whole(storage, tmp_path):
    data = os.urandom(20 << 20)
    (tmp_path / "source").write_bytes(data)
    storage.upload(tmp_path / "source", "big.bin")

    assert storage.size("big.bin") == len(data)
    assert storage.read("big.bin") == data


def test_a_server_that_went_away_is_said_and_found_again(storage, request):
    storage.write(b"one", "x")
    name = request.node.callspec.params["storage"]
    if name == "s3":
        server = request.getfixturevalue("s3")
        server.stop()
        with pytest.raises(StorageError, match=r"s3://.*/x: "):
            storage.write(b"two", "x")
        server.up()
    else:
        server = request.getfixturevalue("ftp")
        server.fault = "cut"
        with pytest.raises(StorageError, match=r"ftp://.*/x: "):
            storage.write(b"two", "x")
        server.fault = ""
    assert storage.read("x") == b"one"
    storage.write(b"two", "x")
    assert storage.read("x") == b"two"


@pytest.mark.parametrize("fault", ["full", "cut", "refuse", "locked"])
def test_an_ftp_fault_leaves_the_old_file(ftp, tmp_path, monkeypatch, fault):
    """Given a server that fails in any of its ways, then the old file is whole and a retry leaves nothing beside it."""
    ftp.environment(monkeypatch)
    (tmp_path / "source").write_bytes(os.urandom(3 << 20))
    first = open_storage(ftp.url("a"), ftp.options())
    first.write(b"old", "file")
    ftp.fault = fault
    storage = open_storage(ftp.url("a"), ftp.options())
    with pytest.raises(StorageError) as caught:
        storage.upload(tmp_path / "source", "file")
    assert caught.value.retryable
    assert "balog-test-password" not in str(caught.value)
    assert (ftp.folder / "a" / "file").read_bytes() == b"old"
    ftp.fault = ""
    storage.upload(tmp_path / "source", "file")
    assert storage.read("file") == (tmp_path / "source").read_bytes()
    assert [path.name for path in (ftp.folder / "a").iterdir()] == ["file"]


def test_a_session_that_the_server_ended_for_idleness_is_no_trouble(ftp, monkeypatch):
    ftp.environment(monkeypatch)
    ftp.idle = 1
    storage = open_storage(ftp.url("a"), ftp.options())
    storage.write(b"one", "x")
    time.sleep(2)
    monkeypatch.setattr(remote_module, "_IDLE_SECONDS", 1.0)
    storage.write(b"two", "x")
    assert storage.read("x") == b"two"


def test_a_refusing_ftp_server_is_not_taken_for_a_missing_file(ftp, monkeypatch):
    ftp.environment(monkeypatch)
    ftp.fault = "refuse"
    with pytest.raises(StorageError, match="Too many connections"):
        open_storage(ftp.url("a"), ftp.options()).read("state.json")


def test_a_wrong_password_is_an_error_without_the_password(ftp, monkeypatch):
    monkeypatch.setenv("TEST_FTP_PASSWORD", "hunter2")
    with pytest.raises(StorageError, match="530") as caught:
        open_storage(ftp.url("a"), ftp.options()).read("x")
    assert "hunter2" not in str(caught.value)


def test_a_wrong_s3_key_is_an_error_without_the_key(s3, monkeypatch):
    s3.environment(monkeypatch)
    s3.bucket("wrongkey")
    monkeypatch.setenv("TEST_S3_SECRET", "hunter2hunter2")
    with pytest.raises(StorageError) as caught:
        open_storage("s3://wrongkey/a", s3.options()).write(b"x", "y")
    assert "hunter2" not in str(caught.value)


def test_a_bucket_that_is_missing_is_an_error(s3, monkeypatch):
    s3.environment(monkeypatch)
    with pytest.raises(StorageError, match="bucket"):
        open_storage("s3://no-such-bucket/a", s3.options()).write(b"x", "y")


def test_ftp_over_tls_is_verified(tmp_path, monkeypatch):
    pytest.importorskip("OpenSSL", reason="pyftpdlib speaks TLS with pyOpenSSL, which is not installed")
    authority, pem, ca_file = trustme.CA(), tmp_path / "server.pem", str(tmp_path / "authority.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    authority.cert_pem.write_to_path(ca_file)
    with running_ftp(tmp_path / "ftp", pem) as server:
        server.environment(monkeypatch)
        with pytest.raises(StorageError, match="certificate verify failed"):
            open_storage(server.url("a"), {**server.options(), "tls": True}).write(b"x", "y")
        trusting = open_storage(server.url("a"), {**server.options(), "tls": True, "ca_file": ca_file})
        trusting.write(b"x", "y")
        assert trusting.read("y") == b"x"
