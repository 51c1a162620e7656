import sys
from typing import Any

from balog.event.payload import LogPayload
from balog.log.values.exceptions import MAX_FRAMES, describe, find


def caught(act: Any) -> BaseException:
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def fail() -> None:
    secret = "s3cret"  # noqa: F841
    raise ValueError("no rows")


def test_it_says_type_message_and_where() -> None:
    told = describe(caught(fail))

    assert told["exception"]["type"] == "ValueError"
    assert told["exception"]["message"] == "no rows"
    assert [(frame["file"], frame["function"]) for frame in told["exception"]["frames"]] == [
        (__file__, "caught"),
        (__file__, "fail"),
    ]
    assert told["exception"]["frames"][1]["line"] == fail.__code__.co_firstlineno + 2
    assert told["exc_text"].endswith("ValueError: no rows\n")
    assert "s3cret" not in str(told["exception"])


def test_a_cause_that_is_false_is_told() -> None:
    class Nothing(ValueError):
        def __len__(self) -> int:
            return 0

    def act() -> None:
        raise KeyError from Nothing("no rows")

    assert describe(caught(act))["exception"]["cause"]["message"] == "no rows"


def test_what_caused_it_is_told_and_what_was_hidden_is_not() -> None:
    def because() -> None:
        try:
            fail()
        except ValueError as error:
            raise RuntimeError("outer") from error

    def meanwhile() -> None:
        try:
            fail()
        except ValueError:
            raise RuntimeError("outer")  # noqa: B904

    def hidden() -> None:
        try:
            fail()
        except ValueError:
            raise RuntimeError("outer") from None

    assert describe(caught(because))["exception"]["cause"]["type"] == "ValueError"
    assert describe(caught(meanwhile))["exception"]["context"]["message"] == "no rows"
    assert describe(caught(hidden))["exception"].keys() == {"type", "message", "frames"}


def test_of_a_deep_recursion_the_innermost_frames_are_kept() -> None:
    def deeper(n: int) -> None:
        if n == 0:
            fail()
        deeper(n - 1)

    frames = describe(caught(lambda: deeper(200)))["exception"]["frames"]

    assert len(frames) == MAX_FRAMES
    assert frames[-1]["function"] == "fail"


def test_what_is_told_is_what_the_log_payload_reads() -> None:
    import msgspec

    told = {"cls_type": "log", "message": "m", **describe(caught(fail))}
    read = msgspec.convert(told, LogPayload)

    assert read.exception is not None
    assert msgspec.to_builtins(read.exception) == told["exception"]


def test_it_is_found_in_all_forms() -> None:
    error = caught(fail)

    assert find(error) is error
    assert find((ValueError, error, None)) is error
    assert find(True) is None
    try:
        fail()
    except ValueError:
        found = [find(True), find(1), find(sys.exc_info()), sys.exc_info()[1]]
    assert all(one is found[3] is not None for one in found)


def test_an_exc_info_whose_truth_cannot_be_asked_costs_no_event() -> None:
    class Odd:
        def __bool__(self) -> bool:
            raise RuntimeError("no")

    assert find(Odd()) is None
