"""A real MariaDB of Debian's: its own data folder, port and password."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.services.servers.debian import LIBRARIES, program
from tests.services.servers.process import FolderServer, accepts, running

__all__ = ["MariaServer", "running_mariadb"]

USER = "balog"
PASSWORD = "only-of-this-test"

_SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "16M",
    "innodb-flush-method": "nosync",
    "innodb-log-file-size": "8M",
    "innodb-use-native-aio": "0",
    "performance-schema": "0",
}
_ACCOUNT = f"""FLUSH PRIVILEGES;
CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO {USER}@'127.0.0.1';
"""


class MariaServer(FolderServer):
    """A server in a folder; ``database`` gives each test one of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        server = Path(program("mariadbd", "mariadb-server-core"))
        self._share = server.resolve().parents[1] / "share" / "mysql"
        settings = {**_SETTINGS, "datadir": folder / "data", "lc-messages-dir": self._share, "plugin-dir": folder}
        settings |= {"user": "root"} if os.geteuid() == 0 else {}

        options = [f"--{name}={value}" for name, value in settings.items()]
        self._command = ["env", f"LD_LIBRARY_PATH={LIBRARIES}", str(server), "--no-defaults", *options]

    def up(self) -> None:
        if not (self.folder / "data").exists():
            self._make()
        where = [f"--port={self.port}", f"--socket={self.folder}/socket", f"--pid-file={self.folder}/pid"]
        self.start([*self._command, *where], self.folder, lambda: accepts(self.port))

    def _make(self) -> None:
        """Make the system's tables and the account, as Debian's script does with programs that are not unpacked."""
        (self.folder / "data").mkdir()
        tables = [self._share / f"mysql_system_tables{part}.sql" for part in ("", "_data")]
        script = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *(path.read_text() for path in tables), _ACCOUNT])
        command = [*self._command, "--bootstrap"]
        done = subprocess.run(command, input=script, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def url(self, name: str) -> str:
        """SQLAlchemy's URL of a database."""
        return f"mysql+pymysql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def run(self, name: str, statements: str) -> list[tuple[Any, ...]]:
        """Run statements that end with the line; give the rows of the last one."""
        import pymysql

        where: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": PASSWORD}
        with closing(pymysql.connect(**where, database=name, autocommit=True)) as connection:
            cursor = connection.cursor()
            for statement in statements.split(";\n"):
                if statement.strip():
                    cursor.execute(statement)
            return list(cursor.fetchall())

    def database(self, name: str) -> str:
        """Make an empty database, anew where there is one, and give its URL."""
        self.run("mysql", f"DROP DATABASE IF EXISTS `{name}`;\nCREATE DATABASE `{name}` CHARACTER SET utf8mb4;\n")
        return self.url(name)


@contextmanager
def running_mariadb(folder: Path) -> Iterator[MariaServer]:
    """Run a server with its data in a folder until the block ends."""
    with running(MariaServer(folder)) as server:
        yield server
