"""The registry and the versions of documents at S3: what is there is there, and of many at once one wins.

moto keeps If-None-Match, and S3Proxy does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from balog.common.storage import StorageError
from balog.registry import Schema, VersionTakenError, open_registry
from balog.service.control import Control, VersionConflict, open_control
from balog.service.remote_registry import open_any_registry
from balog.service.service import Service
from balog.service.settings import ServiceConfig
from tests.services.servers.moto import MotoServer, running_moto
from tests.services.servers.s3 import running_s3

pytestmark = pytest.mark.service

PLACE = "s3://schemas/of the house"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    with running_moto(tmp_path_factory.mktemp("moto")) as server:
        server.client("s3").create_bucket(
            Bucket="schemas", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        yield server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def order(title: str = "") -> Schema:
    return Schema("order", "1.0.0", "json", b'{"title": "%b", "required": ["id"]}' % title.encode())


def test_what_is_registered_at_s3_is_there(server: MotoServer) -> None:
    options: dict[str, Any] = {"endpoint_url": server.endpoint}
    place = f"{PLACE}/one"
    with open_registry(place, options) as registry:
        assert "order" not in registry.types()
        registry.register(order())
    with open_registry(place, options) as again:
        assert again.get("order") == order()
        assert [fault.reason for fault in again.validator("order").check(b"{}")] == ['"id" is a required property']


def test_a_service_stands_on_s3(server: MotoServer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"endpoint_url": server.endpoint}
    with open_registry(f"{PLACE}/served", options) as registry:
        registry.register(order())
    config = ServiceConfig(
        topics=f"local:{tmp_path}",
        listen=":0",
        registry=f"{PLACE}/served",
        registry_options=options,
        control="s3://schemas/control",
        control_options=options,
    )
    document = b'{"callbacks": [{"name": "partner", "source": "orders", "url": "https://example.com/"}]}'

    with Service(config) as service:
        with open_any_registry(service.url) as remote:
            assert remote.get("order") == order()
        control = open_control(service.url)
        control.push(document, who="", message="")
        assert service.applier.await_version(1, timeout=30.0).number == 1
        assert [job.state for job in service.applier.status().jobs] == ["running"]
        control.close()
    with_report = open_control("s3://schemas/control", options)
    (status,) = with_report.services()
    assert (status.service, status.number, status.state) == (service.name, 1, "stopped")


def test_of_many_registrations_at_s3_one_wins(server: MotoServer) -> None:
    options: dict[str, Any] = {"endpoint_url": server.endpoint}

    def register(number: int) -> bool:
        with open_registry(f"{PLACE}/many", options) as registry:
            try:
                registry.register(order(str(number)))
            except VersionTakenError:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(register, range(8)))

    assert sum(won) == 1
    assert open_registry(f"{PLACE}/many", options).get("order") == order(str(won.index(True)))


def test_of_many_who_push_at_once_each_gets_a_number_of_its_own(server: MotoServer) -> None:
    def opened() -> Control:
        return open_control("s3://schemas/many versions", {"endpoint_url": server.endpoint})

    def push(who: int) -> list[int]:
        control, numbers = opened(), list[int]()
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


def test_a_store_that_would_let_two_win_takes_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_s3(tmp_path) as server:
        server.environment(monkeypatch)
        server.bucket("control")
        control = open_control("s3://control/x", server.options())
        with pytest.raises(StorageError, match="If-None-Match is ignored"):
            control.push(b"{}", who="ann", message="")
        assert control.head() is None
        control.close()


def test_a_store_that_goes_away_changes_nothing_for_whom_it_served(server: MotoServer) -> None:
    options: dict[str, Any] = {"endpoint_url": server.endpoint}
    registry = open_registry(f"{PLACE}/gone", options, max_age=-1)
    registry.register(order())
    registry.validator("order")
    server.stop()
    try:
        assert registry.validator("order").check(b'{"id": 1}') == []
        assert registry.problem
        with pytest.raises(StorageError):
            open_registry(PLACE, options).types()
    finally:
        server.up()
