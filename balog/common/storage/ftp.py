"""fsspec's FTP with verified certificates, one transfer a file, and a missing file apart from other errors.

Imports fsspec, so only storage at an FTP URL imports this module.
"""

from __future__ import annotations

import ftplib
import io
import ssl
from typing import Any

from fsspec.implementations.ftp import FTPFileSystem

_BLOCK_BYTES = 1 << 18


class StrictFTPFileSystem(FTPFileSystem):  # type: ignore[misc]
    """FTP, with ``tls=True`` over explicit TLS (RFC 4217), verified against ``ca_file`` or the system's authorities."""

    def __init__(self, *args: Any, ca_file: str | None = None, **options: Any) -> None:
        self._ca_file = ca_file
        super().__init__(*args, **options)

    def _connect(self) -> None:
        if not self.tls:
            super()._connect()
            return
        context = ssl.create_default_context(cafile=self._ca_file)
        self.ftp = ftplib.FTP_TLS(timeout=self.timeout, encoding=self.encoding, context=context)  # noqa: S321
        self.ftp.connect(self.host, self.port)
        self.ftp.login(*self.cred)

    def put_file(self, lpath: str, rpath: str, *args: Any, **options: Any) -> None:
        """Upload a local file in one transfer."""
        with open(lpath, "rb") as file:
            self.ftp.storbinary(f"STOR {rpath}", file, blocksize=_BLOCK_BYTES)

    def pipe_file(self, path: str, value: bytes, *args: Any, **options: Any) -> None:
        """Write a file in one transfer."""
        self.ftp.storbinary(f"STOR {path}", io.BytesIO(value), blocksize=_BLOCK_BYTES)

    def cat_file(self, path: str, *args: Any, **options: Any) -> bytes:
        """Return the content of a file, read in one transfer."""
        blocks: list[bytes] = []
        self.ftp.retrbinary(f"RETR {path}", blocks.append, blocksize=_BLOCK_BYTES)
        return b"".join(blocks)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Return size, type and time of one file; fsspec lists its folder and reports every error as a missing file."""
        if not path.strip("/"):
            return {"name": "/", "size": 0, "type": "directory"}
        try:
            self.ftp.voidcmd("TYPE I")
            size = self.ftp.size(path)
            modify = self.ftp.sendcmd(f"MDTM {path}")[4:]
        except ftplib.error_perm as error:
            if not str(error).startswith("550"):
                raise
            if self._is_folder(path):
                return {"name": path, "size": 0, "type": "directory"}
            raise FileNotFoundError(path) from None
        return {"name": path, "size": size, "type": "file", "modify": modify}

    def _is_folder(self, path: str) -> bool:
        try:
            self.ftp.cwd(path)  # every other path is absolute
        except ftplib.error_perm:
            return False
        return True

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Create a folder and its parents; existing ones stay."""
        here = ""
        for name in path.strip("/").split("/"):
            here += f"/{name}"
            try:
                self.ftp.mkd(here)
            except ftplib.error_perm:
                if not self.isdir(here):
                    raise

    def rm_file(self, path: str) -> None:
        """Delete a file; raise FileNotFoundError when there is none."""
        try:
            self.ftp.delete(path)
        except ftplib.error_perm:
            self.info(path)  # says whether it was only missing
            raise

    def __del__(self) -> None:
        if hasattr(self, "ftp"):  # it could not connect
            self.ftp.close()
