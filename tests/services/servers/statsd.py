"""A real statsd, npm's: the reference that the protocol comes from. Counts are read through its admin port."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services.servers.process import CACHE, ServerProcess

VERSION = "0.9.0"
_HOME = CACHE / f"statsd-{VERSION}"


class Statsd:
    """A statsd that runs; ``ask`` gives what its admin port says."""

    def __init__(self, port: int, admin_port: int) -> None:
        self.port = port
        self._admin_port = admin_port

    def ask(self, what: str) -> dict[str, Any]:
        """Give ``counters``, ``gauges`` or ``timers``."""
        with socket.create_connection(("127.0.0.1", self._admin_port), timeout=10) as connection:
            connection.sendall(what.encode() + b"\n")
            answer = b""
            while not answer.endswith(b"END\n\n"):
                chunk = connection.recv(65536)
                assert chunk, f"statsd hung up after {answer!r}"
                answer += chunk
        # A JavaScript object as Node shows it: keys bare or in quotes, and no line is cut at the depth of these.
        text = answer.decode().removesuffix("END\n\n")
        text = re.sub(r"([{,]\s*)'?([\w.;=-]+)'?: ", r'\1"\2": ', text)
        return dict(json.loads(text)) if text.strip() else {}

    def wait_for(self, what: str, name: str, value: Any) -> dict[str, Any]:
        """Give ``ask(what)`` once ``name`` has ``value``; a datagram on its way is not there yet."""
        end = time.monotonic() + 10
        while (found := self.ask(what)).get(name) != value and time.monotonic() < end:
            time.sleep(0.02)
        return found


def installed() -> Path:
    """Give statsd's program, installed where it is not yet; skip where it can't be."""
    program = _HOME / "node_modules" / "statsd" / "stats.js"
    if program.exists():
        return program
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    _HOME.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(_HOME), f"statsd@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode or not program.exists():
        pytest.skip(f"npm can't install statsd: {done.stderr[-300:]}")
    return program


@contextmanager
def running(folder: Path, host: str = "127.0.0.1") -> Iterator[Statsd]:
    """Run a statsd that flushes too rarely to forget anything."""
    program = installed()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket() as other:
        one.bind((host, 0))
        other.bind(("127.0.0.1", 0))
        port, admin_port = one.getsockname()[1], other.getsockname()[1]
    config = {
        "address": host,
        "address_ipv6": ":" in host,
        "port": port,
        "mgmt_address": "127.0.0.1",
        "mgmt_port": admin_port,
        "flushInterval": 3_600_000,
        "backends": [],
    }
    path = folder / f"statsd-{port}.js"
    path.write_text(f"({json.dumps(config)})")
    statsd, process = Statsd(port, admin_port), ServerProcess()
    process.start(["node", str(program), str(path)], folder, lambda: statsd.ask("counters") is not None)
    try:
        yield statsd
    finally:
        process.stop()
