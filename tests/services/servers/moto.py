"""moto's server, which plays SQS and S3: pip brings it. It forgets everything when it stops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.services.servers.elasticmq import bare_client
from tests.services.servers.process import ServerProcess, accepts, free_port

REGION = "eu-central-1"


class MotoServer(ServerProcess):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.port = free_port()
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
    server = MotoServer(folder)
    try:
        server.up()
        yield server
    finally:
        server.stop()
