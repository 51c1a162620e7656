"""``balog consume --reload``: drain and restart the consumer when its package's source changes.

The consumer runs in a child process, because Python cannot unload a module and what it registered or started.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from balog.broker.child import is_in_foreground
from balog.errors import ConfigError
from balog.signals import StopSignals

LOOK_SECONDS = 0.5
"""Seconds between two scans of the files."""

GRACE = 10.0
"""Seconds after the drain before the child is killed."""

_WATCHED = frozenset({".git", "__pycache__", "node_modules"})

Stamps = Mapping[str, tuple[int, int]]
"""Path of each file -> (time of the last change in nanoseconds, size in bytes)."""


class Reloader:
    """Run a command, and restart it with each change of its source.

    Args:
        package: a dotted name. The whole top package is watched, since handlers import its other modules.
        command: arguments of the child; the number of a descriptor for ``live_with`` is appended.
        drain: maximum seconds that the command takes to end after SIGTERM.
        say: prints one line.

    Raises:
        ConfigError: the package does not exist.
    """

    def __init__(self, package: str, command: Sequence[str], drain: float, say: Callable[[str], None]) -> None:
        self._roots = find_roots(package)
        self._command = list(command)
        self._drain = drain
        self._say = say
        self._child: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._is_asked = False

    def run(self) -> int:
        """Run until a signal ends it or the command exits with 0, and return the exit code.

        The first SIGTERM or SIGINT makes the command drain; the second ends both processes at once. After a command
        that fails, or a source that does not compile, wait for the next change of the source.
        """
        seen: Stamps | None = None
        with StopSignals(self._forward) as stop:
            while not stop.came():
                now = find_sources(self._roots)
                if now != seen:
                    select.select([stop.wake], [], [], LOOK_SECONDS / 5)  # an editor may be at it
                    seen = now if find_sources(self._roots) == now else None
                    if seen is not None:
                        self._renew(seen, stop)
                elif self._child is not None and (code := self._child.poll()) is not None:
                    self._forget_child()
                    if code == 0:
                        return 0
                    self._say(f"the consumer ended with {_ending(code)}; it restarts when the source changes")
                if not stop.came():
                    select.select([stop.wake], [], [], 0.0 if seen is None else LOOK_SECONDS)
            child, code = self._child, 0
            if child is not None:
                code = child.wait()  # the second signal ends this wait, see ``StopSignals``
                self._forget_child()
        return code if code >= 0 else 128 - code

    def _renew(self, sources: Stamps, stop: StopSignals) -> None:
        mistake = find_mistake(sources)
        if mistake:
            running = "; the running consumer goes on unchanged" if self._child is not None else ""
            self._say(f"{mistake}; waiting for a change{running}")
            return
        if self._child is not None:
            self._say("the source changed, restarting")
            self._end_child()
        if stop.came():
            return
        there, self._lifeline = os.pipe()
        try:
            self._child = subprocess.Popen([*self._command, str(there)], pass_fds=[there])
        finally:
            os.close(there)

    def _end_child(self) -> None:
        child = self._child
        if child is None:
            return
        self._is_asked = True
        child.terminate()
        try:
            child.wait(self._drain + GRACE)
        except subprocess.TimeoutExpired:
            self._say("the consumer does not end and is killed; its events in flight are delivered again")
            child.kill()
            child.wait()
        self._is_asked = False
        self._forget_child()

    def _forget_child(self) -> None:
        self._child = None
        os.close(self._lifeline)

    def _forward(self, number: int) -> None:
        """Send a signal to the child, unless the terminal sent it or the child is already ending."""
        is_from_keys = number == signal.SIGINT and is_in_foreground()
        asked, self._is_asked = self._is_asked, False
        child = self._child
        if child is not None and child.returncode is None and not is_from_keys and not asked:
            try:
                os.kill(child.pid, number)
            except ProcessLookupError:
                pass


def live_with(descriptor: int) -> None:
    """Stop this process when the other end of a pipe closes: its parent was killed.

    Raises:
        ConfigError: the descriptor does not exist.
    """
    try:
        os.set_inheritable(descriptor, False)
    except OSError as error:
        raise ConfigError(f"--lifeline {descriptor}: {error.strerror}") from None

    def wait() -> None:
        os.read(descriptor, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="balog lifeline", daemon=True).start()


def find_roots(package: str) -> list[Path]:
    """Find the folders of a dotted name's top package, or the file of a module, without importing it.

    Raises:
        ConfigError: the package does not exist or has no source.
    """
    top = package.partition(".")[0]
    try:
        spec = importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path])
        spec = spec or importlib.util.find_spec(top)  # an editable install may have a finder of its own
    except (ImportError, ValueError):
        spec = None
    roots: list[str] = []
    if spec is not None and spec.submodule_search_locations is not None:
        roots = list(spec.submodule_search_locations)
    elif spec is not None and spec.has_location and spec.origin:
        roots = [spec.origin]
    if not roots:
        raise ConfigError(f"no package {top} whose source could be watched, neither in {os.getcwd()} nor installed")
    return [Path(root) for root in roots]


def find_sources(roots: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """Return the stamps of all Python files below these folders."""
    found = {}
    for root in roots:
        for path in [root] if root.is_file() else _walk(root):
            try:
                status = os.stat(path)
            except OSError:
                continue  # just deleted, or a broken link
            found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _WATCHED]
        yield from (os.path.join(folder, name) for name in files if name.endswith(".py"))


def find_mistake(sources: Stamps) -> str:
    """Return the first file that does not compile, and why, as one line; "" if all do."""
    for path in sorted(sources):
        try:
            with open(path, "rb") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(file.read(), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"{os.path.relpath(path)}:{error.lineno or 1}: {error.msg}"
        except ValueError as error:  # a NUL
            return f"{os.path.relpath(path)}: {error}"
        except OSError:
            continue  # deleted meanwhile
    return ""


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
