import json
import os
import stat
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from balog.common.errors import ConfigError
from balog.service.api import tokens as tokens_module
from balog.service.api.errors import ApiError
from balog.service.api.tokens import Tokens, add_token, make_token
from balog.service.service import Service
from balog.service.settings import ServiceConfig
from tests.service.serving import serving


def made(path: Path, name: str, *may, types=("*",)) -> str:
    token, entry = make_token(name, may or ("send",), types)
    add_token(path, entry)
    return token


def status_of(refused) -> int:
    return refused.value.status


def test_a_token_is_known_by_its_hash_alone(tmp_path: Path):
    token = made(tmp_path / "tokens.json", "ci")

    assert token.encode() not in (tmp_path / "tokens.json").read_bytes()
    assert Tokens(tmp_path / "tokens.json").principal(f"Bearer {token}").name == "ci"


def test_a_new_file_is_for_its_user_alone_and_an_old_one_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "tokens.json"
    made(path, "one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    made(path, "two")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry["name"] for entry in json.loads(path.read_bytes())["tokens"]] == ["one", "two"]
    assert os.listdir(tmp_path) == ["tokens.json"]


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer x", "Bearer " + "x" * 10_000, "Bearer é"]
)
def test_what_is_no_token_is_refused(tmp_path: Path, header):
    made(tmp_path / "tokens.json", "ci")

    with pytest.raises(ApiError) as refused:
        Tokens(tmp_path / "tokens.json").principal(header)

    assert status_of(refused) == 401
    assert "WWW-Authenticate" in refused.value.headers


def test_rights_are_by_deed_and_by_type(tmp_path: Path):
    token = made(tmp_path / "tokens.json", "ci", "send", "read", types=("order*", "log"))
    caller = Tokens(tmp_path / "tokens.json").principal(f"bearer {token}")

    assert [caller.is_for(name) for name in ("order", "order.paid", "log", "logs", "Order", "")] == [
        *(True, True, True),
        *(False, False, False),
    ]
    caller.check("read", "log")
    for right, type in (("configure", None), ("read", "other")):
        with pytest.raises(ApiError) as refused:
            caller.check(right, type)
        assert status_of(refused) == 403


def test_a_file_is_read_again_when_it_changed_and_a_bad_one_changes_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tokens_module, "_REFRESH_SECONDS", 0.0)
    path, said = tmp_path / "tokens.json", []
    first = made(path, "first")
    tokens = Tokens(path, said.append)
    second = made(path, "second")
    assert tokens.principal(f"Bearer {second}").name == "second"

    path.write_text("{")
    assert tokens.principal(f"Bearer {first}").name == "first"
    assert [line.partition(":")[0] for line in said] == ["the earlier tokens stay valid"]
    path.write_text('{"tokens": []}')
    with pytest.raises(ApiError):
        tokens.principal(f"Bearer {first}")
    assert len(said) == 1


def test_a_file_that_is_none_is_refused_at_the_start(tmp_path: Path):
    path = tmp_path / "tokens.json"
    path.write_text('{"tokens": [{"name": "a", "hash": "plain"}]}')

    with pytest.raises(ConfigError, match=r"tokens\[0\]\.hash"):
        Tokens(path)


def test_a_service_that_others_can_reach_wants_tokens(tmp_path: Path):
    config = ServiceConfig(topics=f"local:{tmp_path}", listen="0.0.0.0:0")

    with pytest.raises(ConfigError, match="tokens"):
        Service(config)


def test_a_service_asks_for_tokens_and_looks_at_the_types_of_each_event(tmp_path: Path):
    path = tmp_path / "tokens.json"
    sender = {"authorization": f"Bearer {made(path, 'shop', types=('order*',))}"}
    reader = {"authorization": f"Bearer {made(path, 'ops', 'read')}"}
    with serving(tmp_path, tokens=str(path)) as asked:
        order = {"cls_type": "order", "version": "1.0.0", "price": 1}
        status, answer = asked.post([order, {"cls_type": "log", "message": "x"}], **sender)
        alone = asked.post({"cls_type": "log", "message": "x"}, **sender)[0]

        assert (status, [item["status"] for item in answer["items"]], alone) == (202, [202, 403], 403)
        assert asked.post(order)[0] == 401
        assert asked.post(order, **reader)[0] == 403
        assert asked.ask("GET", "/metrics").status == 401
        assert asked.ask("GET", "/metrics", **reader).status == 200
        assert asked.ask("GET", "/health").status == 200
        unknown = asked.post({"cls_type": "orders", "version": "1.0.0"}, **sender)[1]["items"][0]["problems"]
        why = "the registry knows no type 'orders'; did you mean 'order'?"
        assert unknown == [{"path": "$.cls_type", "reason": why}]
        asked.post({"cls_type": "order", "version": "1.0.0", "price": "x"}, **sender)
        assert [failed.payload["sender"] for failed in asked.stored("failed_events")] == ["shop", "shop"]


def test_a_token_is_refused_from_the_moment_on_that_it_expires(tmp_path: Path, monkeypatch):
    path, now = tmp_path / "tokens.json", datetime(2026, 11, 20, tzinfo=timezone.utc)
    token, entry = make_token("ci", expires=now + timedelta(days=1))
    add_token(path, entry)
    tokens = Tokens(path)
    monkeypatch.setattr(time, "time", lambda: now.timestamp() + 86_399)
    assert tokens.principal(f"Bearer {token}").name == "ci"
    monkeypatch.setattr(time, "time", lambda: now.timestamp() + 86_400)
    with pytest.raises(ApiError, match="expired") as refused:
        tokens.principal(f"Bearer {token}")
    assert status_of(refused) == 401
