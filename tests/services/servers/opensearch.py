"""A real OpenSearch from Maven Central's jars, one node on loopback. Needs java (17 to 23), and once mvn.

There is no distribution at Maven Central, so its folder is put together here: the core's jars in ``lib``, the HTTP
server's in ``modules``. It says no to root only where JNA works, which it is told not to.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.services.servers.process import CACHE, LOG4J_TO_CONSOLE, FolderServer, fetch_jars, free_port, java, running

VERSION = "2.19.1"
_HOME = CACHE / f"opensearch-{VERSION}"
_ARTIFACTS = (
    f"org.opensearch:opensearch:{VERSION}",
    f"org.opensearch:opensearch-plugin-classloader:{VERSION}",
    f"org.opensearch.plugin:transport-netty4-client:{VERSION}",
    "org.apache.logging.log4j:log4j-core:2.21.0",
)
_DESCRIPTOR = f"""description=HTTP by netty
version={VERSION}
name=transport-netty4
classname=org.opensearch.transport.Netty4Plugin
java.version=11
opensearch.version={VERSION}
"""
_POLICY = "grant { permission java.security.AllPermission; };\n"


class OpenSearchServer(FolderServer):
    """Stops and starts again on the same port with the same documents."""

    def __init__(self, folder: Path, java: str) -> None:
        super().__init__(folder)
        self.url = f"http://127.0.0.1:{self.port}"
        self._java = java
        self._http = urllib3.PoolManager(retries=False, timeout=30)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask its API; the answer must be a success, and is decoded."""
        answer = self._http.request(
            method,
            f"{self.url}/{path}",
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status < 300, answer.data
        return json.loads(answer.data)

    def documents(self, target: str) -> dict[str, Any]:
        """Give all that is in an index or data stream, by ``_id``."""
        self.ask("POST", f"{target}/_refresh")
        found = self.ask("POST", f"{target}/_search", {"size": 10_000, "query": {"match_all": {}}})["hits"]["hits"]
        assert len({hit["_id"] for hit in found}) == len(found)
        return {hit["_id"]: hit["_source"] for hit in found}

    def up(self) -> None:
        config = self.folder / "config"
        for place in (config, self.folder / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        (config / "log4j2.properties").write_text(LOG4J_TO_CONSOLE)
        settings = {
            "discovery.type": "single-node",
            "network.host": "127.0.0.1",
            "http.port": self.port,
            "transport.port": free_port(),
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            "node.store.allow_mmap": False,
            "cluster.routing.allocation.disk.threshold_enabled": False,
        }
        (config / "opensearch.yml").write_text(json.dumps(settings))  # JSON is YAML
        command = [self._java, "-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Djava.security.manager=allow", f"-Djava.io.tmpdir={self.folder / 'tmp'}"]
        command += ["-Djna.nosys=true", "-Djna.nounpack=true", "-Dlog4j2.disable.jmx=true"]
        command += [f"-Dopensearch.path.home={_HOME}", f"-Dopensearch.path.conf={config}"]
        command += [
            "-Dopensearch.distribution.type=tar",
            "-cp",
            f"{_HOME}/lib/*",
            "org.opensearch.bootstrap.OpenSearch",
        ]
        self.start(command, self.folder, self._is_ready, seconds=120)

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "_cluster/health?wait_for_status=yellow&timeout=30s")
        except (urllib3.exceptions.HTTPError, AssertionError):
            return False
        return True

    def stop(self) -> None:
        self._http.clear()
        super().stop()


@contextmanager
def running_opensearch(folder: Path) -> Iterator[OpenSearchServer]:
    """Run one; skips where it can't be had."""
    program = java("OpenSearch")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or not 17 <= int(version[1]) <= 23:
        pytest.skip("OpenSearch 2 needs a java from 17 to 23")
    _fetch()
    with running(OpenSearchServer(folder, program)) as server:
        yield server


def _fetch() -> None:
    if _HOME.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "home"
        jars = fetch_jars(Path(scratch) / "jars", _ARTIFACTS, "OpenSearch")
        module = made / "modules" / "transport-netty4"
        for place in (module, made / "lib", made / "plugins"):
            place.mkdir(parents=True)
        for jar in jars.glob("*.jar"):
            jar.rename((module if jar.name.startswith(("netty-", "transport-netty4")) else made / "lib") / jar.name)
        (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
        (module / "plugin-security.policy").write_text(_POLICY)
        made.rename(_HOME)
