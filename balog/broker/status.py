"""Publish the status of each broker and sidecar in a small file, rewritten once a second.

``balog top`` reads the files. They lie in ``$BALOG_STATUS_DIR``, else ``$XDG_RUNTIME_DIR/balog``, else
``<tmp>/balog-<uid>``, a folder that nobody else may write to; ``BALOG_STATUS_DIR=`` (empty) means none.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.event import format_timestamp
from balog.storage.local_files import replace_in_folder

_EVERY_SECONDS = 1.0
_MAX_FILE = 256 * 1024
_NAME = re.compile(r"(?P<pid>[1-9]\d{0,9})-[0-9a-f]{8}\.json")


class PipeStage(Struct, kw_only=True):
    """The last status of one process of a pipeline.

    Attributes:
        stage: ``broker`` or ``run``; ``label`` has details, such as the name of the command that it runs.
        begun: when the process began, in the kernel's ticks since boot; a later process with the same id has another.
        started: RFC 3339.
        seconds: of its life so far, when this was written.
        stdin: inode of the pipe that it reads, None when that is no pipe; ``stdout`` of the one that it writes.
        stats: so far: ``bytes``, ``lines`` or ``records``, ``read_wait`` and ``write_wait`` in seconds, ``sinks``.
    """

    pid: int
    stage: str
    label: str = ""
    begun: int | None = None
    started: str
    seconds: float
    stdin: int | None = None
    stdout: int | None = None
    stats: dict[str, Any] = field(default_factory=dict, name="figures")


_decoder = msgspec.json.Decoder(PipeStage)
_encode = msgspec.json.Encoder().encode


class StageStatus:
    """A context that publishes this process's stats for ``balog top``.

    A thread of its own writes them. An error of the thread never reaches the caller: the file is then missing.

    Args:
        stage: what kind of stage this is.
        stats: asked once a second, in that thread; see ``PipeStage``.
        label: distinguishes this stage from others of its kind.
        say: called with one line for the user, the first time that writing fails; None for no line.
    """

    def __init__(
        self,
        stage: str,
        stats: Callable[[], dict[str, Any]],
        *,
        label: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._read_stats = stats
        self._say = say
        self._began = time.monotonic()
        self._stage = PipeStage(
            pid=os.getpid(),
            stage=stage,
            label=label,
            begun=start_of(os.getpid()),
            started=format_timestamp(time.time_ns()),
            seconds=0.0,
            stdin=pipe_of(0),
            stdout=pipe_of(1),
        )
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}.json"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="balog status", daemon=True)

    def __enter__(self) -> StageStatus:
        if os.environ.get("BALOG_STATUS_DIR") != "":
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(1.0)  # do not wait longer for a disk that hangs

    def _run(self) -> None:
        folder = None
        while not self._ended.wait(_EVERY_SECONDS):
            try:
                if folder is None:
                    folder = _open_folder(status_folder())
                self._write(folder)
            except Exception as error:  # the data must go on
                if self._say is not None:
                    self._say(f"no status for balog top: {error}")
                    self._say = None
        if folder is not None:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=folder)
            os.close(folder)

    def _write(self, folder: int) -> None:
        self._stage.stats = self._read_stats()
        self._stage.seconds = round(time.monotonic() - self._began, 3)
        replace_in_folder(folder, self._name, _encode(self._stage), part=self._name.replace(".json", ".part"))


def status_folder() -> str:
    """Return the folder of the status files, which may not exist."""
    if named := os.environ.get("BALOG_STATUS_DIR"):
        return named
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(runtime, "balog")
    return os.path.join(tempfile.gettempdir(), f"balog-{os.getuid()}")


def _open_folder(path: str, *, make: bool = True) -> int:
    """Open the folder; create it readable by this user only.

    Raises:
        OSError: it cannot be made or opened, is a symbolic link, or others may write to it.
    """
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        os.close(folder)
        raise PermissionError(f"{path} belongs to somebody else, or others may write to it")
    return folder


def read_stages() -> list[PipeStage]:
    """Return the last status of every living process, oldest first; remove files of dead ones.

    Raises:
        OSError: the folder cannot be read, or is not safe to; none at all is an empty list.
    """
    try:
        folder = _open_folder(status_folder(), make=False)
    except FileNotFoundError:
        return []
    try:
        found = [stage for name in os.listdir(folder) if (stage := _read(folder, name)) is not None]
    finally:
        os.close(folder)
    return sorted(found, key=lambda stage: (stage.started, stage.pid))


def _read(folder: int, name: str) -> PipeStage | None:
    match = _NAME.fullmatch(name.replace(".part", ".json"))
    if not match:
        return None
    begun = start_of(int(match["pid"]))
    if begun is None and not _is_alive(int(match["pid"])):
        _remove(folder, name)
        return None
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        stage = _decoder.decode(os.read(file, _MAX_FILE)) if name.endswith(".json") else None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    finally:
        os.close(file)
    if stage is None or stage.pid != int(match["pid"]):
        return None
    if stage.begun != begun:  # its number is another process's now
        _remove(folder, name)
        return None
    return stage


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def start_of(pid: int) -> int | None:
    """Return a living process's start, in ticks since boot; None without /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read(4096).rpartition(b")")[2].split()
        return None if after_name[0] in (b"Z", b"X") else int(after_name[19])
    except (OSError, ValueError, IndexError):
        return None


def pipe_of(descriptor: int) -> int | None:
    """Return the inode of a descriptor's pipe; None if it is closed or not a pipe."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_ino if stat.S_ISFIFO(found.st_mode) else None
