"""Nothing is left behind: what a tap started is found and ended, also when the verification itself is killed."""

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
"""Waits for the end of its input, which comes however the verification ends; last it read which group is running."""


class Guard:
    """A shell that waits beside the verification, and a mark in the environment of all that a tap starts.

    Args:
        folder: what the tap is given; removed when the verification ends before it closes the guard.
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
        """What the tap is to be run with."""
        name, _, value = self._mark.partition("=")
        return {**os.environ, name: value}

    def note(self, group: int) -> None:
        """Say which process group is running now; 0 when none is."""
        if self._shell is not None and self._shell.stdin is not None:
            try:
                self._shell.stdin.write(b"%d\n" % group)
            except BrokenPipeError:
                self._shell.stdin = None

    def left(self) -> list[int]:
        """Return the processes that bear the mark, whatever session they are in; none where there is no /proc."""
        found, mark = [], self._mark.encode()
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
            except OSError:
                continue  # another user's, or over meanwhile
        return found

    def end_all(self) -> None:
        """Kill them."""
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        """Let the shell go; it removes the folder if that is still there."""
        if self._shell is not None:
            self._shell.communicate()
