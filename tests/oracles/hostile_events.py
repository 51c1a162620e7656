"""Generates hostile archives for the report: several applications sharing streams, copies, late events, odd names."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

NOON = datetime(2026, 3, 9, 12, tzinfo=timezone.utc)
STREAMS = ["customers", "Customers", "ställen", "日志", "a'b\"c", "{x}", "x" * 1200]
APPLICATIONS = ["tap-a", "tap-b", "target", "Tap-A", "é", "e\u0301"]
MESSAGES = ["connection lost", "it's refused", "Connection lost", "ünable", "日志"]
HOW = ["counter", "endpoint", "report", "both", "neither"]
"""How an application counts a stream: a counter with the tag stream or endpoint, its runs' reports, or both."""


class HostileArchive:
    """The documents of runs over four days, in no order.

    Args:
        chance: decides everything.
        runs: how many.
    """

    def __init__(self, chance: random.Random, runs: int = 40) -> None:
        self.chance = chance
        self.documents: list[dict[str, Any]] = []
        how = [self._how() for _ in range(3)]  # of some applications, so that each stream has several kinds
        for number in range(runs):
            self._run(f"run {number}" if number % 7 else f"läuft-{number}'", how)
        for _ in range(runs):  # events of no run
            self._add(self._moment(), None, chance.choice([*APPLICATIONS, None]), self._log())

    def write(self, folder: Path, files: int = 3, *, edited: bool = True) -> None:
        """Write files of lines, with invalid lines and copies of events, also ``edited`` ones with later times."""
        chance = self.chance
        lines = [self._line(document) for document in self.documents]
        for document in chance.sample(self.documents, len(self.documents) // 20):
            lines.append(self._line(document))
            header = document["header"]
            later = datetime.fromisoformat(header["timestamp"]) + timedelta(hours=chance.choice([0.001, 1, 30]))
            other = {**header, "timestamp": later.isoformat(), "level": "ERROR", "channel": "copy"}
            if edited:
                lines.append(
                    self._line({**document, "header": other, "payload": {"cls_type": "log", "message": "copy"}})
                )
        lines += ["{broken", "[]", "7", '{"schema": "0.1.0"}', '{"schema": "3.0.0", "header": {}, "payload": {}}']
        chance.shuffle(lines)
        for number in range(files):
            (folder / f"{number}.jsonl").write_text("\n".join(lines[number::files]) + "\n", encoding="utf-8")

    def _line(self, document: dict[str, Any]) -> str:
        spaced = self.chance.random() < 0.5
        return json.dumps(document, ensure_ascii=self.chance.random() < 0.5, separators=None if spaced else (",", ":"))

    def _how(self) -> dict[str, str]:
        return {stream: self.chance.choice(HOW) for stream in STREAMS}

    def _moment(self) -> datetime:
        chance = self.chance
        if chance.random() < 0.15:  # about a midnight
            return NOON + timedelta(hours=12 + 24 * chance.randint(-2, 1), microseconds=chance.choice([-1, 0, 1]))
        return NOON + timedelta(seconds=chance.uniform(-2, 2) * 86_400)

    def _add(
        self, at: datetime, run: str | None, application: str | None, payload: dict[str, Any], **header: Any
    ) -> None:
        context = {"run_id": run, "application": application, "environment": "é"}
        shown = at.astimezone(timezone(timedelta(minutes=self.chance.choice([0, 0, 330, -480]))))
        self.documents.append(
            {
                "schema": "0.1.0",
                "header": {
                    "id": f"LG{len(self.documents):022d}",
                    "channel": self.chance.choice(["a.log", "A.log", "é.metric", "a"]),
                    "timestamp": shown.isoformat(),
                    "level": "INFO",
                    "context": {name: value for name, value in context.items() if value is not None},
                    **header,
                },
                "payload": payload,
            }
        )

    def _log(self) -> dict[str, Any]:
        payload = {"cls_type": "log", "message": self.chance.choice(MESSAGES)}
        if self.chance.random() < 0.2:
            payload["exception"] = {"type": self.chance.choice(["KeyError", "Größe"]), "message": "why"}  # type: ignore[assignment]
        return payload if self.chance.random() < 0.95 else {"note": "no type"}

    def _metric(self, kind: str, name: str, value: Any, **tags: Any) -> dict[str, Any]:
        payload = {"cls_type": "metric", "type": kind, "metric": name, "value": value}
        return payload if not tags else {**payload, "tags": tags}

    def _run(self, run: str, how: list[dict[str, str]]) -> None:
        chance, begun = self.chance, self._moment()
        lasts = timedelta(seconds=chance.choice([0, 5, 4000, 30_000]) + chance.random())
        for place, application in enumerate(chance.sample([*APPLICATIONS, None], chance.randint(1, 3))):

            def within() -> datetime:
                return begun + lasts * chance.random()

            ways = how[(place + len(application or "")) % len(how)]
            streams = chance.sample(STREAMS, chance.randint(1, 4))
            self._add(begun, run, application, {"cls_type": "log", "message": "begun"})
            for stream in streams:
                self._stream(within, run, application, stream, ways[stream])
            for _ in range(chance.randrange(4)):
                level = chance.choice(["WARNING", "ERROR", "CRITICAL"])
                self._add(within(), run, application, self._log(), level=level)
            if chance.random() < 0.4:
                for _ in range(2):
                    self._pipe(within(), run, application)
            reported = [stream for stream in streams if ways[stream] in ("report", "both")]
            for _ in range(chance.choice([0, 1, 1, 1, 2])):
                self._add(begun + lasts * chance.choice([0.5, 1]), run, application, self._report(lasts, reported))

    def _stream(self, within: Any, run: str, application: str | None, stream: str, way: str) -> None:
        chance = self.chance
        for _ in range(chance.randint(1, 3)):
            if way in ("counter", "both"):
                value = chance.choice([0, 3, 100, 2.5, "7", None, "nan", True, {"a": 1}])
                self._add(within(), run, application, self._metric("counter", "record_count", value, stream=stream))
            if way == "endpoint":
                self._add(within(), run, application, self._metric("counter", "record_count", 11, endpoint=stream))
            if chance.random() < 0.5:
                timer = chance.choice(["sync_duration", "batch_processing_time"])
                value = chance.choice([0, 0.25, 4, 31.5])
                self._add(within(), run, application, self._metric("timer", timer, value, stream=stream))
            if chance.random() < 0.5:
                status = chance.choice([{"http_status_code": 200}, {"status": "500"}, {}])
                where = chance.choice([{"endpoint": stream}, {"endpoint": "/é", "stream": stream}, {}])
                value = chance.randrange(400) / 8
                timed = self._metric("timer", "http_request_duration", value, **status, **where)
                self._add(within(), run, application, timed)
        self._add(within(), run, application, self._metric("gauge", "record_count", 5, stream=stream))
        self._add(within(), run, application, {"cls_type": "metrics", "values": [{"name": "özel", "value": 2}, 5]})

    def _pipe(self, at: datetime, run: str, application: str | None) -> None:
        for name in ("pipe_read_wait_seconds", "pipe_write_wait_seconds", "pipe_bytes"):
            value = self.chance.randrange(99) / 4
            stage = self.chance.choice(["vor", "nach é"])
            self._add(at, run, application, self._metric("counter", name, value, stage=stage))

    def _report(self, lasts: timedelta, streams: list[str]) -> dict[str, Any]:
        chance = self.chance
        whole = {
            "cls_type": "run",
            "command": "tap",
            "outcome": chance.choice(["succeeded", "succeeded", "failed"]),
            "duration": chance.choice([lasts.total_seconds(), 0, -3, "nan", 1e300, lasts.total_seconds() + 90]),
            "exit_code": chance.choice([0, 1, 3]),
            "records": chance.choice([17, 2**62, 0]),
            "bytes": chance.choice([2**53 + 1, 400]),
            "streams": [
                {
                    name: value
                    for name, value in (("stream", stream), ("records", chance.choice([9, 2**53 + 1])), ("bytes", 70))
                    if name == "stream" or chance.random() < 0.8
                }
                for stream in [*streams, *streams[:1]]
            ],
        }
        return {name: value for name, value in whole.items() if name == "cls_type" or chance.random() < 0.85}
