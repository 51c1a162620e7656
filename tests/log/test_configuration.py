import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from balog import bound, configure, flush, get_logger
from balog.common.errors import ConfigError
from balog.event import decode
from balog.log import configuration
from balog.log.config.logger_config import LoggerConfig
from balog.log.outputs import LogOutput
from tests.stand_ins.programs import run_python


def messages(path: Path) -> list[str]:
    return [decode(line).payload["message"] for line in path.read_bytes().splitlines()] if path.exists() else []


def log_all(name: str = "a") -> None:
    for level in ("debug", "info", "error"):
        getattr(get_logger(name), level)(level)


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    code = "from balog import get_logger; log = get_logger('a'); log.debug('one'); log.info('two'); log.error('three')"
    return run_python(code, **environment)


class TestOutputs:
    def test_several_at_once_each_with_a_level_and_a_filter(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        configure(
            [
                "singer",
                {"to": f"file:{tmp_path}/all", "level": "DEBUG"},
                {"to": f"file:{tmp_path}/errors", "level": "error"},
                {"to": f"file:{tmp_path}/users", "where": "channel = 'users'"},
            ],
            level="INFO",
        )
        log_all("users")
        log_all("orders")

        assert len(capsys.readouterr().out.splitlines()) == 4
        assert messages(tmp_path / "all") == ["debug", "info", "error"] * 2
        assert messages(tmp_path / "errors") == ["error"] * 2
        assert messages(tmp_path / "users") == ["info", "error"]

    def test_a_sink_s_config_is_an_output(self, tmp_path: Path) -> None:
        from balog.topics import open_topics

        configure({"type": "topic", "url": f"local:{tmp_path}", "topic": "t"})
        get_logger("a").info("x")
        assert flush(20) == 0
        home = open_topics(f"local:{tmp_path}")
        received = home.topic("t").receive("g")
        home.close()

        assert [decode(message.body).header.channel for message in received] == ["a"]

    def test_configuring_twice_writes_each_event_once(self, tmp_path: Path) -> None:
        for _ in range(3):
            configure(f"file:{tmp_path}/a")
        log_all()

        assert messages(tmp_path / "a") == ["info", "error"]

    def test_a_path_may_be_named_twice(self, tmp_path: Path) -> None:
        configure([f"file:{tmp_path}/a", f"file:{tmp_path}/a"])
        log_all()

        assert messages(tmp_path / "a") == ["info", "info", "error", "error"]

    def test_none_at_all_writes_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure([])
        log_all()

        assert capsys.readouterr() == ("", "")


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"output": 42}, "configure(output=…): [0]: expected `str | object`, got `int`"),
            ({"output": ["stderr", "paper"]}, "configure(output=…): no output 'paper'; there are console, singer"),
            ({"output": {"to": "stderr", "levle": "INFO"}}, "configure(output=…): [0]: object contains unknown field"),
            ({"output": {"to": "stderr", "level": "loud"}}, "configure(output=…): no level 'loud'; there are DEBUG"),
            ({"output": {"type": "paper"}}, "configure(output=…): $.type: invalid value 'paper'"),
            ({"output": "file:a?x=1"}, "configure(output=…): output 'file:a': no option 'x'"),
            ({"level": 7}, "configure(level=…): expected `str | null`, got `int`"),
            ({"strict": "yes"}, "configure(strict=…): expected `bool`, got `str`"),
            ({"validate": "maybe"}, "configure(validate=…): invalid enum value 'maybe'"),
            ({"redact": {"keyz": []}}, "configure(redact=…): "),
            ({"processors": ["x"]}, "configure(processors=…): 'x' cannot be called"),
            ({"output": {"to": "stderr", "where": "channel ="}}, "configure(output=…): column 9: something is missing"),
        ],
    )
    def test_what_cannot_be_is_one_line_that_says_where(self, arguments: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError) as refused:
            configure(**arguments)
        assert str(refused.value).startswith(said)
        assert "\n" not in str(refused.value)

    def test_what_was_configured_before_stays(self, tmp_path: Path) -> None:
        configure(f"file:{tmp_path}/a")
        with pytest.raises(ConfigError):
            configure([f"file:{tmp_path}/b", "paper"])
        log_all()

        assert messages(tmp_path / "a") == ["info", "error"]
        assert not (tmp_path / "b").exists()


class TestFile:
    def write(self, path: Path, **settings: Any) -> Path:
        path.write_text(json.dumps(settings))
        return path

    def test_it_has_the_same_names(self, tmp_path: Path) -> None:
        config = self.write(
            tmp_path / "log.json",
            output=[{"to": f"file:{tmp_path}/a", "where": "level = 'ERROR'"}, f"file:{tmp_path}/b"],
            level="DEBUG",
            application="job",
            redact={"extra_keys": ["shoe_size"]},
            strict=True,
        )
        configure(config=config)
        log_all()
        get_logger("a").info("x", shoe_size=44)

        assert messages(tmp_path / "a") == ["error"]
        assert messages(tmp_path / "b") == ["debug", "info", "error", "x"]
        last = decode((tmp_path / "b").read_bytes().splitlines()[-1])
        assert last.payload["fields"] == {"shoe_size": "[redacted]"}
        assert last.header.context["application"] == "job"

    def test_what_is_given_wins_over_it_and_it_wins_over_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = self.write(tmp_path / "log.json", output=f"file:{tmp_path}/file", level="ERROR")
        monkeypatch.setenv("BALOG_OUTPUT", f"file:{tmp_path}/variable")
        monkeypatch.setenv("BALOG_LEVEL", "DEBUG")
        configure(config=config)
        log_all()
        configure(config=config, level="INFO")
        log_all()
        configure(config=config, output=f"file:{tmp_path}/given")
        log_all()
        configure()
        log_all()

        assert messages(tmp_path / "file") == ["error", "info", "error"]
        assert messages(tmp_path / "given") == ["error"]
        assert messages(tmp_path / "variable") == ["debug", "info", "error"]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"outputs": "stderr"}', "there is no field 'outputs'; did you mean 'output'?"),
            ('{"output": 5}', "$.output: expected"),
            ('{"output": "paper"}', "$.output: no output 'paper'; there are"),
            ('{"level": "loud"}', "$.level: no level 'loud'; there are"),
            ('{"level": ', "not JSON: "),
            ('{"redact": {"nope": 1}}', "log.json: $.redact: "),
            ('{"levels": {"a": "loud"}}', "log.json: $.levels: "),
            ('{"output": {"to": "stderr", "where": "channel ="}}', "log.json: $.output: "),
        ],
    )
    def test_what_is_wrong_in_it_is_one_line_with_its_name(self, tmp_path: Path, text: str, said: str) -> None:
        path = tmp_path / "log.json"
        path.write_text(text)
        with pytest.raises(ConfigError) as refused:
            configure(config=path)
        assert str(refused.value).startswith(str(path))
        assert said in str(refused.value)

    def test_a_file_that_is_not_there_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
            configure(config=tmp_path / "none.json")

    def test_lines_of_variables_are_a_config_too(self, tmp_path: Path) -> None:
        path = tmp_path / "log.env"
        path.write_text(f"# where\nexport BALOG_OUTPUT='file:{tmp_path}/a, file:{tmp_path}/b'\nBALOG_LEVEL=error\n")
        configure(config=path)
        log_all()

        assert messages(tmp_path / "a") == messages(tmp_path / "b") == ["error"]

    def test_an_env_file_may_name_the_run(self, tmp_path: Path) -> None:
        path = tmp_path / "log.env"
        path.write_text("BALOG_RUN_ID=r1\nBALOG_OUTPUT=stderr\n")

        (event,) = run(BALOG_CONFIG=str(path), BALOG_LEVEL="ERROR").stderr.splitlines()
        assert decode(event).header.context["run_id"] == "r1"


class TestEnvironment:
    def test_outputs_are_parted_by_commas(self, tmp_path: Path) -> None:
        done = run(BALOG_OUTPUT=f"singer, file:{tmp_path}/a ,stderr,")

        assert messages(tmp_path / "a") == ["two", "three"]
        assert len(done.stdout.splitlines()) == len(done.stderr.splitlines()) == 2

    def test_a_config_file_is_named_there(self, tmp_path: Path) -> None:
        (tmp_path / "log.json").write_text('{"output": "singer", "level": "DEBUG"}')

        assert len(run(BALOG_CONFIG=str(tmp_path / "log.json")).stdout.splitlines()) == 3

    def test_a_wrong_config_file_costs_one_line_and_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "log.json").write_text('{"output": "paper"}')
        done = run(BALOG_CONFIG=str(tmp_path / "log.json"), BALOG_LEVEL="ERROR")
        complaint, event = done.stderr.splitlines()

        assert complaint.startswith(f"balog: {tmp_path}/log.json: $.output: no output 'paper'; there are")
        assert complaint.endswith("; going on without it")
        assert decode(event).payload["message"] == "three"

    def test_each_wrong_variable_costs_one_line(self) -> None:
        done = run(BALOG_CONFIG="/nowhere.json", BALOG_LEVEL="loud", BALOG_OUTPUT="stderr,paper")
        *complaints, two, three = done.stderr.splitlines()

        assert len(complaints) == 3
        assert [decode(line).payload["message"] for line in (two, three)] == ["two", "three"]

    def test_secrets_are_taken_out_also_then(self) -> None:
        code = "from balog import get_logger; get_logger('a').info('x', password='s3cret')"
        done = run_python(code, BALOG_OUTPUT="paper")

        assert "[redacted]" in done.stderr
        assert "s3cret" not in done.stderr

    def test_a_library_may_log_before_anyone_configures(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BALOG_OUTPUT", f"file:{tmp_path}/before")
        log = get_logger("library")
        log.info("early")
        configure(f"file:{tmp_path}/after")
        log.info("late")

        assert messages(tmp_path / "before") == ["early"]
        assert messages(tmp_path / "after") == ["late"]


def test_lost_events_are_told_at_the_end() -> None:
    code = "from balog import get_logger; log = get_logger('a'); log.info('x'); log.info('y')"
    done = run_python(code, BALOG_OUTPUT="file:/dev/full")

    assert done.stderr.splitlines() == [
        "balog: output file:/dev/full: OSError: [Errno 28] No space left on device; rejected events are counted",
        "balog: output file:/dev/full: 2 events were lost",
    ]


def test_the_defaults_are_those_of_the_config_file() -> None:
    assert LoggerConfig().redact is True
    assert (LoggerConfig().validate, LoggerConfig().strict) == ("off", False)


def test_texts_that_are_known_to_be_secret_are_in_no_event(tmp_path: Path) -> None:
    configure(f"file:{tmp_path / 'a'}")
    with configuration.state.concealed(["open sesame", "abc"]):
        get_logger("a").info("one open sesame abc")
        configure(f"file:{tmp_path / 'b'}")
        get_logger("a").info("two open sesame")
    configure(f"file:{tmp_path / 'c'}")
    get_logger("a").info("three open sesame")
    flush()
    assert messages(tmp_path / "a") == ["one [redacted] abc"]
    assert messages(tmp_path / "b") == ["two [redacted]"]
    assert messages(tmp_path / "c") == ["three open sesame"]


def test_a_context_and_a_channel_encoded_earlier_hide_a_text_that_becomes_secret(tmp_path: Path) -> None:
    configure(f"file:{tmp_path / 'a'}")
    log = get_logger("sesame.sync").bind(door="open sesame")
    with bound(way="open sesame"):
        log.info("before")
        with configuration.state.concealed(["open sesame", "sesame.sync"]):
            log.info("inside")
    log.info("after")
    before, inside, after = (tmp_path / "a").read_text().splitlines()
    assert "sesame.sync" in before
    assert "sesame" not in inside
    assert "open sesame" in after


def test_a_secret_ends_with_its_block_also_when_blocks_overlap_and_the_logger_was_configured_inside(
    tmp_path: Path,
) -> None:
    configure(f"file:{tmp_path / 'a'}")
    first, second = configuration.state.concealed(["open sesame"]), configuration.state.concealed(["shut sesame"])
    first.__enter__()
    second.__enter__()
    configure([f"file:{tmp_path / 'b'}", f"file:{tmp_path / 'c'}"])
    first.__exit__(None, None, None)
    get_logger("a").info("open sesame, shut sesame")
    second.__exit__(None, None, None)
    get_logger("a").info("open sesame, shut sesame")
    for name in "bc":
        assert messages(tmp_path / name) == ["open sesame, [redacted]", "open sesame, shut sesame"]


class Failing(LogOutput):
    def write(self, level: str, event: bytes) -> None:
        raise OSError("no room")


def test_flush_counts_what_earlier_configurations_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(configuration.state, "_lost_before", 0)
    configure(f"file:{tmp_path / 'a'}")
    recorder = configuration.state.current()
    recorder.routes[0].output = Failing()
    for _ in range(3):
        get_logger("a").info("x")
    assert flush() == 3
    configure(f"file:{tmp_path / 'b'}")
    get_logger("a").info("x")
    assert flush() == 3
    assert f"output file:{tmp_path / 'a'}: 3 events were lost" in capsys.readouterr().err


def test_events_that_a_replaced_sink_did_not_take_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(configuration.state, "_lost_before", 0)
    (tmp_path / "topics").write_text("a file where the folder should be")
    configure([f"local:{tmp_path / 'topics'}", f"file:{tmp_path / 'a'}"])
    get_logger("a").info("x")
    configure(f"file:{tmp_path / 'b'}")
    assert flush() == 1


def test_redaction_rules_of_a_config_file_hold_although_one_of_its_outputs_is_wrong(tmp_path: Path) -> None:
    rules = {"extra_keys": ["shoe_size"]}
    (tmp_path / "log.json").write_text(json.dumps({"output": ["stderr", "papyrus:x"], "redact": rules}))
    code = "from balog import get_logger; get_logger('a').info('x', shoe_size='fortytwo', password='s3cret')"
    done = run_python(code, BALOG_CONFIG=str(tmp_path / "log.json"), BALOG_OUTPUT="stderr")

    complaint, event = done.stderr.splitlines()
    assert complaint.endswith("; going on with its valid redaction rules alone")
    assert json.loads(event)["payload"]["fields"] == {"shoe_size": "[redacted]", "password": "[redacted]"}


class TestWrongArguments:
    """Each is refused by one line that names the argument, and the earlier configuration stays."""

    @pytest.mark.parametrize("wrong", [0, 1, True, 1.5, b"x", ["x"], {"level": "INFO"}, object()])
    def test_config_is_a_path(self, wrong: object) -> None:
        """A number is no file descriptor, which would be closed."""
        with pytest.raises(ConfigError, match=r"^configure\(config=…\): expected the path of a file, not \w+$"):
            configure(config=wrong)  # type: ignore[arg-type]
        os.fstat(1)

    def test_a_processor_that_would_only_make_a_coroutine_is_refused(self) -> None:
        async def later(*call: object) -> object:
            return call

        with pytest.raises(ConfigError, match=r"^configure\(processors=…\): .* is async or a generator$"):
            configure(processors=[later])

    @pytest.mark.parametrize("wrong", [None, 5, print])
    def test_processors_are_a_list(self, wrong: object) -> None:
        """One function is a frequent mistake."""
        with pytest.raises(ConfigError, match=r"^configure\(processors=…\): expected a list of functions, not \w+$"):
            configure(processors=wrong)  # type: ignore[arg-type]
