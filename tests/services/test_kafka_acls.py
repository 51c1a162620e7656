"""A cluster with an authorizer: the ACLs of the page on Kafka topics suffice, and errors name the missing one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.event import Event, encode
from tests.documentation import docs_page
from tests.services.servers.kafka import KafkaServer, running_kafka

pytestmark = pytest.mark.service

PAGE = docs_page("kafka-topics.md").read_text()
USERS = {"admin": "admin-secret", "producer": "p-secret", "consumer": "c-secret", "operator": "o-secret"}


def documented() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (role, operation, resource, pattern, name) of each row of the page's table of ACLs."""
    for role, operations, resource, name in re.findall(
        r"^\| (producer|consumer|operator) \| ([A-Z, ]+) \| (topic|group|prefix of topics) \| `([^`]+)` \|$", PAGE, re.M
    ):
        for operation in operations.split(", "):
            kind, pattern = ("topic", "prefixed") if resource == "prefix of topics" else (resource, "literal")
            yield role, operation, kind, pattern, name.replace("TOPIC", "orders").replace("GROUP", "billing")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with running_kafka(tmp_path_factory.mktemp("kafka-acls"), USERS) as server:
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            AdminClient,
            NewTopic,
            ResourcePatternType,
            ResourceType,
        )

        admin = AdminClient(
            {
                "bootstrap.servers": server.servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": USERS["admin"],
            }
        )
        admin.create_topics([NewTopic("orders", 1), NewTopic("private", 1)])["orders"].result(30)
        rows = [*documented()]
        assert {row[0] for row in rows} == set(USERS) - {"admin"}
        bindings = [
            AclBinding(
                getattr(ResourceType, kind.upper()),
                name,
                getattr(ResourcePatternType, pattern.upper()),
                f"User:{role}",
                "*",
                getattr(AclOperation, operation),
                AclPermissionType.ALLOW,
            )
            for role, operation, kind, pattern, name in rows
        ]
        for made in admin.create_acls(bindings).values():
            made.result(30)
        yield server


@pytest.fixture
def as_user(cluster: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run ``balog topics`` (or another command) as a user of the cluster."""

    def run(user: str, *arguments: str, feed: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("KAFKA_PASSWORD", USERS[user])
        options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": user}
        url = cluster.url(**options, **{"sasl.password.env": "KAFKA_PASSWORD"})
        command = [sys.executable, "-m", "balog", *arguments, "--topics", url]
        return subprocess.run(command, input=feed, capture_output=True, text=True, cwd=tmp_path, timeout=180)

    return run


def events(number: int) -> str:
    return "".join(encode(Event.new("shop", {"cls_type": "order", "n": n})).decode() + "\n" for n in range(number))


def test_the_acls_on_the_page_suffice_for_each_role(as_user: Any, tmp_path: Path) -> None:
    def succeed(user: str, *arguments: str, feed: str = "") -> str:
        done = as_user(user, *arguments, feed=feed)
        assert done.returncode == 0, f"{user} {arguments}: {done.stderr}"
        return str(done.stdout)

    succeed("producer", "topics", "publish", "orders", feed=events(4))
    (tmp_path / "handlers.py").write_text(
        "from balog.consumers import consumer_config\n"
        "@consumer_config(topic='orders', cls_type='order', retries=0)\n"
        "def refuse_two(settings, event):\n"
        "    if event.payload['n'] == 2 and not settings:\n"
        "        raise ValueError('no')\n"
    )
    consume = ("consume", "handlers", "--group", "billing", "--until-empty")
    assert as_user("consumer", *consume).returncode in (0, 1)
    assert "orders" in succeed("operator", "topics", "list")
    assert "private" not in succeed("operator", "topics", "list")
    assert "billing" in succeed("operator", "topics", "describe", "orders")
    assert succeed("operator", "topics", "peek", "orders").count("order") >= 4
    succeed("operator", "topics", "redrive", "orders", "--group", "billing", "--dry-run")
    succeed("operator", "topics", "redrive", "orders", "--group", "billing", "--set", "payload.n=9")
    succeed("operator", "topics", "offsets", "orders", "--group", "billing")
    assert as_user("consumer", *consume).returncode == 0
    succeed("operator", "topics", "offsets", "orders", "--group", "billing", "--to", "earliest")
    succeed("operator", "topics", "dump", "orders", "--to", "archive")


@pytest.mark.parametrize(
    ("user", "arguments", "what"),
    [
        ("producer", ("topics", "peek", "orders"), "READ on the topic orders"),
        ("operator", ("topics", "offsets", "orders", "--group", "other"), "on the group other"),
        ("operator", ("topics", "publish", "orders"), "WRITE on the topic orders"),
    ],
)
def test_an_error_names_the_acl_that_is_missing(as_user: Any, user: str, arguments: tuple[str, ...], what: str) -> None:
    done = as_user(user, *arguments, feed=events(1))
    assert done.returncode == 1
    assert done.stderr.count("\n") <= 2
    assert what in done.stderr, done.stderr
