"""A real FTP server, pyftpdlib, in a thread on loopback, with faults: full, refusing, dying half-way, TLS."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

USER, PASSWORD = "balog", "balog-test-password"


class FtpServer:
    """Serves a folder.

    Attributes:
        fault: "" for none; "full" (552 after some bytes), "cut" (the connection dies after some bytes), "refuse" (421
            on connecting), "locked" (550 on renaming).
        idle: seconds after which an idle session is ended.
    """

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        self.folder = folder
        self.fault = ""
        self.idle = 300
        self._certificate = certificate
        self._ready = threading.Event()
        self._stop = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def url(self, path: str) -> str:
        return f"ftp://127.0.0.1:{self.port}/{path}"

    def options(self) -> dict[str, Any]:
        return {"username": USER, "password": {"env": "TEST_FTP_PASSWORD"}, "timeout": 10}

    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_FTP_PASSWORD", PASSWORD)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30), "the FTP server did not start"

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)

    def _serve(self) -> None:
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import DTPHandler, FTPHandler, TLS_FTPHandler
        from pyftpdlib.ioloop import IOLoop
        from pyftpdlib.servers import FTPServer

        server = self

        class Data(DTPHandler):  # type: ignore[misc]
            def handle_read(self) -> None:
                if server.fault == "full" and not isinstance(self.file_obj, _Full):
                    self.file_obj = _Full(self.file_obj)
                if server.fault == "cut":
                    super().handle_read()
                    channel = self.cmd_channel
                    self.close()
                    channel.close()
                    return
                super().handle_read()

            handle_read_event = handle_read  # what pyftpdlib calls

        base = TLS_FTPHandler if self._certificate else FTPHandler

        class Control(base):  # type: ignore[misc,valid-type]
            timeout = property(lambda self: server.idle)

            def on_connect(self) -> None:
                if server.fault == "refuse":
                    self.respond("421 Too many connections.")
                    self.close_when_done()

            def ftp_RNTO(self, path: str) -> Any:
                if server.fault == "locked":
                    self.respond("550 Locked.")
                    return None
                return super().ftp_RNTO(path)

        authorizer = DummyAuthorizer()
        authorizer.add_user(USER, PASSWORD, str(self.folder), perm="elradfmwMT")
        Control.authorizer = authorizer
        if self._certificate:
            Control.certfile = str(self._certificate)
            Control.tls_control_required = Control.tls_data_required = True
        else:
            Control.dtp_handler = Data
        loop = IOLoop()
        listener = FTPServer(("127.0.0.1", 0), Control, ioloop=loop)
        self.port = listener.address[1]
        self._ready.set()
        try:
            while not self._stop.is_set():
                loop.loop(timeout=0.05, blocking=False)
        finally:
            listener.close_all()


class _Full:
    """A file on a disk with room for half of what comes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.name = file.name

    def write(self, data: bytes) -> int:
        self._file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def running_ftp(folder: Path, certificate: Path | None = None) -> Iterator[FtpServer]:
    """Run one; skips where pyftpdlib is not installed."""
    pytest.importorskip("pyftpdlib", reason="pyftpdlib is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    server = FtpServer(folder, certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()
