"""An endpoint that answered 410 is asked nothing more: over restarts, until its config changes or somebody says so."""

import json

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.delivery.document import Callback
from balog.delivery.jobs.callbacks import switch
from balog.delivery.jobs.callbacks.switch import Disabled, DisabledCallbacks, digest, place_of
from tests.stand_ins.callbacks import wait_for
from tests.stand_ins.http_server import Answer


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(switch, "CHECK_WHEN_OFF", 0.05)


@pytest.fixture
def command(house, tmp_path):
    config = tmp_path / "service.json"
    config.write_text(json.dumps({"topics": house.url}))

    def run(*arguments):
        return CliRunner().invoke(main, ["callbacks", *arguments, "--config", str(config)])

    return run


def disable(house, receiver, **options):
    receiver.will(Answer(410))
    job = house.start(receiver.url, concurrency=1, **options)
    wait_for(lambda: job.status().state == "disabled")
    wait_for(lambda: house.group().in_flight == 0)
    return job


def test_nothing_more_is_posted_and_its_events_wait(house, receiver):
    house.numbered(20)
    job = disable(house, receiver)
    assert len(receiver.requests) == 1
    assert (house.group().pending, house.dead()) == (20, [])
    reason = f"{receiver.url[7:]} answered 410, so it is disabled; see to it, then: balog callbacks enable partner"
    assert job.status().error == reason
    assert house.said == [f"callback partner: {reason}"]


def test_it_stays_so_over_a_restart(house, receiver):
    house.numbered(1)
    disable(house, receiver).stop(5)
    again = house.start(receiver.url, concurrency=1)
    wait_for(lambda: again.status().state == "disabled")
    assert "answered 410" in again.status().error
    again.stop(5)
    assert len(receiver.requests) == 1


def test_a_changed_config_enables_it(house, receiver):
    ids = house.numbered(5)
    disable(house, receiver).stop(5)
    job = house.start(receiver.url, concurrency=1, timeout=3.0)
    wait_for(lambda: job.status().done == 5)
    assert [request.headers["webhook-id"] for request in receiver.requests[1:]] == ids


def test_the_command_enables_it_while_it_runs(house, receiver, command):
    house.numbered(5)
    job = disable(house, receiver)
    listed = command("disabled").stdout
    assert listed.startswith("partner\t")
    assert listed.endswith(" answered 410\n")
    assert json.loads(command("disabled", "--json").stdout)["name"] == "partner"
    assert command("enable", "partner").exit_code == 0
    wait_for(lambda: job.status().done == 5)
    assert job.status().state == "running"
    assert "callback partner: is enabled again" in house.said
    assert command("disabled").stdout == ""


def test_one_that_is_not_disabled_is_told(command):
    result = command("enable", "nobody")
    assert (result.exit_code, result.stderr) == (1, "balog callbacks: nobody is not disabled\n")


def test_where_no_service_ran_yet_none_is_disabled(command):
    result = command("disabled")
    assert (result.exit_code, result.output) == (0, "")


def test_another_service_hears_of_it(house, receiver, monkeypatch):
    monkeypatch.setattr(switch, "CHECK_WHEN_ON", 0.05)
    waits = house.start(receiver.url, concurrency=1)
    known = DisabledCallbacks(place_of(None, house.url))
    known.put(Disabled("partner", digest(waits._config), 0.0, "somebody answered 410"))
    known.close()
    wait_for(lambda: waits.status().state == "disabled")
    house.numbered(1)
    assert receiver.requests == []


def test_a_place_that_is_in_the_way_is_told_and_it_is_off_even_so(house, receiver, tmp_path):
    """Given a file where the folder should be, then it is off, and kept as soon as the file is gone."""
    house.numbered(1)
    (tmp_path / "topics" / ".callbacks").write_text("")
    job = disable(house, receiver)
    wait_for(lambda: any("is not kept yet" in line for line in house.said))
    (tmp_path / "topics" / ".callbacks").unlink()
    wait_for((tmp_path / "topics" / ".callbacks" / "callback-partner.json").exists)
    assert job.status().state == "disabled"


def test_half_a_file_is_nobody_s(tmp_path):
    (tmp_path / "callback-partner.json").write_bytes(b'{"name": "par')
    known = DisabledCallbacks(str(tmp_path))
    assert (known.get("partner"), known.all()) == (None, [])
    known.close()


def test_a_name_that_would_be_a_hidden_file_is_listed(tmp_path):
    known = DisabledCallbacks(str(tmp_path))
    known.put(Disabled("_partner", "x", 0.0, "gone"))
    assert [one.name for one in known.all()] == ["_partner"]
    assert (known.remove("_partner"), known.remove("_partner"), known.all()) == (True, False, [])
    known.close()


def test_a_digest_has_no_secret_in_it_and_every_change_in_it():
    def of(**options):
        return digest(Callback(**{"name": "a", "source": "b", "url": "https://example.com/", **options}))

    assert len({of(), of(timeout=3.0), of(url="https://example.com/2"), of(disabled=True)}) == 4
    assert of() == of()


@pytest.mark.parametrize(
    ("control", "home", "place"),
    [
        ("s3://bucket/control/", "kafka:localhost:9092", "s3://bucket/control/callbacks"),
        (None, "local:/var/topics", "/var/topics/.callbacks"),
    ],
)
def test_it_is_kept_beside_what_the_service_keeps(control, home, place):
    assert place_of(control, home) == place


def test_else_in_the_user_s_own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    places = {place_of(None, home) for home in ("kafka:a:9092", "kafka:b:9092")}
    assert len(places) == 2
    assert all(place.startswith(f"{tmp_path}/balog/callbacks/") for place in places)
