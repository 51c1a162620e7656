"""The life of a service: what it refuses to begin with, what it picks up, and how it ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from balog.common.errors import BalogError, ConfigError
from balog.service.api.tokens import add_token, make_token
from balog.service.control import open_control
from balog.service.service import Service
from balog.service.settings import ServiceConfig
from tests.service.serving import Asked, serving

ORDER = {"cls_type": "order", "version": "1.0.0", "price": 1}


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"topics": "nowhere:"}, "$.topics"),
        ({"fallback": "local:same"}, "$.fallback"),
        ({"listen": "8080"}, "$.listen"),
        ({"listen": "unix:/tmp/x"}, "$.listen"),
        ({"listen": "192.0.2.1:0"}, "$.listen"),
        ({"tokens": "missing.json"}, "$.tokens"),
        ({"tls_key": "key.pem"}, "$.tls_cert"),
        ({"tls_cert": "no.pem", "tls_key": "no.pem"}, "$.tls_cert"),
    ],
)
def test_what_can_t_be_is_refused_before_anything_runs(options, path):
    with pytest.raises(ConfigError) as refused:
        Service(ServiceConfig(**{"topics": "local:same", "listen": ":0", **options}))

    assert refused.value.path == path


def test_a_registry_that_is_not_there_yet_is_reported(tmp_path: Path):
    said: list[str] = []
    for place in (tmp_path / "schmas", tmp_path):
        with Service(
            ServiceConfig(topics=f"local:{tmp_path / 't'}", listen=":0", registry=str(place)), say=said.append
        ):
            pass
    assert said == [f"registry: {tmp_path}/schmas: no such folder yet; balog's own types are the only ones"]


def test_it_does_not_begin_without_its_address_or_its_document(tmp_path: Path):
    (tmp_path / "control").write_text("no folder")
    with serving(tmp_path) as asked:
        taken = asked.service.url.removeprefix("http://")
        for options in ({"listen": taken}, {"listen": ":0", "control": str(tmp_path / "control")}):
            before = threading.active_count()
            with pytest.raises(BalogError):
                Service(ServiceConfig(topics=f"local:{tmp_path / 'other'}", **options)).start()
            assert threading.active_count() == before


def test_a_fallback_is_one_service_s_and_the_next_one_s_when_that_has_ended(tmp_path: Path):
    fallback = f"local:{tmp_path / 'fallback'}"
    other = ServiceConfig(topics=f"local:{tmp_path / 'other'}", fallback=fallback, listen=":0")
    with serving(tmp_path, fallback=fallback):
        with pytest.raises(BalogError, match="another running service"):
            Service(other).start()
    with Service(other):
        pass


def test_a_document_that_is_pushed_holds_without_a_restart(tmp_path: Path):
    with serving(tmp_path, control=str(tmp_path / "control")) as asked:
        asked.post(ORDER)
        control = open_control(str(tmp_path / "control"))
        entry = control.push(b'{"streams":[{"name":"sales","types":["order"]}]}', who="me", message="", base=0)
        control.close()
        asked.service.applier.await_version(entry.number)
        asked.post(ORDER)

        assert [stream.name for stream in asked.service.document.streams] == ["sales"]
        assert (len(asked.stored("order")), len(asked.stored("sales"))) == (1, 1)
        assert asked.ask("GET", "/v1/status").json()["document"]["number"] == entry.number


def test_what_a_program_logs_is_in_its_topic_when_the_program_has_ended(tmp_path: Path):
    sender, entry = make_token("app", ("send",), ("log",))
    add_token(tmp_path / "tokens.json", entry)
    code = """
import balog, sys
balog.configure(application="app", output=sys.argv[1])
log = balog.get_logger("app.main")
for number in range(300):
    log.info("hello", number=number)
"""
    with serving(tmp_path, tokens=str(tmp_path / "tokens.json")) as asked:
        output = f"{asked.service.url}?token_env=SENDER&spool={tmp_path / 'spool'}"
        subprocess.run(
            [sys.executable, "-c", code, output], env={**os.environ, "SENDER": sender}, check=True, timeout=60
        )

        events = asked.stored("log")
    assert [event.payload["fields"]["number"] for event in events] == list(range(300))
    assert {(event.header.channel, event.payload["message"]) for event in events} == {("app.main", "hello")}


def test_it_can_be_stopped_twice_and_leaves_no_thread(tmp_path: Path):
    before = set(threading.enumerate())
    service = Service(ServiceConfig(topics=f"local:{tmp_path}", listen=":0"))
    with service:
        asked = Asked(service)
        asked.post(ORDER)
        asked.ask("GET", "/v1/status")
        asked.http.clear()
        service.stop()
    for thread in set(threading.enumerate()) - before:  # executor threads that were told to end and are about to
        thread.join(30)
    assert set(threading.enumerate()) <= before


def test_a_second_signal_ends_it_at_once(tmp_path: Path):
    code = f"""
from balog.service.service import Service
from balog.service.settings import ServiceConfig
service = Service(ServiceConfig(topics="local:{tmp_path}", listen=":0"))
async def never(deadline):
    import asyncio
    print("stopping", flush=True)
    await asyncio.sleep(3600)
service.intake.stop = never
service.run(lambda: print("ready", flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        try:
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 128 + signal.SIGTERM
        finally:
            process.kill()
