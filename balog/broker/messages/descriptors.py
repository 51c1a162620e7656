"""Handle inherited descriptors, which may be shared, non-blocking or closed."""

from __future__ import annotations

import errno
import os


def let_go(target: int) -> None:
    """Close this process's end of a stream, so that its reader sees the end; the descriptor's number stays occupied."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, target)
    os.close(nowhere)


def hold_standard() -> None:
    """Occupy stdin, stdout and stderr if they are closed, so that no file opened later gets their numbers.

    What is held refuses its use, as a closed descriptor does: stdin can't be read, the others can't be written.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(
                os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY
            )  # gets the lowest free number, which is this one
            os.set_inheritable(descriptor, True)
