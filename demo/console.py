"""What the demo prints: one line a step, with its time, and at the end a table of what there is to see."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Console"]


class Console:
    """Prints the steps of the demo; on a terminal, the current one with its seconds.

    Args:
        out: where to print.
        total: the number of steps.
        is_live: whether the current step is shown; whether ``out`` is a terminal if omitted.
    """

    def __init__(self, out: TextIO, total: int, is_live: bool | None = None) -> None:
        self._out = out
        self._total = total
        self._is_live = out.isatty() if is_live is None else is_live
        coloured = out.isatty() and "NO_COLOR" not in os.environ
        self._styles = {"bold": "\033[1m", "green": "\033[32m", "red": "\033[31m", "dim": "\033[2m"} if coloured else {}

    def styled(self, style: str, text: str) -> str:
        """Return a text in a style, where the output has styles."""
        return f"{self._styles[style]}{text}\033[0m" if style in self._styles else text

    def line(self, text: str = "") -> None:
        """Print a line."""
        print(text, file=self._out, flush=True)

    @contextmanager
    def running(self, number: int, text: str) -> Iterator[None]:
        """Show a step as the current one while it runs."""
        if not self._is_live:
            yield
            return
        ended = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(f"{number:>2}/{self._total}  {text}", ended), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            ended.set()
            ticker.join()
            self._out.write("\r\033[K")

    def _tick(self, text: str, ended: threading.Event) -> None:
        began = time.monotonic()
        while True:
            width = shutil.get_terminal_size().columns - 1
            shown = f"{text} … {time.monotonic() - began:.0f} s"
            self._out.write(f"\r\033[K{shown[:width]}")
            self._out.flush()
            if ended.wait(1.0):
                return

    def done(self, number: int, text: str, seconds: float) -> None:
        """Print a step that has ended."""
        self.line(f"{number:>2}  {text:<76} {self.styled('dim', f'{seconds:>6.1f} s')}")

    def failed(self, reason: str) -> None:
        """Print why the demo failed, on one line."""
        self.line(f"{self.styled('red', 'failed')}  {' '.join(reason.split())}")

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Print rows of a name and a text."""
        self.line(f"\n{self.styled('bold', title)}")
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            self.line(f"  {self.styled('green', f'{name:<{width}}')}  {text}")
