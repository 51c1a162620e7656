"""What the servers of the tests share: a free port, a process that is waited for and stopped, programs of Maven's."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[3] / ".demo" / "services"
"""Where what was fetched stays."""

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class ServerProcess:
    """A program that is started, waited for, and ended by its own pid; it can be started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: list[str], folder: Path, is_ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Run it in a folder until ``stop``, and wait until it is ready; an OSError of ``is_ready`` means not yet."""
        log = folder / "server.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if is_ready():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.stop()
        pytest.fail(f"{command[0]} did not start: {log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(20)


def accepts(port: int) -> bool:
    """Tell whether somebody listens on a port of 127.0.0.1."""
    socket.create_connection(("127.0.0.1", port), 1).close()
    return True


def java(for_whom: str) -> str:
    """Give the java on PATH; skip where there is none."""
    found = shutil.which("java")
    if found is None:
        pytest.skip(f"{for_whom} needs java")
    return found


def fetch(goal: str, *options: str, for_whom: str) -> None:
    """Have Maven fetch something: ``copy`` or ``copy-dependencies``, with its options; skip where it can't."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"{for_whom} comes by mvn, which is not installed")
    done = subprocess.run(
        [maven, "-q", "-B", *options, f"{_PLUGIN}:{goal}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        pytest.skip(f"Maven Central can't be reached: {done.stdout.strip()[-300:]}")
