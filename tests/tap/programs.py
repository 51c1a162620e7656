"""Taps run as programs in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from balog.tap import Tap


class Ran:
    """A run of a tap's command line: its exit code, and what it wrote."""

    def __init__(self, capture: Any, tap: Tap, *arguments: str) -> None:
        with pytest.raises(SystemExit) as exit:
            tap.run(arguments)
        self.code = exit.value.code
        self.out, self.err = capture.readouterr()
        self.lines = self.err.splitlines()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    @property
    def records(self) -> list[Any]:
        return [message["record"] for message in self.of("RECORD")]
