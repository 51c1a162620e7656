"""Programs of the pages on where balog runs: their files in a folder, the events that they leave in its outputs."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from balog.event import Event, decode
from balog.topics import open_topics
from tests.documentation import docs_page
from tests.programs import environment_without, run_program

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```\w+ (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def write_page_files(page: str, folder: Path, *names: str) -> None:
    """Write the named blocks of a page of docs/ into files, and fail if one is missing."""
    blocks = {found["name"]: found["text"] for found in _BLOCK.finditer(docs_page(page).read_text("utf-8"))}
    for name in names:
        (folder / name).write_text(blocks[name], encoding="utf-8")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment whose outputs are a file and a topic at once.

    Events for the topic wait in their queue for a minute, so that only a delivery at an end can be in time.
    """
    topic = {"type": "topic", "url": f"local:{folder}/topics", "topic": "events", "batch": {"age": 60}}
    outputs = [{"to": topic}, f"file:{folder}/events.jsonl"]
    (folder / "logger.json").write_text(json.dumps({"output": outputs}), encoding="utf-8")
    own = environment_without("BALOG_")
    return {
        **own,
        "BALOG_CONFIG": str(folder / "logger.json"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), own["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        **more,
    }


def run_in(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and expect success."""
    return run_program(*command, cwd=folder, env=environment(folder, **more))


@contextmanager
def running(folder: Path, *command: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server whose output goes to the file ``server.log``; kill what is left of it at the end."""
    with (folder / "server.log").open("ab") as output:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder, **more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        if server.poll() is None:
            os.killpg(server.pid, 9)
            server.wait()


def topic_events(folder: Path) -> list[Event]:
    """Return the events that a new group receives from the topic, in order."""
    topics = open_topics(f"local:{folder}/topics")
    try:
        found: list[Event] = []
        while batch := topics.topic("events").receive("test", 1000):
            found += [decode(message.body) for message in batch]
            topics.topic("events").ack("test", batch)
        return found
    finally:
        topics.close()


def file_events(folder: Path) -> list[Event]:
    path = folder / "events.jsonl"
    return [decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def logged(folder: Path) -> list[Event]:
    """Return the events in the file, after a check that the topic holds the same events, each once."""
    events = file_events(folder)
    ids = [event.header.id for event in events]
    assert len(set(ids)) == len(ids)
    assert sorted(event.header.id for event in topic_events(folder)) == sorted(ids)
    return events


def on_channel(events: list[Event], channel: str) -> list[Event]:
    return [event for event in events if event.header.channel == channel]


def contexts(events: list[Event], key: str) -> list[Any]:
    return [event.header.context.get(key) for event in events]


def get(port: int, path: str) -> tuple[int, str, str]:
    """Return the status, the text and the request id of an answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.status, json.dumps(answer.read().decode()), answer.headers["X-Request-ID"]


def is_up(port: int) -> bool:
    """Return whether the server answers, also an application without ``/health``. The pages skip that path."""
    try:
        get(port, "/health")
    except urllib.error.HTTPError as error:
        return error.code == 404
    except OSError:
        return False
    return True
