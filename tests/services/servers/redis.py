"""A real Redis of Debian's, with an append-only file, a password, and TLS on a second port where asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.servers.debian import LIBRARIES, program
from tests.services.servers.process import ServerProcess, accepts, free_port

PASSWORD = "only-of-this-test"


class RedisServer:
    """A Redis that can be killed and started again on the same ports and files.

    Args:
        folder: for its files.
        authority: of trustme, for TLS.
    """

    def __init__(self, folder: Path, authority: object | None = None) -> None:
        self.port = free_port()
        self.tls_port = free_port() if authority is not None else 0
        self._folder = folder
        self._process = ServerProcess()
        self._command = [
            *("env", f"LD_LIBRARY_PATH={LIBRARIES}", program("redis-server", "redis-server")),
            *("--bind", "127.0.0.1", "--port", str(self.port), "--requirepass", PASSWORD),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]
        if authority is not None:
            certificate = authority.issue_cert("localhost")
            chain, key = folder / "chain.pem", folder / "key.pem"
            certificate.private_key_pem.write_to_path(str(key))
            for part in certificate.cert_chain_pems:
                part.write_to_path(str(chain), append=True)
            self._command += ["--tls-port", str(self.tls_port), "--tls-auth-clients", "no"]
            self._command += ["--tls-cert-file", str(chain), "--tls-key-file", str(key)]

    def start(self) -> None:
        self._process.start(self._command, self._folder, lambda: accepts(self.port))

    def stop(self) -> None:
        self._process.stop()


@contextmanager
def running_redis(folder: Path, authority: object | None = None) -> Iterator[RedisServer]:
    server = RedisServer(folder, authority)
    server.start()
    try:
        yield server
    finally:
        server.stop()
