"""Which texts of a config are secrets, and how they are found; and which are not."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap.config.secrets import secret_texts
from balog.tap.verify.leaks import Leaks, looks_random, secrets_of


def found_in(config: Any, *lines: str) -> set[str]:
    leaks = Leaks(config)
    for number, line in enumerate(lines, 1):
        leaks.search_line(line.encode(), "stderr", number)
    return {path for path, _ in leaks.found}


@pytest.mark.parametrize(
    ("config", "secret"),
    [
        ({"password": "hunter"}, "hunter"),
        ({"api_key": "k-1234567"}, "k-1234567"),
        ({"pin": "tr0ub4"}, "tr0ub4"),
        ({"token": 12345678}, "12345678"),
        ({"credentials": {"private_key": "hush-hush-hush"}}, "hush-hush-hush"),
        ({"dsn": "postgres://me:hush-hush@db.example/shop"}, "hush-hush"),
        ({"dsn": "postgres://me:p#ss/w?rd@db.example/shop"}, "p#ss/w?rd"),
        ({"dsn": "postgres://me:p%40ssword@db.example/shop"}, "p@ssword"),
        ({"dsn": "postgresql+psycopg2://me:hush%2Fhush@db.example/shop"}, "hush/hush"),
        ({"dsn": "host=db user=me password='hush/hush' dbname=x"}, "hush/hush"),
        ({"dsn": "jdbc:postgresql://db/shop?user=me&password=hush/hush"}, "hush/hush"),
        ({"password": 'a"b/c d'}, 'a"b/c d'),
        ({"dsn": "scott/tiger-123@db.example:1521/shop"}, "tiger-123"),
        ({"url": "https://api.example/v1?api_key=abcdef123"}, "abcdef123"),
        ({"odbc": "Server=db;Uid=me;Password=hush-hush;"}, "hush-hush"),
        ({"login": "x7Kq2pW9"}, "x7Kq2pW9"),
        ({"k": "a9fK2mQx77Lw31"}, "a9fK2mQx77Lw31"),
        ({"door": "Sesame#17"}, "Sesame#17"),
    ],
)
def test_a_secret_is_found_in_any_form(config: Any, secret: str) -> None:
    basic = base64.b64encode(f"someone:{secret}".encode()).decode()

    for line in (
        f"INFO x{secret}y", f"?q={quote(secret, '')}", json.dumps({"a": secret}), f"Authorization: Basic {basic}",
    ):  # fmt: skip
        assert found_in(config, line), line
    assert not found_in(config, "INFO reading orders from db.example")
    assert secret not in Leaks(config).redact(f"ERROR the server refused {secret}")


@pytest.mark.parametrize(
    "config",
    [
        {"stream": "orders", "environment": "production", "table": "orders"},
        {"api_url": "https://api.example/v1", "token_url": "https://login.example/oauth2/token"},
        {"host": "db1.example.com", "region": "eu-central-1", "bucket": "sales-2026"},
        {"start_date": "2026-11-20T00:00:00Z", "user_agent": "tap-foo/1.0 (me@example.com)"},
        {"auth": "oauth2_client", "key": "updated_at", "session": "read_only"},
        {"path": "/data/Input7/a1b2c3d4.csv", "pattern": r".*\.csv"},
        {"account_id": "0b7c1a52-4d5e-4a8e-9a3c-2f1e5d6c7b8a", "version": "v2.1.0", "port": 5432123},
        {"credentials": {"type": "service_account", "client_email": "tap@example.com", "project_id": "shop-2026"}},
        {"dsn": "postgres://db.example/shop"},
        {"user": "postgres", "password": "postgres"},
        {"host": "shop.example", "password": "example"},
        {"label": "Quarter3Report", "sheet": "Sheet1", "city": "Zürich Hardbrücke"},
        {"password": "short"},
        {"flag": True, "ratio": 0.123456789, "nothing": None, "rows": [100000, 200000]},
    ],
)
def test_what_is_no_secret_may_be_shown(config: Any) -> None:
    assert list(secrets_of(config)) == []
    assert found_in(config, json.dumps(config), str(config)) == set()


def test_each_line_of_a_private_key_is_a_secret() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "-----END PRIVATE KEY-----"]
    config = {"private_key": "\n".join(lines)}

    assert found_in(config, lines[1]) == {"$.private_key"}
    assert found_in(config, lines[0], lines[2]) == set()


def test_a_guess_is_marked() -> None:
    found = {secret.path: secret.is_guess for secret in secrets_of({"token": "tok-12", "door": "Sesame#17"})}

    assert found == {"$.token": False, "$.door": True}


@settings(max_examples=100, deadline=None)
@given(before=st.binary(max_size=5), after=st.binary(max_size=5), secret=st.text(min_size=6, max_size=20))
def test_base64_is_found_at_any_offset(before: bytes, after: bytes, secret: str) -> None:
    data = before + secret.encode("utf-8", "replace") + after

    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert found_in({"password": secret}, f"x {encode(data).decode()}") == {"$.password"}


@settings(max_examples=100, deadline=None)
@given(st.from_regex(r"[a-z]{2,8}([_.-][a-z]{2,8}){0,3}[0-9]{0,4}", fullmatch=True))
def test_words_do_not_look_random(text: str) -> None:
    assert not looks_random(text)


def test_secrets_are_known_by_their_names_also_below_one() -> None:
    secret = {"pat": "abcdef", "github_pat": "abcdef", "db.pass": "abcdef", "key": "k-123456", "token": "tok-1234"}
    below = {"credentials": {"phrase": "somebody"}, "list": [{"api_key": "key-1234"}]}
    plain = {"page_token": "page-1234", "auth": "basic_auth", "path": "abcdeg", "compass": "abcdeg", "password": "x"}

    paths = {f"$.{name}" for name in secret} | {"$.credentials.phrase", "$.list[0].api_key"}
    assert set(Leaks({**secret, **below, **plain, "replication_key": "updated_at"}).secrets) == paths


def test_what_is_said_hides_secrets_and_is_one_short_line() -> None:
    said = Leaks({"password": "open sesame"}).redact("tried open sesame\n\x1b[31m" + "x " * 500)

    assert "sesame" not in said
    assert said.isprintable()
    assert len(said) <= 240


def test_a_secret_s_name_is_what_redaction_says_and_an_auth_object_has_settings() -> None:
    config = {"db_pass": "sesame-1", "userSsn": "sesame-2", "otp": "sesame-3", "auth": {"method": "oauth2"}}
    secrets = Leaks({**config, "compass": "northern", "session": "default"}).secrets
    assert secrets.keys() == {"$.db_pass", "$.otp", "$.userSsn"}
    assert set(secret_texts(config)) == {"sesame-1", "sesame-2", "sesame-3"}
    assert set(secret_texts({"auth": "sesame-4", "session": {"token": "sesame-5"}})) == {"sesame-4", "sesame-5"}
