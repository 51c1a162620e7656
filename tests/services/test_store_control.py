"""Versions at S3: moto keeps If-None-Match, and S3Proxy does not."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from balog.delivery.control import VersionConflict, open_control
from balog.delivery.control.applier import Applier
from balog.storage import StorageError
from tests.services.servers.moto import running_moto
from tests.services.servers.s3 import running_s3

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    with running_moto(tmp_path_factory.mktemp("moto")) as server:
        place = {"LocationConstraint": "eu-central-1"}
        server.client("s3").create_bucket(Bucket="control", CreateBucketConfiguration=place)
        yield server


@pytest.fixture
def opened(moto, monkeypatch, request):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    made = []

    def open():
        made.append(open_control(f"s3://control/{request.node.name}", {"endpoint_url": moto.endpoint}))
        return made[-1]

    yield open
    for control in made:
        control.close()


def test_of_many_who_push_at_once_each_gets_a_number_of_its_own(opened):
    def push(who):
        control, numbers = opened(), []
        for version in range(4):
            document = b'{"streams": [{"name": "%d-%d"}]}' % (who, version)
            while True:
                try:
                    numbers.append(control.push(document, who=str(who), message="").number)
                    break
                except VersionConflict:
                    continue
        return numbers

    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(push, range(3)))
    control = opened()
    assert sorted(number for numbers in told for number in numbers) == list(range(1, 13))
    entries = control.entries()
    assert [entry.number for entry in entries] == list(range(12, 0, -1))
    assert all(entry.number in told[int(entry.who)] for entry in entries)
    assert control.services() == []


def test_a_service_picks_up_what_is_pushed_and_reports_it(opened):
    applied = []
    applier = Applier(opened(), "at s3", make_job=lambda kind, config: None, apply=applied.append, poll=0.1)
    applier.start()
    try:
        control = opened()
        control.push(b'{"streams": [{"name": "orders"}]}', who="ann", message="")
        assert applier.await_version(1, timeout=30.0).number == 1
        assert [stream.name for stream in applied[-1].streams] == ["orders"]
    finally:
        applier.stop()
    (status,) = control.services()
    assert (status.service, status.number, status.state) == ("at s3", 1, "stopped")


def test_a_store_that_would_let_two_win_takes_no_version(tmp_path, monkeypatch):
    with running_s3(tmp_path) as server:
        server.environment(monkeypatch)
        server.bucket("control")
        control = open_control("s3://control/x", server.options())
        with pytest.raises(StorageError, match="If-None-Match is ignored"):
            control.push(b"{}", who="ann", message="")
        assert control.head() is None
        control.close()
