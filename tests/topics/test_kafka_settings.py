"""What the URL of a Kafka cluster may say, and what must not be in it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from balog.common.errors import ConfigError
from balog.topics import open_topics
from balog.topics.kafka.settings import parse_settings


def refused(url: str) -> str:
    with pytest.raises(ConfigError) as caught:
        open_topics(url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestServers:
    @pytest.mark.parametrize("servers", ["localhost", "a:1,b:2", "10.0.0.1:9092", "[::1]:9092", "kafka-0.kafka:9092"])
    def test_servers_are_hosts_with_ports(self, servers: str) -> None:
        assert parse_settings(servers, {}).producer()["bootstrap.servers"] == servers

    @pytest.mark.parametrize("servers", [",", "a:1,", "http://a:1", "a b", "a:port"])
    def test_anything_else_is_refused(self, servers: str) -> None:
        assert "expected HOST:PORT" in refused(f"kafka:{servers}")

    def test_a_password_in_front_of_a_server_is_refused_and_not_repeated(self) -> None:
        assert "hunter2" not in refused("kafka:me:hunter2@host:9092")


class TestOptions:
    def test_a_setting_of_librdkafka_reaches_the_clients(self) -> None:
        settings = parse_settings("a:1", {"client.id": "mine", "session.timeout.ms": "7000", "linger.ms": "9"})
        assert settings.producer()["client.id"] == settings.member("g")["client.id"] == "mine"
        assert settings.member("g")["session.timeout.ms"] == "7000"
        assert settings.producer()["linger.ms"] == "9"

    def test_an_unknown_setting_is_refused_by_name(self) -> None:
        assert "no.such.setting" in refused("kafka:a:1?no.such.setting=1")

    def test_a_value_that_can_not_be_is_refused(self) -> None:
        assert "security.protocol" in refused("kafka:a:1?security.protocol=secret")

    @pytest.mark.parametrize("name", ["acks", "enable.auto.commit", "group.id", "enable.idempotence"])
    def test_what_promises_rest_on_is_not_the_users(self, name: str) -> None:
        assert f"{name} is not yours to set" in refused(f"kafka:a:1?{name}=1")

    @pytest.mark.parametrize("name", ["partitions", "replication"])
    @pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "10001"])
    def test_numbers_of_new_topics_are_small_and_positive(self, name: str, value: str) -> None:
        assert "from 1 to 10000" in refused(f"kafka:a:1?{name}={value}")


class TestSecrets:
    def test_a_secret_in_the_url_is_refused_and_not_repeated(self) -> None:
        said = refused("kafka:a:1?sasl.password=hunter2")
        assert "sasl.password.env=NAME" in said
        assert "hunter2" not in said

    def test_a_secret_comes_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
        settings = parse_settings("a:1", {"sasl.password.env": "KAFKA_PASSWORD"})
        assert settings.member("g")["sasl.password"] == settings.producer()["sasl.password"] == "hunter2"
        assert "hunter2" not in repr(settings)

    def test_a_secret_comes_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("hunter2\n")
        settings = parse_settings("a:1", {"sasl.password.file": str(tmp_path / "secret")})
        assert settings.admin()["sasl.password"] == "hunter2"

    def test_a_secret_that_is_not_there_is_told_by_its_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
        assert "KAFKA_PASSWORD" in refused("kafka:a:1?sasl.password.env=KAFKA_PASSWORD")


class TestLightness:
    def test_consumers_and_topics_do_not_import_the_client(self) -> None:
        code = "import sys, balog, balog.consumers, balog.topics; assert 'confluent_kafka' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_without_the_client_the_extra_is_named(self) -> None:
        code = (
            "import sys; sys.modules['confluent_kafka'] = None\n"
            "from balog.common.errors import MissingExtraError\nfrom balog.topics import open_topics\n"
            "try: open_topics('kafka:a:1')\n"
            'except MissingExtraError as error: assert "[kafka]\'" in str(error)\n'
            "else: raise SystemExit(1)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
