"""A real SQS server: ElasticMQ from Maven Central's jars, on loopback, its queues in memory. Needs java, once mvn."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.services.servers.process import CACHE, FolderServer, accepts, fetch_jars, java, running

VERSION = "1.7.1"
REGION = "elasticmq"
_JARS = CACHE / f"elasticmq-{VERSION}"


class SqsServer(FolderServer):
    """Stops and starts again on the same port; its queues are kept over that in a file, their messages too.

    It writes messages down a little later than it answers, so a stop may lose what was sent just before.
    """

    def __init__(self, folder: Path, java: str) -> None:
        super().__init__(folder)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.url = f"sqs:{REGION}?endpoint={quote(self.endpoint, safe='')}"
        self._java = java

    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        set_credentials(monkeypatch)

    def client(self) -> Any:
        """Give a bare boto3 client, the other side of what is tested."""
        return bare_client(self.endpoint)

    def up(self) -> None:
        config = self.folder / "elasticmq.conf"
        config.write_text(
            'include classpath("application.conf")\n'
            f'node-address {{ protocol = http, host = "127.0.0.1", port = {self.port}, context-path = "" }}\n'
            f'rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {self.port} }}\n'
            "rest-stats { enabled = false }\n"
            f'messages-storage {{ enabled = true, uri = "jdbc:h2:{self.folder}/messages" }}\n'
            f'queues-storage {{ enabled = true, path = "{self.folder}/queues.conf" }}\n'
        )
        command = [
            *(self._java, "-Xmx256m", f"-Dconfig.file={config}"),
            *("-cp", f"{_JARS}/*", "org.elasticmq.server.Main"),
        ]
        self.start(command, self.folder, lambda: accepts(self.port))


def set_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boto3 credentials that a stand-in takes, and keep it from looking for others."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"):
        monkeypatch.delenv(name, raising=False)


def bare_client(endpoint: str, service: str = "sqs", **options: Any) -> Any:
    import boto3.session

    given = {"aws_access_key_id": "test", "aws_secret_access_key": "test", **options}
    return boto3.session.Session().client(service, region_name="eu-central-1", endpoint_url=endpoint, **given)


def is_at_hand() -> bool:
    """Tell whether it can run here, as far as can be told without asking Maven Central."""
    return shutil.which("java") is not None and (_JARS.exists() or shutil.which("mvn") is not None)


@contextmanager
def running_sqs(folder: Path) -> Iterator[SqsServer]:
    """Run one; skips where it can't be had."""
    server = SqsServer(folder, java("ElasticMQ"))
    fetch_jars(_JARS, [f"org.elasticmq:elasticmq-server_2.13:{VERSION}"], "ElasticMQ")
    with running(server):
        yield server
