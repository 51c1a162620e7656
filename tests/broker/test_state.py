import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker import outbox as outbox_module
from balog.broker import state as state_module
from balog.broker.state import StateConfig, StateKeeper, read_value
from balog.common.errors import ConfigError
from balog.common.storage import StorageError
from balog.common.storage.local import LocalStorage
from tests.waiting import wait_for


def line(number):
    return b'{"type": "STATE", "value": {"bookmarks": {"users": {"id": %d}}}}\n' % number


def value(number):
    return b'{"bookmarks": {"users": {"id": %d}}}\n' % number


class World:
    """What stands around a keeper: events that are handed over and become safe, and what is said."""

    def __init__(self):
        self.position = self.durable = 0
        self.said = []

    def keeper(self, **config):
        return StateKeeper(
            StateConfig(**config), self.said.append, position=lambda: self.position, durable=lambda: self.durable
        )


@pytest.fixture
def world():
    return World()


def passed(keeper, number):
    """Give what goes on for a STATE, at once and in the keeper's own words."""
    given = keeper.edit("STATE", line(number))
    return [line(number)] if given is None else [text for _, text in given]


class TestStore:
    def test_the_last_state_that_went_on_is_stored(self, tmp_path, world):
        keeper = world.keeper(store=str(tmp_path / "new" / "state.json"))
        assert [passed(keeper, number) for number in range(3)] == [[line(0)], [line(1)], [line(2)]]
        keeper.due()
        keeper.end()
        keeper.close(went_on=True)

        assert (tmp_path / "new" / "state.json").read_bytes() == value(2)
        assert world.said == []

    def test_nothing_is_stored_before_it_went_on(self, tmp_path, world):
        """Given a STATE that is still in the pipe, then it is stored only when the pipe asks for what is due next."""
        keeper = world.keeper(store=str(tmp_path / "state.json"), every=0)
        keeper.edit("STATE", line(1))
        assert keeper._given == [line(1)]
        assert keeper._store._thread is None
        keeper.due()
        wait_for((tmp_path / "state.json").exists)
        keeper.edit("STATE", line(2))
        keeper.close(went_on=False)

        assert (tmp_path / "state.json").read_bytes() == value(1)

    def test_without_a_state_the_old_one_stays(self, tmp_path, world):
        (tmp_path / "state.json").write_bytes(value(7))
        keeper = world.keeper(store=str(tmp_path / "state.json"))
        keeper.end()
        keeper.close(went_on=True)

        assert (tmp_path / "state.json").read_bytes() == value(7)

    def test_writes_come_no_closer_than_asked(self, tmp_path, world, monkeypatch):
        written = []
        monkeypatch.setattr(LocalStorage, "write", lambda self, data, name="": written.append(data))
        keeper = world.keeper(store=str(tmp_path / "state.json"), every=3600)
        for number in range(100):
            keeper.edit("STATE", line(number))
            keeper.due()
            wait_for(lambda: written)
        keeper.close(went_on=True)

        assert written[-1] == value(99)
        assert len(written) == 2

    @pytest.mark.parametrize(
        "text",
        [
            b'{"type": "STATE"}\n',
            b'{"type": "STATE", "value": null}\n',
            b'{"type": "STATE", "value": {"a": "\xff"}}\n',
            b'{"type": "STATE", "value": {"a": 1}\n',
            b'{"type": "STATE", "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        ],
    )
    def test_a_state_that_cannot_be_read_passes_and_replaces_nothing(self, tmp_path, world, text):
        keeper = world.keeper(store=str(tmp_path / "state.json"))
        keeper.edit("STATE", line(1))
        assert keeper.edit("STATE", text) is None
        keeper.close(went_on=True)

        assert (tmp_path / "state.json").read_bytes() == value(1)
        assert len(world.said) == 1
        assert "1 STATE" in world.said[0]

    def test_trouble_is_said_once_and_the_last_state_stored_when_it_is_over(self, tmp_path, world, monkeypatch):
        write = LocalStorage.write
        broken = threading.Event()
        tries = []

        def refuse(storage, data, name=""):
            tries.append(data)
            if broken.is_set():
                raise StorageError(f"{storage.url}: No space left on device")
            write(storage, data, name)

        monkeypatch.setattr(outbox_module, "_RETRY_SECONDS", 0.01)
        monkeypatch.setattr(LocalStorage, "write", refuse)
        broken.set()
        keeper = world.keeper(store=str(tmp_path / "state.json"), every=0)
        for number in range(3):
            keeper.edit("STATE", line(number))
            keeper.due()
        wait_for(lambda: len(tries) > 3)
        broken.clear()
        keeper.close(went_on=True)

        assert (tmp_path / "state.json").read_bytes() == value(2)
        assert len(world.said) == 2
        assert "No space left on device; trying again" in world.said[0]
        assert "written again" in world.said[1]

    def test_a_store_that_stays_broken_is_said_at_the_end(self, tmp_path, world, monkeypatch):
        (tmp_path / "file").write_text("")
        keeper = world.keeper(store=str(tmp_path / "file" / "state.json"))
        keeper.edit("STATE", line(1))
        keeper.close(went_on=True)

        assert f"the last STATE was not written: {tmp_path / 'file'}: File exists" in world.said[-1]

    def test_a_store_that_hangs_holds_up_neither_the_stream_nor_the_end(self, tmp_path, world, monkeypatch):
        never = threading.Event()
        monkeypatch.setattr(LocalStorage, "write", lambda *_: never.wait(60))
        monkeypatch.setattr(state_module, "CLOSE_SECONDS", 0.2)
        keeper = world.keeper(store=str(tmp_path / "state.json"))
        for number in range(1000):
            assert passed(keeper, number) == [line(number)]
            assert keeper.due() == []
        keeper.close(went_on=True)
        never.set()

        assert len(world.said) == 1
        assert "the last STATE was not written: it took more than 0.2 seconds" in world.said[0]

    def test_a_broker_that_is_killed_while_it_writes_leaves_a_whole_state(self, tmp_path, world):
        path = tmp_path / "state.json"
        path.write_bytes(value(7))
        child = os.fork()
        if child == 0:
            os.rename = lambda *_: os._exit(0)
            keeper = world.keeper(store=str(path))
            keeper.edit("STATE", line(8))
            keeper.close(went_on=True)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

        assert path.read_bytes() == value(7)


class TestHold:
    def test_a_state_goes_on_once_the_events_before_it_are_safe(self, world):
        keeper = world.keeper(hold=True)
        assert passed(keeper, 0) == [line(0)]
        world.position = 5
        assert passed(keeper, 1) == []
        world.position = 9
        assert passed(keeper, 2) == []
        assert keeper.due() == []
        world.durable = 8
        assert keeper.due() == [("STATE", line(1))]
        assert passed(keeper, 3) == []  # not before the one that is held
        world.durable = 9
        assert keeper.due() == [("STATE", line(2)), ("STATE", line(3))]
        assert passed(keeper, 4) == [line(4)]
        assert keeper.end() == []
        assert world.said == []

    def test_at_the_end_what_is_not_safe_is_withheld_and_said(self, world):
        keeper = world.keeper(hold=True)
        for number in range(1, 4):
            world.position = number
            assert passed(keeper, number) == []
        world.durable = 1
        assert keeper.end() == [("STATE", line(1))]
        assert len(world.said) == 1
        assert world.said[0].startswith("2 STATE messages were withheld")
        assert keeper.end() == []

    def test_what_is_withheld_is_not_stored(self, tmp_path, world):
        keeper = world.keeper(hold=True, store=str(tmp_path / "state.json"))
        passed(keeper, 1)
        world.position = 1
        passed(keeper, 2)
        keeper.end()
        keeper.close(went_on=True)

        assert (tmp_path / "state.json").read_bytes() == value(1)

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_held_states_are_bounded_and_neither_the_first_nor_the_last_is_dropped(self, world, size):
        keeper = world.keeper(hold=True)
        given = [b'{"type": "STATE", "value": "%d%s"}\n' % (number, b"x" * size) for number in range(5000)]
        for number, text in enumerate(given, 1):
            world.position = number
            assert list(keeper.edit("STATE", text)) == []
            assert keeper._held_bytes <= state_module.MAX_HELD_BYTES
            assert len(keeper._held) <= state_module.MAX_HELD
        world.durable = 5000
        gone = [text for _, text in keeper.due()]

        assert gone[0] == given[0]
        assert gone[-1] == given[-1]
        assert gone == [text for text in given if text in set(gone)]

    def test_one_state_larger_than_the_bound_is_kept(self, world):
        keeper = world.keeper(hold=True)
        world.position = 1
        passed(keeper, 1)
        large = b'{"type": "STATE", "value": "%s"}\n' % (b"x" * state_module.MAX_HELD_BYTES)
        keeper.edit("STATE", large)
        world.durable = 1
        assert keeper.due() == [("STATE", large)]

    @given(
        st.lists(st.tuples(st.sampled_from(["event", "state", "safe", "due"]), st.integers(0, 3)), max_size=60),
    )
    def test_no_state_overtakes_its_events_or_another_state(self, steps):
        world = World()
        keeper = world.keeper(hold=True)
        sent, gone = [], []
        for step, count in steps:
            if step == "event":
                world.position += count
            elif step == "safe":
                world.durable = min(world.position, world.durable + count)
            else:
                before = len(gone)
                if step == "state":
                    sent.append((world.position, line(len(sent))))
                    given = keeper.edit(*("STATE", sent[-1][1]))
                    gone += [sent[-1][1]] if given is None else [text for _, text in given]
                else:
                    gone += [text for _, text in keeper.due()]
                for text in gone[before:]:
                    assert {text: position for position, text in sent}[text] <= world.durable
        gone += [text for _, text in keeper.end()]
        assert gone == [text for _, text in sent][: len(gone)]
        assert len(gone) == sum(position <= world.durable for position, _ in sent)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5), st.text())
def test_a_value_comes_out_byte_for_byte(value, key):
    text = json.dumps({key: value}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return
    assert read_value(b'{"type": "STATE", "value": %s }\n' % text) == text


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "nothing to do"),
        ({"hold": True, "options": {"a": 1}}, "for a store"),
        ({"store": ""}, "length"),
        ({"store": "x", "every": -1}, ">= 0"),
        ({"store": "x", "hodl": True}, "hodl"),
    ],
)
def test_a_config_that_cannot_be_is_refused(config, reason):
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.convert(config, StateConfig)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"store": "https://x/y"}, "$.state.store"),
        ({"store": "s3://b/x", "options": {"key": "hunter2"}}, "$.state.options.key"),
    ],
)
def test_what_cannot_be_stored_to_is_said_with_its_place(world, config, path):
    with pytest.raises(ConfigError) as caught:
        world.keeper(**config)
    assert caught.value.path == path
    assert "hunter2" not in str(caught.value)


BALOG = [sys.executable, "-m", "balog"]
RECORD = b'{"type": "RECORD", "stream": "users", "record": {"id": 1}}\n'


def log(number):
    return b'{"type": "LOG", "level": "INFO", "value": {"message": "%d"}}\n' % number


def carry(config, stream, folder):
    (folder / "broker.json").write_text(json.dumps(config))
    command = [*BALOG, "broker", "--config", folder / "broker.json"]
    return subprocess.run(command, input=stream, capture_output=True, timeout=120)


def test_the_command_stores_the_state_and_the_next_run_loads_it(tmp_path: Path):
    """Given a stream through ``balog broker``, then ``balog state load`` gives exactly the last STATE's value."""
    config = {"sinks": [], "state": {"store": str(tmp_path / "state.json")}}
    stream = b"".join([RECORD, line(1), RECORD, line(2), RECORD])
    done = carry(config, stream, tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == stream
    loaded = subprocess.run([*BALOG, "state", "load", tmp_path / "state.json"], capture_output=True)
    assert (loaded.returncode, loaded.stderr) == (0, b"")
    assert loaded.stdout == value(2)


def test_the_command_lets_held_states_go_on_in_order_once_events_are_safe(tmp_path: Path):
    config = {
        "sinks": [{"type": "topic", "url": f"local:{tmp_path / 'topics'}", "topic": "events"}],
        "state": {"hold": True, "store": str(tmp_path / "state.json")},
    }
    stream = b"".join(log(number) + RECORD + line(number) for number in range(50))
    done = carry(config, stream, tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.splitlines(keepends=True)
    assert [text for text in lines if b"STATE" in text] == [line(number) for number in range(50)]
    assert [text for text in lines if b"STATE" not in text] == [
        text for text in stream.splitlines(keepends=True) if b"STATE" not in text
    ]
    assert (tmp_path / "state.json").read_bytes() == value(49)


def test_the_command_withholds_a_state_whose_events_are_not_safe(tmp_path: Path):
    """Given a sink that is dead, then every RECORD goes on, and no STATE that comes after an event."""
    (tmp_path / "topics").write_text("a file where the folder should be")
    config = {
        "sinks": [{"type": "topic", "url": f"local:{tmp_path / 'topics'}", "topic": "events"}],
        "state": {"hold": True, "store": str(tmp_path / "state.json")},
        "drain": 0.5,
    }
    stream = line(0) + RECORD + log(1) + RECORD + line(1) + RECORD + line(2)
    done = carry(config, stream, tmp_path)

    assert done.returncode == 0
    assert done.stdout == line(0) + RECORD + log(1) + RECORD + RECORD
    assert b"2 STATE messages were withheld" in done.stderr
    assert (tmp_path / "state.json").read_bytes() == value(0)
