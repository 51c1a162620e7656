"""A shell pipe without the shell: shown as one could type it, run with every exit code kept (`set -o pipefail`)."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Pipeline"]


@dataclass(frozen=True)
class Pipeline:
    """Commands, the output of each the input of the next; the last one's goes to ``output`` or to the terminal."""

    commands: Sequence[Sequence[str]]
    output: Path | None = None

    def __str__(self) -> str:
        text = " \\\n    | ".join(shlex.join(command) for command in self.commands)
        return f"{text} \\\n    > {self.output}" if self.output else text

    def run(self, log: Path | None = None) -> list[int]:
        """Run all of them at once and wait; their exit codes, in order. All else that they print goes to a log."""
        with ExitStack() as stack:
            rest = stack.enter_context(log.open("ab")) if log else None
            end = stack.enter_context(self.output.open("wb")) if self.output else rest
            children: list[subprocess.Popen[bytes]] = []
            for number, command in enumerate(self.commands, start=1):
                before = children[-1].stdout if children else subprocess.DEVNULL
                after = end if number == len(self.commands) else subprocess.PIPE
                children.append(stack.enter_context(subprocess.Popen(command, stdin=before, stdout=after, stderr=rest)))
                # Only the children hold the pipe, so that one which ends early is seen by the one before it.
                if before is not None and not isinstance(before, int):
                    before.close()
            return [child.wait() for child in children]
