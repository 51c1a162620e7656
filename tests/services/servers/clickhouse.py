"""A real ClickHouse of Debian's (18.16), with a user who has a password and one who may only read."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.services.servers.debian import LIBRARIES, program
from tests.services.servers.process import ServerProcess, free_port

__all__ = ["PASSWORD", "ClickHouseServer", "running_clickhouse"]

PASSWORD = "only of this test: ü'"

_CONFIG = """<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{http}</http_port>
  <tcp_port>{tcp}</tcp_port>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <format_schema_path>{folder}/formats/</format_schema_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <timezone>UTC</timezone>
</yandex>
"""
_USER = "<networks><ip>127.0.0.1</ip></networks><quota>default</quota>"
_USERS = f"""<yandex>
  <profiles>
    <default><max_memory_usage>1000000000</max_memory_usage></default>
    <reader><readonly>1</readonly></reader>
  </profiles>
  <users>
    <default><password></password><profile>default</profile>{_USER}</default>
    <balog><password>{PASSWORD}</password><profile>default</profile>{_USER}</balog>
    <reader><password></password><profile>reader</profile>{_USER}</reader>
  </users>
  <quotas><default/></quotas>
</yandex>
"""


class ClickHouseServer:
    """A server that can be killed and started again on the same port and files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        config = _CONFIG.format(http=self._port, tcp=free_port(), folder=folder)
        (folder / "config.xml").write_text(config)
        (folder / "users.xml").write_text(_USERS)
        server = program("clickhouse-server", "clickhouse-server")
        self._command = ["env", f"LD_LIBRARY_PATH={LIBRARIES}", server, f"--config-file={folder / 'config.xml'}"]
        self._process = ServerProcess()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._process.start(self._command, self._folder, self._is_ready)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.stop()

    def ask(self, statement: str) -> list[dict[str, Any]]:
        """Run a statement as the user ``default``; give the rows of a query that ends with FORMAT JSONEachRow."""
        with urllib.request.urlopen(self.url, statement.encode(), timeout=30) as answer:
            return [json.loads(line) for line in answer.read().splitlines()]

    def _is_ready(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/ping", timeout=5):
            return True


@contextmanager
def running_clickhouse(folder: Path) -> Iterator[ClickHouseServer]:
    server = ClickHouseServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
