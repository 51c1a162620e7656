"""``balog consumers list`` shows what listens to what, and warns of what can never come."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from balog.consumers import Consumer, ConsumerOperator
from balog.consumers.running.listing import describe, unmet_version
from balog.event import FACILITY_VERSION

ADVICE = (
    f"is a condition on the facility layer, which is at {FACILITY_VERSION}; leave it out, "
    "or use payload_version for the version of the payload"
)

HANDLERS = """
from balog.consumers import consumer_config

@consumer_config("{env}-orders", ("order", "refund"), version=">=0.1", payload_version=">=1,<3", channel="tap_*",
                 level="WARNING", where="payload.rows > 3", batch=(100, 2), retries=0, backoff=(1, 30), timeout=10,
                 concurrency=4, ordered_by="payload.customer")
async def busy(settings, event): ...

@consumer_config("logs")
def plain(settings, event): ...
"""


async def handler(settings: object, event: object) -> None: ...


class Own(Consumer):
    def match_event(self, event: object) -> bool:
        return True


Call = Callable[..., "subprocess.CompletedProcess[str]"]


class TestDescribe:
    def test_all_that_was_said_is_in_lines_for_people(self) -> None:
        listed = describe(
            Consumer(
                handler,
                "{env}-t",
                ("b", "a"),
                (">=1", "<2"),
                "n",
                payload_version="<3",
                channel=("x*", "y"),
                level="warn",
                where="payload.n > 1",
                batch=10,
                retries=0,
                backoff=2,
                timeout=0.5,
                concurrency=3,
                ordered_by="payload.k",
            ),
            ConsumerOperator({"env": "dev"}),
        )
        assert (listed.consumer, listed.topic) == ("n", "dev-t")
        assert listed.wants == [
            "a, b",
            "facility >=1, <2",
            "payload version <3",
            "channel x* or y",
            "level WARNING and above",
            "where payload.n > 1",
        ]
        assert listed.handling == [
            "async",
            "batches of 10, or after 1 s",
            "in order by payload.k",
            "3 at once",
            "0 retries",
            "backoff 2 to 60 s",
            "timeout 0.5 s",
        ]

    def test_who_asks_for_nothing_wants_everything(self) -> None:
        listed = describe(Consumer(print, "t", name="n"), ConsumerOperator())
        assert (listed.wants, listed.handling) == (["everything"], [])

    def test_a_subclass_that_matches_in_its_own_way_says_so(self) -> None:
        assert describe(Own(print, "t", "a"), ConsumerOperator()).wants == ["a", "by its own match_event"]

    def test_a_topic_that_cannot_be_filled_in_stays(self) -> None:
        assert describe(Consumer(print, "{env}-t"), ConsumerOperator()).topic == "{env}-t"


@pytest.mark.parametrize(
    ("version", "is_met"),
    [(None, True), (">=0.0.1", True), ("<1.0", True), (">=1", False), (">=2", False), ((">=0.5", "<1"), False)],
)
def test_a_version_that_no_event_of_this_release_meets_is_said(version: object, is_met: bool) -> None:
    wanted = " and ".join(version) if isinstance(version, tuple) else version
    line = f"consumer n gets no event that this release writes: its version {wanted} {ADVICE}"
    assert unmet_version(Consumer(print, "t", name="n", version=version)) == (None if is_met else line)


@pytest.fixture
def team(tmp_path: Path) -> Path:
    package = tmp_path / "team"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "handlers.py").write_text(HANDLERS)
    return tmp_path


class TestCommand:
    def test_each_consumer_is_a_line_where_no_terminal_is(self, team: Path, call: Call) -> None:
        done = call("consumers", "list", "team", "--set", "env=dev")
        assert (done.returncode, done.stderr) == (0, "")
        busy, plain = done.stdout.splitlines()
        assert re.match(
            r"team\.handlers\.busy +dev-orders  order, refund; facility >=0\.1; payload version >=1,<3;", busy
        )
        assert re.fullmatch(r"team\.handlers\.plain +logs +everything", plain)

    @pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
    def test_a_condition_that_is_never_met_is_a_warning(
        self, team: Path, call: Call, strict: tuple[str, ...], code: int
    ) -> None:
        (team / "team" / "handlers.py").write_text(HANDLERS.replace('">=0.1"', '">=7"'))
        done = call("consumers", "list", "team", *strict)
        assert done.returncode == code
        assert len(done.stdout.splitlines()) == 2
        assert "consumer team.handlers.busy gets no event that this release writes: its version >=7" in done.stderr

    def test_a_module_that_cannot_be_imported_is_named(self, team: Path, call: Call) -> None:
        (team / "team" / "broken.py").write_text("import no_such_thing")
        done = call("consumers", "list", "team")
        assert done.returncode == 1
        assert "can't import team.broken: ModuleNotFoundError" in done.stderr

    @pytest.mark.parametrize("arguments", [("no_such_package",), ("team", "--set", "env")])
    def test_wrong_use_is_2(self, team: Path, call: Call, arguments: tuple[str, ...]) -> None:
        done = call("consumers", "list", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("balog consumers: ")
