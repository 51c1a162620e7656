"""A real Prometheus pushgateway."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.servers.debian import program, running
from tests.services.servers.process import free_port


class GatewayServer:
    """A pushgateway that runs."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def metrics(self) -> str:
        """Give what a Prometheus would scrape."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def running_pushgateway(folder: Path, port: int = 0) -> Iterator[GatewayServer]:
    """Run a pushgateway that keeps nothing when it ends."""
    command = program("prometheus-pushgateway", "prometheus-pushgateway")
    gateway = GatewayServer(port or free_port())
    options = [f"--web.listen-address=127.0.0.1:{gateway.port}", "--persistence.file=", "--log.level=warn"]
    with running([command, *options], folder, f"{gateway.url}/-/ready"):
        yield gateway
