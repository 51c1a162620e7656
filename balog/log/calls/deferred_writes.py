"""Write events in a thread, so that an event loop does not wait for an output."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from balog.log.outputs.calls import current, with_exception
from balog.log.recorder import Recorder


class DeferredWrites:
    """A recorder that keeps events instead of writing them, until ``finish``.

    Args:
        recorder: makes the events, and writes them later.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._writes: list[tuple[BaseException | None, tuple[Any, ...]]] = []

    def as_recorder(self) -> Recorder:
        """Return this under the type of what it stands for."""
        return cast("Recorder", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def write(self, *event: Any) -> None:
        """Keep an event, by the arguments of ``Recorder.write``, and its exception, which outputs may look at."""
        self._writes.append((current.exception, event))

    async def finish(self) -> None:
        """Write the events in asyncio's default executor; without one (trio, the end of a loop), here."""
        if self._writes:
            try:
                written = asyncio.get_running_loop().run_in_executor(None, self._write_all)
            except RuntimeError:
                self._write_all()
                return
            await written

    def _write_all(self) -> None:
        for error, event in self._writes:
            with with_exception(error):
                self._recorder.write(*event)
