"""``tap | target-jsonl`` with a tap of ``examples/``, from the last state that the target wrote."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.services.real_taps import installed

ROOT = Path(__file__).parents[2]


class Pipeline:
    """A tap and a target that writes into a folder.

    Attributes:
        tap: the process of the last run, once ``is_started``.
    """

    def __init__(self, folder: Path, tap: Path, config: dict[str, Any]) -> None:
        self.folder = folder
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "target.json").write_text(json.dumps({"destination_path": str(folder), "do_timestamp_file": False}))
        self._command = [sys.executable, str(tap), "--config", str(folder / "config.json")]
        self._target = [installed("target-jsonl", "target-jsonl"), "--config", str(folder / "target.json")]
        self.tap: subprocess.Popen[bytes]
        self.is_started = threading.Event()

    def run(self, kill_after: int | None = None) -> int:
        """Run it once, kill the tap after some messages, and return the tap's exit code."""
        state = self.folder / "state.json"
        arguments = ["--state", str(state)] if state.exists() else []
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
        environment["PYTHONPATH"] = str(ROOT)
        self.is_started.clear()
        self.tap = subprocess.Popen(
            [*self._command, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.is_started.set()
        target = subprocess.Popen(
            self._target, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.tap.stdout is not None
        assert target.stdin is not None
        assert target.stdout is not None
        with self.tap.stdout, target.stdout:
            for number, line in enumerate(self.tap.stdout):
                if number == kill_after:
                    self.tap.kill()
                    break
                if line.endswith(b"\n"):  # half a line of a killed tap
                    target.stdin.write(line)
            target.stdin.close()
            states = target.stdout.read().splitlines()
        assert target.wait(60) == 0
        if states:
            state.write_bytes(states[-1])
        return self.tap.wait(60)

    def rows(self, stream: str, *keys: str) -> dict[Any, dict[str, Any]]:
        """Return the last row of each key."""
        found = map(json.loads, (self.folder / f"{stream}.jsonl").read_text().splitlines())
        return {tuple(row[key] for key in keys): row for row in found}
