"""Programs of Debian packages: installed, or unpacked by ``.ci/run`` into ``.demo`` so that no daemon starts."""

import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.servers.process import CACHE, ServerProcess

_UNPACKED = ":".join(str(CACHE / "debian" / "usr" / folder) for folder in ("bin", "sbin"))

LIBRARIES = ":".join(map(str, (CACHE / "debian").glob("**/lib/*-linux-gnu")))
"""For ``LD_LIBRARY_PATH``: what the packages of the libraries that they need hold; "" where nothing is unpacked."""


def program(name: str, package: str) -> str:
    """Give a program's path; skip where it is not."""
    found = shutil.which(name) or shutil.which(name, path=_UNPACKED)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install {package}, or bash .ci/run")
    return found


@contextmanager
def running(command: list[str], folder: Path, ready_url: str) -> Iterator[None]:
    """Run a server in a folder until the block ends, from when ``ready_url`` answers 200."""

    def is_ready() -> bool:
        with urllib.request.urlopen(ready_url, timeout=5):
            return True

    server = ServerProcess()
    server.start(command, folder, is_ready)
    try:
        yield
    finally:
        server.stop()
