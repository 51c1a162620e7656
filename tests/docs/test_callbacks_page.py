"""The page on callbacks: its document is one, its receiver receives, commands and numbers are those of the code."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from balog.common.secrets import Secret
from balog.service.control.validation import read_document
from balog.service.document import Callback
from balog.service.jobs.callbacks import breaker, consumer, endpoint, job
from tests.documentation import docs_page
from tests.stand_ins.callbacks import KEYS, House
from tests.waiting import wait_for

PAGE = docs_page("callbacks.md").read_text(encoding="utf-8")
RECEIVER = docs_page("receive-callbacks.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {name: text for _, name, text in FENCE.findall(PAGE + RECEIVER)}


def test_the_document_is_one() -> None:
    document, problems = read_document(BLOCKS["callbacks.json"].encode())
    assert problems == []
    assert document is not None
    assert [callback.name for callback in document.callbacks] == ["partner", "warehouse"]


def test_every_field_is_told() -> None:
    for field in Callback.__struct_fields__:
        assert f"`{field}`" in PAGE


def test_the_receiver_gets_what_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("standardwebhooks", reason="standardwebhooks is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PARTNER_KEY": KEYS[0], "PORT": str(port)}
    (tmp_path / "receiver.py").write_text(BLOCKS["receiver.py"])
    house = House(tmp_path / "topics")
    receiver = subprocess.Popen(
        [sys.executable, "receiver.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert receiver.stdout is not None
    with receiver:
        try:
            house.numbered(3)
            monkeypatch.setenv("PARTNER_KEY", KEYS[0])
            monkeypatch.setenv("ANOTHER_KEY", KEYS[1])
            url = f"http://127.0.0.1:{port}/"
            signed = house.start(url, secrets=(Secret(env="PARTNER_KEY"),))
            wait_for(lambda: signed.status().done == 3)
            forged = house.start(url, name="forged", secrets=(Secret(env="ANOTHER_KEY"),))
            wait_for(lambda: forged.status().failed >= 3)
            assert forged.status().error == f"127.0.0.1:{port} answered 401"
        finally:
            house.close()
            receiver.kill()
        assert len([line for line in receiver.stdout if line.startswith("got ")]) == 3


def test_its_numbers_are_the_code_s() -> None:
    assert f"reads files again every {endpoint.REREAD_SECONDS:g} seconds" in RECEIVER
    assert f"at most {endpoint._MAX_ANSWER >> 10} KiB are read" in PAGE
    assert f"the events in flight are posted again {job.LEASE:g} seconds later" in PAGE
    assert f"has {consumer.WINDOW} in flight for each concurrent request" in PAGE
    assert f"at most {consumer.MAX_WINDOW_BYTES >> 20} MiB" in PAGE
    assert (breaker.THRESHOLD, breaker.LONGEST, consumer.LEAST_ATTEMPTS) == (5, 60, 3)
    assert "fails five times in a row" in PAGE
    assert "has three attempts:" in PAGE
