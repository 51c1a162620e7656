"""What a document may name: paths, variables and addresses spelled in hostile ways, against pathlib and the sockets."""

from __future__ import annotations

import os
import socket
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.http.addresses import Networks
from balog.common.http.guarded_pool import Cutter, open_guarded_pool
from balog.service.control.validation import read_document
from balog.service.document import ControlDocument
from balog.service.jobs.access import access_for, document_problems
from balog.service.settings import DocumentAccess
from tests.oracles.effort import examples

STEPS = ["..", ".", "", "allowed", "secret", "outside", "link-out", "link-in", "key"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder ``allowed`` beside one that is not, with links in both directions and a name that begins alike."""
    root = tmp_path_factory.mktemp("targets")
    for name in ("allowed/secret", "outside/secret", "allowed-not"):
        (root / name).mkdir(parents=True)
    for name in ("allowed/key", "allowed/secret/key", "outside/key", "allowed-not/key"):
        (root / name).write_text("x")
    (root / "allowed/link-out").symlink_to(root / "outside")
    (root / "outside/link-in").symlink_to(root / "allowed")
    return root


def put(kind: str, secret: dict[str, str]) -> ControlDocument:
    """Give a document with one secret in one of the places that take some."""
    callback: dict[str, Any] = {"name": "c", "source": "t", "url": "https://example.com/"}
    table: dict[str, Any] = {"name": "t", "sources": ["t"]}
    clickhouse = {**table, "type": "clickhouse", "url": "https://example.com/"}
    yt = {**table, "type": "ytsaurus", "proxy": "yt", "path": "//home/x"}
    plain = secret.get("file", "none")
    documents: dict[str, dict[str, Any]] = {
        "url": {"callbacks": [{**callback, "url": secret}]},
        "secrets": {"callbacks": [{**callback, "secrets": [secret]}]},
        "headers": {"callbacks": [{**callback, "headers": {"X-Key": secret}}]},
        "callback ca_file": {"callbacks": [{**callback, "ca_file": plain}]},
        "password": {"tables": [{**clickhouse, "password": secret}]},
        "table ca_file": {"tables": [{**clickhouse, "ca_file": plain}]},
        "token": {"tables": [{**yt, "token": secret}]},
    }
    document, problems = read_document(msgspec.json.encode(documents[kind]))
    assert document is not None
    assert not problems
    return document


PLACES = ["url", "secrets", "headers", "callback ca_file", "password", "table ca_file", "token"]


@examples(200)
@given(st.sampled_from(PLACES), st.lists(st.sampled_from(STEPS), min_size=1, max_size=6), st.booleans())
def test_a_file_may_be_named_where_it_lies_in_a_listed_folder(
    folder: Path, kind: str, steps: list[str], is_relative: bool
) -> None:
    name = os.path.join(folder, *steps)
    if is_relative:
        name = os.path.relpath(folder) + "/" + "/".join(steps)
    found = Path(name).resolve()
    is_allowed = found != folder / "allowed" and found.is_relative_to(folder / "allowed")
    access = DocumentAccess(folders=(str(folder / "allowed"),), clusters=("yt",))
    problems = list(document_problems(put(kind, {"file": name}), access))
    assert (problems == []) == is_allowed
    assert len(problems) <= 1
    assert not any(str(folder) in str(problem) for problem in problems)


@examples(200)
@given(
    st.sampled_from([place for place in PLACES if "ca_file" not in place]),
    st.sampled_from(["KEY", "HOOK_A", "hook_a", "AWS_SECRET_ACCESS_KEY", "HOOK_", "[K]EY", "*", "K?Y"]),
    st.lists(st.sampled_from(["KEY", "HOOK_*", "K?Y", "[*]", "[[]K]EY"]), max_size=3),
)
def test_a_variable_may_be_named_where_it_is_listed(kind: str, name: str, listed: list[str]) -> None:
    access = DocumentAccess(variables=tuple(listed), clusters=("yt",))
    problems = list(document_problems(put(kind, {"env": name}), access))
    assert (problems == []) == any(fnmatchcase(name, glob) for glob in listed)


@pytest.mark.parametrize("kind", PLACES)
def test_without_a_list_nothing_may_be_named_and_a_document_of_the_operator_lists_its_own(kind: str) -> None:
    document = put(kind, {"file": "/etc/shadow"})
    assert list(document_problems(document, DocumentAccess(clusters=("yt",)))) != []
    assert list(document_problems(document, access_for(document))) == []


LISTED = ["127.0.0.0/8", "10.1.0.0/16", "fd00::/8", "::1"]
numbers = st.one_of(
    st.sampled_from([0x7F000001, 0x0A010203, 0x0A020304, 0xA9FEA9FE, 0x08080808, 0]), st.integers(0, 2**32 - 1)
)


def spellings(number: int) -> list[str]:
    parts = [number >> shift & 255 for shift in (24, 16, 8, 0)]
    dotted = ".".join(map(str, parts))
    return [
        dotted,
        str(number),
        hex(number),
        ".".join(map(hex, parts)),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"::ffff:{dotted}",
        f"64:ff9b::{dotted}",
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::",
    ]


@examples(300)
@given(numbers, st.integers(0, 7), st.booleans())
def test_a_connection_goes_to_public_addresses_and_listed_networks_however_they_are_spelled(
    number: int, spelling: int, is_listed: bool
) -> None:
    """The oracle is Python's own table of addresses, and a block of what it lists differently from ours."""
    host = spellings(number)[spelling]
    networks = Networks(LISTED if is_listed else [])
    address = ip_address(number)
    expected = address.is_global and not address.is_multicast
    if is_listed:
        expected = expected or any(address in ip_network(block) for block in LISTED if "." in block)
    else:
        assert not networks
    differs = any(address in ip_network(block) for block in ("192.0.0.0/24", "192.88.99.0/24"))
    asked: list[str] = []

    class Recorder(socket.socket):
        def connect(self, place: Any) -> None:
            asked.append(str(place[0]))
            raise OSError(111, "nobody is called in a test")

    before = socket.socket
    socket.socket = Recorder  # type: ignore[misc]
    try:
        where = f"[{host}]" if ":" in host else host
        pool = open_guarded_pool(f"http://{where}:9/", 1.0, None, networks=networks, cutter=Cutter())
        with pytest.raises(Exception):  # noqa: B017
            pool.request("GET", f"http://{where}:9/", retries=False)
    finally:
        socket.socket = before  # type: ignore[misc]
    if not differs:
        assert bool(asked) == expected
