"""``balog watch status``: the active alerts and silences of a watcher's state."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.watcher import Watcher
from tests.watch.events import monitor, run
from tests.watch.test_evaluation import silence
from tests.watch.test_watcher import Clock, Target


def status(*words: str) -> Any:
    return CliRunner().invoke(main, ["watch", "status", *words])


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The state of a watcher that runs: one pipeline is late, one is late and silenced, one is well."""
    path = tmp_path / "w.sqlite"
    with closing(SqliteWatchStore(path)) as store:
        store.claim()
        late = monitor(pipeline="tap-*", freshness={"every": "1h"})
        watcher = Watcher([late], store, {"": Target()}, Clock(4))
        events = [run(0, "tap-a"), run(0.5, "tap-\x1bb"), silence(1, '*"tap-a"*', 9), run(2.9, "tap-c")]
        watcher.handle(events)
        watcher.tick()
        watcher.handle([run(4, "tap-c")])
        yield path


def test_the_series_that_are_not_well_and_the_silences_are_listed(state: Path) -> None:
    done = status("--state", str(state))
    assert done.exit_code == 0, done.output
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["state", "severity", "since", "series", "reason"]
    assert [row.split()[0] for row in rows] == ["silenced", "firing", "silence", '*"tap-a"*']
    assert "2026-11-23 07:30:00Z" in rows[1]
    assert "\x1b" not in done.stdout
    assert "balog watch status: 2 of 3 series not well, 1 silence; the clock is at 2026-11-23 10:00:00Z" in done.stderr


def test_a_state_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = status("--state", str(tmp_path / "w.sqlite"))
    assert (done.exit_code, "there is no such file" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
