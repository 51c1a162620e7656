"""The registry: types and versions out of a store, once for ever, noticed when they come and go."""

import json
import math
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from uuid import uuid4

import pytest

from balog.common.errors import ConfigError
from balog.common.storage import StorageError, open_storage
from balog.common.storage.local import LocalStorage
from balog.registry import (
    IncompatibleError,
    InvalidSchemaError,
    Registry,
    Schema,
    UnknownTypeError,
    UnknownVersionError,
    VersionTakenError,
    make_validator,
    open_registry,
)
from balog.registry.store import FolderStore

OPEN = {"type": "object", "properties": {"id": {"type": "integer"}}}


def order(version: str = "1.0.0", document: Any = OPEN, type: str = "order") -> Schema:
    return Schema(type, version, "json", json.dumps(document).encode())


@pytest.fixture(params=["folder", "url"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "schemas") if request.param == "folder" else f"memory://{uuid4().hex}/schemas"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A registry of one version, which lists its folder whenever it is asked."""
    registry = Registry(FolderStore(str(tmp_path)), max_age=-1)
    registry.register(order())
    return registry


def test_balogs_own_types_are_there_without_a_store() -> None:
    registry = open_registry()

    assert {"log", "metric", "run"} <= set(registry.types())
    assert registry.get("metric").version == "1.0.0"
    payload = b'{"cls_type": "metric", "type": "counter", "metric": "rows", "value": 3}'
    assert registry.validator("metric").check(payload) == []


def test_what_is_registered_is_there_byte_for_byte_and_never_changes(place: str) -> None:
    with open_registry(place) as registry:
        assert registry.register(order()).compatible
        assert registry.register(order()).compatible  # the same again
        with pytest.raises(VersionTakenError, match=r"order 1\.0\.0 is already registered"):
            registry.register(order(document={"type": "object"}))
    with open_registry(place) as again:
        assert "order" in again.types()
        assert again.get("order") == order()


def test_of_two_registrations_at_once_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def register(number: int) -> str:
        with open_registry(str(tmp_path)) as registry:
            registry.refresh()
            barrier.wait()
            try:
                registry.register(order(document={**OPEN, "title": str(number)}))
            except VersionTakenError:
                return "taken"
        return str(number)

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(register, range(8)))

    winners = [each for each in told if each != "taken"]
    assert len(winners) == 1
    assert json.loads(open_registry(str(tmp_path)).get("order").source)["title"] == winners[0]


def test_of_two_forms_created_at_once_no_two_are_told_they_won(tmp_path: Path) -> None:
    """Both may lose, as each sees the other's file; then nothing is left, and one more try settles it."""
    schemas = [order(), Schema("order", "1.0.0", "protobuf", b"x"), Schema("order", "1.0.0", "protobuf", b"x", "Order")]
    for number in range(30):
        barrier = threading.Barrier(len(schemas))

        def create(schema: Schema, place: str = str(tmp_path / str(number)), at: threading.Barrier = barrier) -> bool:
            store = FolderStore(place)
            at.wait()
            return store.create(schema)

        with ThreadPoolExecutor(len(schemas)) as pool:
            won = list(pool.map(create, schemas))
        left = list((tmp_path / str(number)).rglob("1.0.0*"))
        assert sum(won) <= 1
        assert len(left) == sum(won)


def test_versions_ascend_as_semver_says(tmp_path: Path) -> None:
    for version in ("1.10.0", "1.9.0", "2.0.0-rc.1", "1.0.0"):
        FolderStore(str(tmp_path)).create(order(version))
    registry = open_registry(str(tmp_path))

    assert registry.versions("order") == ["1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1"]
    assert registry.get("order").version == "1.10.0"  # the latest release


def test_an_unknown_type_or_version_says_what_there_is(registry: Registry) -> None:
    with pytest.raises(UnknownTypeError, match=r"no type 'ordr'; did you mean 'order'\?"):
        registry.get("ordr")
    with pytest.raises(UnknownTypeError, match=r"no type 'xyz'; there are .*log, metric"):
        registry.get("xyz")
    with pytest.raises(UnknownVersionError, match=r"no version '9\.0\.0' of order; there are 1\.0\.0"):
        registry.validator("order", "9.0.0")


PROTO = b'syntax = "proto3"; message Order { int64 id = 1; }'


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        *((order(type=type), "is no name for a type") for type in ("a/b", "", "..", ".a", "_a", "a b", "ä", "x" * 101)),
        *((order(version), "is no version") for version in ("1.0", "v1.0.0", "1.0.0+build", "01.0.0", "1.0.0-01")),
        *((order(version), "is no version") for version in ("", "../1.0.0", "1.0.0\n")),
        *((Schema("order", "1.0.0", "json", b"{}", name), "is no message") for name in ("Order", "../../x")),
        *((Schema("o", "1.0.0", "protobuf", PROTO, name), "is no message") for name in ("../../x", "a/b", "x" * 101)),
    ],
)
def test_a_name_that_no_store_could_keep_never_becomes_a_file_s(tmp_path: Path, schema: Schema, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_registry(str(tmp_path / "a" / "b")).register(schema)
    assert list(tmp_path.rglob("*.*")) == []


def test_a_schema_of_another_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSchemaError, match=r"order/1\.0\.0: \$\.properties\.cls_type\.const: is of the type 'refund'"
    ):
        open_registry(str(tmp_path)).register(order(document={"properties": {"cls_type": {"const": "refund"}}}))


def test_a_version_comes_after_all_of_its_major(tmp_path: Path) -> None:
    registry = open_registry(str(tmp_path))
    registry.register(order("1.5.0"))

    with pytest.raises(IncompatibleError, match=r"1\.4\.0 would come after 1\.5\.0"):
        registry.register(order("1.4.0"))


def test_nothing_is_registered_without_a_store() -> None:
    with pytest.raises(InvalidSchemaError, match="name a registry"):
        open_registry().register(order())


def test_a_new_version_is_noticed_though_the_listing_still_holds(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("balog.registry.listing._MISS_SECONDS", -1.0)
    registry = Registry(FolderStore(str(tmp_path)), max_age=3600)
    registry.register(order())
    FolderStore(str(tmp_path)).create(order("1.1.0"))

    assert registry.versions("order") == ["1.0.0"]
    assert registry.get("order", "1.1.0").version == "1.1.0"


def test_a_deleted_version_is_noticed_and_its_validator_gone(tmp_path: Path, registry: Registry) -> None:
    registry.validator("order", "1.0.0")
    shutil.rmtree(tmp_path / "order")

    with pytest.raises(UnknownTypeError):
        registry.validator("order", "1.0.0")


def test_with_infinite_patience_only_a_refresh_looks(tmp_path: Path) -> None:
    registry = Registry(FolderStore(str(tmp_path)), max_age=math.inf)
    registry.register(order())
    registry.validator("order", "1.0.0")
    shutil.rmtree(tmp_path / "order")

    assert registry.validator("order", "1.0.0").check(b"{}") == []
    assert registry.versions("order") == ["1.0.0"]
    registry.refresh()
    with pytest.raises(UnknownTypeError):
        registry.validator("order", "1.0.0")


def test_a_validator_is_compiled_once(registry: Registry) -> None:
    assert registry.validator("order") is registry.validator("order", "1.0.0")


def test_while_the_store_is_away_what_was_listed_holds_on(registry: Registry, monkeypatch: Any) -> None:
    def fail(self: FolderStore) -> Any:
        raise StorageError("s3://there: no connection")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "listing", fail)
        assert registry.get("order") == order()
        assert registry.problem == "s3://there: no connection"
        with pytest.raises(StorageError, match="no connection"):
            registry.register(order("1.1.0"))
    registry.refresh()
    assert registry.problem == ""


def test_a_file_that_is_no_schema_is_told_when_it_is_used_and_found_out_once(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "order").mkdir()
    for name, text in {"1.0.0.json": '{"type": "strin"}', "README.md": "…", "draft.json": "{}"}.items():
        (tmp_path / "order" / name).write_text(text)
    registry = open_registry(str(tmp_path))
    tried = []
    monkeypatch.setattr(
        "balog.registry.registry.make_validator", lambda schema: tried.append(schema) or make_validator(schema)
    )

    assert registry.versions("order") == ["1.0.0"]
    for _ in range(3):
        with pytest.raises(InvalidSchemaError, match=r"^order/1\.0\.0: \$\.type: not a JSON Schema"):
            registry.validator("order")
    assert len(tried) == 1


def test_a_change_by_hand_to_the_same_size_is_read_again(place: str) -> None:
    registry = open_registry(place, max_age=-1)
    registry.register(order(document={"type": "object", "required": ["a"]}))
    assert [fault.reason for fault in registry.validator("order").check(b"{}")] == ['"a" is a required property']
    time.sleep(0.02)  # the clock of files is coarse
    open_storage(f"{place}/order").write(b'{"type": "object", "required": ["b"]}', "1.0.0.json")

    assert [fault.reason for fault in registry.validator("order").check(b"{}")] == ['"b" is a required property']


def test_what_is_deleted_while_it_is_listed_does_not_empty_the_registry(registry: Registry, monkeypatch: Any) -> None:
    files = LocalStorage.files

    def late(storage: LocalStorage, *given: Any) -> Any:
        yield from files(storage, *given)
        yield "order/1.1.0.json", 2  # somebody has deleted it since

    monkeypatch.setattr(LocalStorage, "files", late)

    assert registry.versions("order") == ["1.0.0"]
    assert "no such file" in registry.problem.lower()


def test_of_two_at_once_that_do_not_follow_each_other_one_is_registered(registry: Registry, monkeypatch: Any) -> None:
    judge = Registry.check_compatibility

    def slowly(registry: Registry, *given: Any) -> Any:
        verdict = judge(registry, *given)
        time.sleep(0.1)
        return verdict

    monkeypatch.setattr(Registry, "check_compatibility", slowly)

    def register(version: str, kind: str) -> bool:
        document = {"type": "object", "properties": {**OPEN["properties"], "b": {"type": kind}}}
        try:
            registry.register(order(version, document))
        except IncompatibleError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(register, ["1.1.0", "1.2.0"], ["string", "integer"])) == [False, True]


def test_threads_share_a_registry(registry: Registry) -> None:
    def use(number: int) -> bool:
        return all(registry.validator("order").check(b'{"id": 1}') == [] for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))


def test_the_reference_implementation_checks_what_is_registered(tmp_path: Path, monkeypatch: Any) -> None:
    """A schema that jsonschema-rs alone reads would be none for other programs."""
    monkeypatch.setattr("balog.registry.json_schema.compile_schema", lambda document: MagicMock())
    registry = open_registry(str(tmp_path))

    with pytest.raises(InvalidSchemaError, match=r"order/1\.0\.0: \$\.minLength: not a JSON Schema: -1 is less than"):
        registry.register(Schema("order", "1.0.0", "json", b'{"minLength": -1}'))
    assert registry.types() == open_registry(None).types()
