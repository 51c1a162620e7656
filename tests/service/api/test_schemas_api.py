"""A service's registry over HTTP: read, registered in, and opened as any other registry."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import urllib3
import uvicorn

from balog.common.storage import StorageError
from balog.registry import (
    IncompatibleError,
    InvalidSchemaError,
    Registry,
    Schema,
    UnknownTypeError,
    UnknownVersionError,
    VersionTakenError,
    open_registry,
)
from balog.service.api.app import Application
from balog.service.api.tokens import Tokens, add_token, make_token
from balog.service.remote_registry import open_any_registry
from tests.service.serving import serving

ORDER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
PROTO = b'syntax = "proto3"; package shop; message Order { int64 id = 1; } message Other { Order order = 1; }'


def order(version: str = "1.0.0", **changes: Any) -> Schema:
    return Schema("order", version, "json", json.dumps({**ORDER, **changes}).encode())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    """A server without a service; ``registry`` and ``tokens`` are set by each test."""
    home = Mock(tokens=None)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(Application(home), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    home.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield home
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def url(home: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("BALOG_TOKEN", raising=False)
    home.registry, home.tokens = open_registry(str(tmp_path / "schemas")), None
    return str(home.url)


@pytest.fixture
def remote(url: str) -> Iterator[Registry]:
    with open_any_registry(url) as registry:
        yield registry


def request(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Any:
    with urllib3.PoolManager() as pool:
        return pool.request(method, url, body=body, headers=headers, retries=False)


def test_what_is_registered_by_one_is_there_for_another(url: str, remote: Registry) -> None:
    assert remote.register(order()).compatible
    with open_any_registry(url) as another:
        assert another.get("order") == order()
        assert another.versions("order") == ["1.0.0"]
        assert [fault.path for fault in another.validator("order").check(b'{"id": "x"}')] == ["$.id"]


def test_a_protobuf_type_keeps_its_message(url: str, remote: Registry) -> None:
    schema = Schema("order", "1.0.0", "protobuf", PROTO, "shop.Order")
    remote.register(schema)
    with open_any_registry(url) as another:
        assert another.get("order") == schema


def test_errors_are_those_of_the_registry_itself(remote: Registry) -> None:
    remote.register(order())

    with pytest.raises(UnknownTypeError):
        remote.get("nope")
    with pytest.raises(UnknownVersionError):
        remote.get("order", "9.0.0")
    with pytest.raises(VersionTakenError):
        remote.register(order(title="another"))
    with pytest.raises(IncompatibleError) as caught:
        remote.register(order("1.1.0", required=["id", "price"]))
    assert not caught.value.verdict.compatible
    assert remote.register(order()).compatible  # the same again


def test_a_service_checks_what_its_client_did_not(url: str) -> None:
    answer = request(f"{url}/v1/schemas/order/1.0.0", "POST", b'{"type": "strin"}')

    assert answer.status == 422
    assert answer.json()["kind"] == "schema"
    assert answer.json()["path"] == "$.type"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nope", 404), ("/metric/9.0.0", 404), ("/metric/1.0.0", 200), ("/metric", 200), ("", 200), ("/..%2f..", 404)],
)
def test_each_path_has_its_status(url: str, path: str, status: int) -> None:
    assert request(f"{url}/v1/schemas{path}").status == status


JSON = "application/json"


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("order/1.0.0", b"{}", JSON, 201),
        *((path, b"{}", JSON, 422) for path in ("order/1.0", "a%20b/1.0.0", "%00/1.0.0", "order/1.0.0%0a")),
        *((f"order/1.0.0?{query}", b"{}", JSON, 422) for query in ("mode=sideways", "message=../../x")),
        ("order/1.0.0?message=../../x", PROTO, "text/x-protobuf", 422),
        ("order/1.0.0", b"{", JSON, 422),
        ("order/1.0.0", b"{}", "text/html", 415),
        ("order/1.0.0", b" " * (5 << 20), JSON, 413),
        ("metric/1.0.0", b"{}", JSON, 409),
    ],
    ids=lambda given: str(given)[:60],
)
def test_a_registration_has_its_status(url: str, path: str, body: bytes, kind: str, status: int) -> None:
    answer = request(f"{url}/v1/schemas/{path}", "POST", body, **{"Content-Type": kind})

    assert answer.status == status
    if status >= 400:
        assert answer.json()["problem"]


def test_rights_are_by_type(home: Mock, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, entry = make_token("shop", ("read", "register"), ("order*",))
    add_token(tmp_path / "tokens.json", entry)
    home.tokens = Tokens(tmp_path / "tokens.json")

    assert request(f"{url}/v1/schemas").status == 401
    monkeypatch.setenv("BALOG_TOKEN", token)
    with open_any_registry(url) as registry:
        registry.register(order())
        assert "order" in registry.types()
        with pytest.raises(StorageError, match="403") as caught:
            registry.register(Schema("refund", "1.0.0", "json", b"{}"))
        assert token not in str(caught.value)
    bearer = {"Authorization": f"Bearer {token}"}
    assert request(f"{url}/v1/schemas/metric", **bearer).status == 403
    assert [entry["type"] for entry in request(f"{url}/v1/schemas", **bearer).json()] == ["order"]


def test_a_service_that_is_away_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with open_any_registry(f"http://127.0.0.1:{port}") as registry:
        with pytest.raises(StorageError, match="cannot connect"):
            registry.types()


def test_a_server_that_is_none_of_ours_is_told(home: Mock, url: str) -> None:
    with open_any_registry(f"{url}/elsewhere") as registry:
        with pytest.raises(StorageError, match="404"):
            registry.types()


def test_a_broken_schema_is_refused_before_it_is_sent(remote: Registry) -> None:
    with pytest.raises(InvalidSchemaError, match=r"\$\.type"):
        remote.register(Schema("order", "1.0.0", "json", b'{"type": "strin"}'))


def test_what_is_registered_in_a_running_service_is_taken_from_then_on(tmp_path: Path) -> None:
    with serving(tmp_path, registry=str(tmp_path / "kept")) as asked:
        assert asked.post({"cls_type": "order", "version": "1.0.0", "id": 1})[0] == 422
        with open_any_registry(asked.service.url) as registry:
            registry.register(order())
        assert asked.post({"cls_type": "order", "version": "1.0.0", "id": 1})[0] == 202
        status, answer = asked.post({"cls_type": "order", "version": "1.0.0", "id": "x"})
        assert (status, answer["items"][0]["problems"][0]["path"]) == (422, "$.id")
