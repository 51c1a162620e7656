"""HTTP Digest against a lighttpd of Debian's."""

import threading
from pathlib import Path

import pytest

from balog.tap.credentials import Digest
from balog.tap.http import Client, HttpError
from tests.services.servers.lighttpd import PASSWORD, USER, digest_server

pytestmark = pytest.mark.service


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_a_server_of_debian_accepts_the_digest(tmp_path: Path, algorithm: str) -> None:
    with digest_server(tmp_path, algorithm) as url:
        found: list[int] = []
        with Client(url, auth=Digest(USER, PASSWORD)) as client:
            assert client.get("data.json", {"q": 'a b,c="d"'}).json() == {"id": 1}

            def ask() -> None:
                found.extend(client.get("data.json").status for _ in range(5))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert found == [200] * 20
        with Client(url, auth=Digest(USER, "wr0ng-pass")) as client:
            with pytest.raises(HttpError, match="401") as caught:
                client.get("data.json")
        assert "wr0ng" not in str(caught.value)
