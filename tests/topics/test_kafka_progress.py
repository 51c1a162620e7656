"""What a commit's text says is what is read from it again, and it fits beside the offset."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("confluent_kafka")

from balog.topics.kafka.progress import MAX_TEXT, CommittedProgress, decode, encode


@st.composite
def progresses(draw: st.DrawFn) -> CommittedProgress:
    commit = draw(st.integers(0, 2**62))
    length = draw(st.integers(0, 3000))
    offsets = st.integers(commit, commit + max(0, length - 1))
    unsettled = draw(st.dictionaries(offsets, st.integers(0, 100), max_size=200)) if length else {}
    return CommittedProgress(commit, commit + length, unsettled)


@given(progresses())
def test_what_fits_is_read_as_it_was_written(progress: CommittedProgress) -> None:
    text, told = encode(progress)
    assert told == progress.handed
    assert len(text.encode()) <= MAX_TEXT
    assert decode(progress.commit, text) == progress


@pytest.mark.parametrize("span", [20_000, 200_000])
def test_what_does_not_fit_forgets_only_what_lies_farthest_beyond_the_commit(span: int) -> None:
    chance = random.Random(1)
    unsettled = {offset: chance.randint(1, 5) for offset in range(1000, 1000 + span) if chance.random() < 0.5}
    progress = CommittedProgress(1000, 1000 + span, unsettled)
    text, told = encode(progress)
    assert len(text) <= MAX_TEXT
    assert 1000 < told < progress.handed
    read = decode(1000, text)
    assert read == CommittedProgress(
        1000, told, {offset: tries for offset, tries in unsettled.items() if offset < told}
    )


def test_ten_thousand_offsets_with_one_in_ten_unsettled_fit() -> None:
    chance = random.Random(2)
    unsettled = {offset: chance.randint(1, 5) for offset in range(10_000) if chance.random() < 0.1}
    assert encode(CommittedProgress(0, 10_000, unsettled))[1] == 10_000


@pytest.mark.parametrize(
    "text", [None, "", "hello", "balog1:", "balog1:!!!", "balog1:AAAA", "balog2:eJwDAAAAAAE=", "balog1:eJwDAAAAAAE="]
)
def test_a_text_of_somebody_else_says_nothing(text: str | None) -> None:
    assert decode(7, text) is None


@given(st.text(max_size=200), progresses())
def test_no_text_makes_reading_fail(noise: str, progress: CommittedProgress) -> None:
    text, _ = encode(progress)
    for broken in (f"balog1:{noise}", text[: len(text) // 2], text + noise):
        decode(progress.commit, broken)


def test_a_text_that_would_unpack_to_too_much_says_nothing() -> None:
    import base64
    import zlib

    bomb = base64.b64encode(zlib.compress(b"\x01" * 50_000_000)).decode()
    assert decode(0, "balog1:" + bomb) is None
