"""The receiver of the page on callbacks receives what is signed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from balog.common.secrets import Secret
from tests.documentation import blocks, page_text
from tests.stand_ins.callbacks import KEYS, House
from tests.waiting import wait_for

BLOCKS = {block.name: block.text for block in blocks(page_text("receive-callbacks"))}


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
