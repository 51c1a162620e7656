"""What the servers of the tests share: a free port, a process that is waited for and stopped, programs of Maven's."""

import fcntl
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

CACHE = Path(__file__).parents[3] / ".demo" / "services"
"""Where what was fetched stays."""

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>balog</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"

LOG4J_TO_CONSOLE = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""
"""A ``log4j2.properties`` by which a server's warnings reach its log and it writes no files."""


_given: set[int] = set()


def free_port() -> int:
    """Give a port that nothing listens at; no port twice, as a server may ask for all of its ports before it starts."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port


class ServerProcess:
    """A program that is started, waited for, and ended by its own pid; it can be started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start it; each kind of server knows how."""
        raise NotImplementedError

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

    def stop(self, number: int = signal.SIGKILL) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(20)


class FolderServer(ServerProcess):
    """A server with a folder and a port of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.port = folder, free_port()


_Server = TypeVar("_Server", bound=ServerProcess)


@contextmanager
def running(server: _Server) -> Iterator[_Server]:
    """Run a server until the block ends."""
    try:
        server.up()
        yield server
    finally:
        server.stop()


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


@contextmanager
def fetching() -> Iterator[None]:
    """Be the only process that fetches until the block ends: Maven's own folder bears no two, nor does ours."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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


def fetch_jars(into: Path, artifacts: Iterable[str], for_whom: str) -> Path:
    """Have Maven fetch jars and all that they need at run time into a folder, unless it is there; skip where it can't.

    Args:
        into: the folder, below ``CACHE`` to stay. It appears whole or not at all.
        artifacts: each ``group:artifact:version``.
        for_whom: begins the reason of a skip.
    """
    with fetching():
        if not into.exists():
            _copy_jars(into, artifacts, for_whom)
    return into


def _copy_jars(into: Path, artifacts: Iterable[str], for_whom: str) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as scratch:
        pom, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)))
        options = ("-f", str(pom), f"-DoutputDirectory={jars}", "-DincludeScope=runtime")
        fetch("copy-dependencies", *options, for_whom=for_whom)
        jars.rename(into)
