"""A real S3 server: S3Proxy from Maven Central, on loopback, its objects in a folder. Needs java, and once mvn."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services.servers.process import CACHE, FolderServer, accepts, fetch, fetching, java, running

VERSION = "2.6.0"
KEY, SECRET = "balog-test-key", "balog-test-secret"
_JAR = CACHE / f"s3proxy-{VERSION}.jar"
_ARTIFACT = f"org.gaul:s3proxy:{VERSION}:jar:jar-with-dependencies"


class S3Server(FolderServer):
    """Stops and starts again on the same port with the same objects."""

    def __init__(self, folder: Path, java: str) -> None:
        super().__init__(folder)
        self.url = f"http://127.0.0.1:{self.port}"
        self._java = java

    def options(self) -> dict[str, Any]:
        """What a config says; the two secrets are in the environment by ``environment``."""
        return {"endpoint_url": self.url, "key": {"env": "TEST_S3_KEY"}, "secret": {"env": "TEST_S3_SECRET"}}

    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_S3_KEY", KEY)
        monkeypatch.setenv("TEST_S3_SECRET", SECRET)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def bucket(self, name: str) -> Path:
        """Make a bucket; give the folder that S3Proxy keeps its objects in."""
        folder = self.folder / "objects" / name
        folder.mkdir(parents=True)
        return folder

    def up(self) -> None:
        (self.folder / "objects").mkdir(parents=True, exist_ok=True)
        config = self.folder / "s3proxy.conf"
        config.write_text(
            f"s3proxy.endpoint={self.url}\n"
            "s3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={KEY}\ns3proxy.credential={SECRET}\n"
            "jclouds.provider=filesystem-nio2\njclouds.identity=local\njclouds.credential=local\n"
            f"jclouds.filesystem.basedir={self.folder / 'objects'}\n"
        )
        command = [self._java, "-Xmx256m", "-jar", str(_JAR), "--properties", str(config)]
        self.start(command, self.folder, lambda: accepts(self.port))


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Run one; skips where it can't be had."""
    server = S3Server(folder, java("S3Proxy"))
    with fetching():
        if not _JAR.exists():
            fetch("copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={CACHE}", for_whom="S3Proxy")
            (CACHE / f"s3proxy-{VERSION}-jar-with-dependencies.jar").rename(_JAR)
    with running(server):
        yield server
