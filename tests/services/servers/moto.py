"""moto's server, which plays SQS and S3: pip brings it. It forgets everything when it stops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.services.servers.elasticmq import bare_client
from tests.services.servers.process import FolderServer, accepts, running

REGION = "eu-central-1"


class MotoServer(FolderServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.url = f"sqs:{REGION}?endpoint={quote(self.endpoint, safe='')}"

    def client(self, service: str = "sqs") -> Any:
        """Give a bare boto3 client, the other side of what is tested."""
        return bare_client(self.endpoint, service)

    def up(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.start(command, self.folder, lambda: accepts(self.port))


@contextmanager
def running_moto(folder: Path) -> Iterator[MotoServer]:
    """Run one."""
    with running(MotoServer(folder)) as server:
        yield server
