"""A real lighttpd of Debian's that asks for HTTP Digest."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.servers.debian import CACHE, LIBRARIES, program
from tests.services.servers.process import ServerProcess, accepts, free_port

USER, PASSWORD, REALM = "ada, the first", "päss: word", "a realm, of tests"


@contextmanager
def digest_server(folder: Path, algorithm: str) -> Iterator[str]:
    """Run the server with a file ``data.json`` until the block ends; yield its URL."""
    port = free_port()
    (folder / "data.json").write_text('{"id": 1}')
    name = "sha256" if algorithm == "SHA-256" else "md5"
    hashed = hashlib.new(name, f"{USER}:{REALM}:{PASSWORD}".encode()).hexdigest()
    (folder / "users").write_text(f"{USER}:{REALM}:{hashed}\n")
    binary = program("lighttpd", "lighttpd")
    modules = CACHE / "debian" / "usr" / "lib" / "lighttpd"
    found = f"-m {modules}".split() if modules.is_dir() else []
    (folder / "lighttpd.conf").write_text(f"""
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{folder}"
server.modules = ("mod_auth", "mod_authn_file")
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{folder}/users"
auth.require = ("/" => (
    "method" => "digest", "algorithm" => "{algorithm}", "realm" => "{REALM}", "require" => "valid-user"
))
""")

    server = ServerProcess()
    environment = ["env", f"LD_LIBRARY_PATH={LIBRARIES}"]
    server.start(
        [*environment, binary, "-D", "-f", str(folder / "lighttpd.conf"), *found], folder, lambda: accepts(port)
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
