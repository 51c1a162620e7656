"""Lines of events, for tests that write files of them."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any


def event_line(
    identity: str, at: datetime, payload: dict[str, Any], *, channel: str = "c", level: str = "INFO", **context: str
) -> str:
    """Return the line of an event; ``context`` is its context."""
    header = {"id": identity, "channel": channel, "timestamp": at.isoformat(), "level": level, "context": context}
    return json.dumps({"schema": "0.1.0", "header": header, "payload": payload})


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
