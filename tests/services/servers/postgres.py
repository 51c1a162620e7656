"""A real PostgreSQL of Debian's: its own data folder, port and password, run as nobody where the tests are root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services.servers.debian import LIBRARIES
from tests.services.servers.process import CACHE, FolderServer, accepts, running

__all__ = ["USER", "Database", "PostgresServer", "running_postgres"]

USER = "balog"
PASSWORD = "only-of-this-test"

_PLACES = ["/usr/lib/postgresql", CACHE / "debian" / "usr" / "lib" / "postgresql"]
_NOT_ROOT = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "30",
    "shared_buffers": "16MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "timezone": "UTC",
}


@dataclass(frozen=True)
class Database:
    """One database of a server."""

    port: int
    name: str
    psql: list[str]

    @property
    def config(self) -> dict[str, Any]:
        """The names that a tap's or target's config gives to the parts of an address."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": PASSWORD,
            "database": self.name,
        }

    @property
    def url(self) -> str:
        """SQLAlchemy's URL."""
        return f"postgresql+psycopg2://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{self.name}"

    def run(self, statements: str) -> str:
        """Run statements; give what the last one printed, without headers."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", self.name]
        done = subprocess.run(
            [*self.psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *where, "-f", "-"],
            input=statements,
            env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Give the rows of a query, as PostgreSQL makes JSON of them."""
        rows: list[dict[str, Any]] = json.loads(self.run(f"SELECT coalesce(json_agg(q), '[]') FROM ({query}) q;"))
        return rows


class PostgresServer(FolderServer):
    """A cluster in a folder that it may enter; ``database`` gives each test one of its own."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder)
        self._settings = settings
        self._bin = _programs()
        self._psql = ["env", f"LD_LIBRARY_PATH={LIBRARIES}", str(self._bin / "psql")]

    def up(self) -> None:
        data = self.folder / "data"
        if not data.exists():
            self._make(data)
        settings = _SETTINGS | self._settings | {"port": str(self.port), "unix_socket_directories": str(self.folder)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.start(self._as_server("postgres", "-D", str(data), *options), self.folder, self._is_ready)

    def stop(self) -> None:
        """Shut down at once; unlike SIGKILL that leaves no shared memory behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(20)
        super().stop()

    def database(self, name: str) -> Database:
        """Make an empty database, anew where there is one."""
        every = Database(self.port, "postgres", self._psql)
        every.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE);\nCREATE DATABASE "{name}";')
        return Database(self.port, name, self._psql)

    def _as_server(self, name: str, *arguments: str) -> list[str]:
        return [*_NOT_ROOT, "env", f"LD_LIBRARY_PATH={LIBRARIES}", str(self._bin / name), *arguments]

    def _make(self, data: Path) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if _NOT_ROOT:
            for path in (self.folder, password):
                shutil.chown(path, "nobody", "nogroup")
        how = ["-U", USER, f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        command = self._as_server("initdb", "-D", str(data), *how)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def _is_ready(self) -> bool:
        if not accepts(self.port):
            return False
        try:
            Database(self.port, "postgres", self._psql).run("SELECT 1;")
        except AssertionError:  # it still starts
            return False
        return True


def _programs() -> Path:
    """The folder of PostgreSQL's programs; skip where there is none that its user may run."""
    found = [path for place in _PLACES for path in sorted(Path(place).glob("*/bin"), reverse=True)]
    whole = [path for path in found if (path / "postgres").exists() and (path / "psql").exists()]
    if not whole:
        pytest.skip("postgres is not installed: apt-get install postgresql-15, or bash .ci/run")
    if _NOT_ROOT and shutil.which(_NOT_ROOT[0]) is None:
        pytest.skip("PostgreSQL refuses to run as root, and there is no setpriv to run it as nobody")
    asked = [*_NOT_ROOT, "test", "-x", str(whole[0] / "postgres")]
    if subprocess.run(asked, check=False).returncode:
        pytest.skip(f"PostgreSQL refuses to run as root, and nobody may not run what is in {whole[0]}")
    return whole[0]


@contextmanager
def running_postgres(**settings: str) -> Iterator[PostgresServer]:
    """Run a server with further settings until the block ends.

    Its folder is not below pytest's, which nobody but its user may enter.
    """
    with tempfile.TemporaryDirectory(prefix="balog-postgres-") as folder:
        with running(PostgresServer(Path(folder), **settings)) as server:
            yield server
