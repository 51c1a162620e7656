"""A watcher as a process of its own, over pipelines whose runs are late."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from balog.event import encode
from balog.topics import Message, open_topics
from tests.watch.events import START, run

MONITORS = """
monitors:
  - name: late
    freshness: {every: 1h}
"""


class WatcherProcess:
    """``balog watch`` over a topic in which ``tap-a`` and ``tap-b`` succeeded three hours ago, and are due each hour.

    Args:
        folder: for the topic, the state and the configs.
        sinks: the config of the sinks.
        environment: more variables.
    """

    def __init__(self, folder: Path, sinks: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> None:
        url = f"local:{folder}/topics"
        (folder / "sinks.json").write_text(json.dumps(sinks))
        (folder / "monitors.yaml").write_text(MONITORS)
        hours_ago = (datetime.now(timezone.utc) - START) / timedelta(hours=1) - 3
        with open_topics(url) as topics:
            made = [run(hours_ago, pipeline=name) for name in ("tap-a", "tap-b")]
            topics.topic("events").publish([Message(one.header.id, encode(one)) for one in made])
        self._command = [
            sys.executable, "-m", "balog", "watch", str(folder / "monitors.yaml"), "--topics", url, "--topic", "events",
            "--sinks", str(folder / "sinks.json"), "--state", str(folder / "w.sqlite"), "--lease", "1",
        ]  # fmt: skip
        self._environment = {**os.environ, **(environment or {})}

    def kill_when(self, found: Callable[[Any], object]) -> None:
        """Start it, and kill it when ``found``, called with its stdout, has returned."""
        quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(self._command, env=self._environment, **quiet) as watcher:
            try:
                found(watcher.stdout)
                assert watcher.poll() is None, "the watcher had ended by itself"
            finally:
                os.kill(watcher.pid, signal.SIGKILL)

    def run_until_empty(self) -> None:
        """Let it handle what is there, and end by itself."""
        command = [*self._command, "--until-empty"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
