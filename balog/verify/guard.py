"""Cleanup of a tap's processes and files, even when the verification itself is killed."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from pathlib import Path

__all__ = ["Guard"]

_MARK = "BALOG_VERIFY"
_SCRIPT = """
while read -r word; do group=$word; done
[ "${group:-0}" != 0 ] && kill -9 -- "-$group"
for each in $(grep -lsa "$2" /proc/[0-9]*/environ); do each=${each%/environ}; kill -9 "${each#/proc/}"; done
rm -rf -- "$1"
"""
"""Waits for the end of its input, which comes however the verification ends. Each line is the running process group."""


class Guard:
    """A shell that waits for the end of the verification, and a mark in the environment of the tap's processes.

    Args:
        folder: the folder of the tap's files. The shell removes it if the verification is killed.
    """

    def __init__(self, folder: str) -> None:
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        self._shell: subprocess.Popen[bytes] | None = None
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "balog-verify", folder, self._mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is not for it
            )
        except OSError:
            pass  # a machine without a shell: then only a kill that cannot be caught leaves something

    @property
    def environment(self) -> dict[str, str]:
        """The environment for the tap."""
        name, _, value = self._mark.partition("=")
        return {**os.environ, name: value}

    def note(self, group: int) -> None:
        """Record the running process group; 0 means none."""
        if self._shell is not None and self._shell.stdin is not None:
            try:
                self._shell.stdin.write(b"%d\n" % group)
            except BrokenPipeError:
                self._shell.stdin = None

    def left(self) -> list[int]:
        """Return the ids of marked processes in any session; none without /proc."""
        found, mark = [], self._mark.encode()
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
            except OSError:
                continue  # another user's, or over meanwhile
        return found

    def end_all(self) -> None:
        """Kill all marked processes."""
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        """End the shell, which removes the folder if it still exists."""
        if self._shell is not None:
            self._shell.communicate()
