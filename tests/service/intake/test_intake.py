"""The durable path, on topics in memory that fail when a test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from failing_topics import FailingTopics

from balog.common.errors import ConfigError, TopicError
from balog.event import Event, encode
from balog.service.document import ControlDocument, EventStream
from balog.service.intake.batch import AcceptedEvent, IntakeResult
from balog.service.intake.fallback import GROUP, Fallback
from balog.service.intake.intake import EventIntake
from balog.topics import Message, Topics

pytestmark = pytest.mark.anyio


def accepted(number: int = 0, cls_type: str | None = "order", **payload: Any) -> AcceptedEvent:
    event = Event.new("tests", {"cls_type": cls_type, "n": number, **payload}, context={"run_id": "r"})
    return AcceptedEvent(event, encode(event))


def ids(events: Sequence[AcceptedEvent]) -> list[str]:
    return [one.event.header.id for one in events]


def stored(home: Topics, topic: str = "order") -> list[str]:
    return [one.id for one in home.topic(topic).peek(100_000)]


@asynccontextmanager
async def running(topics: Topics, fallback: Topics | None = None, **options: Any) -> AsyncIterator[EventIntake]:
    intake = EventIntake(topics, fallback=None if fallback is None else Fallback(fallback), **options)
    await intake.start()
    try:
        yield intake
    finally:
        await intake.stop(5)


@pytest.fixture
def home(request: pytest.FixtureRequest) -> FailingTopics:
    """Topics; a test may ask for some that keep no ids."""
    return FailingTopics(getattr(request, "param", True))


@pytest.fixture
def spare() -> FailingTopics:
    return FailingTopics()


@pytest.fixture
async def intake(request: pytest.FixtureRequest, home: FailingTopics) -> AsyncIterator[EventIntake]:
    """An intake at ``home``, with the fallback ``spare`` in tests that name it."""
    spare = request.getfixturevalue("spare") if "spare" in request.fixturenames else None
    async with running(home, spare) as intake:
        yield intake


def be_patient(intake: EventIntake) -> None:
    """Give the stores a minute from now on: a short timeout is for the topic that hangs, not for its fallback."""
    intake._stores.timeout = 60


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


async def test_what_is_acked_is_in_its_topic_in_the_order_of_sending(home, intake):
    events = [accepted(n) for n in range(20)]
    pages = [accepted(n, "page") for n in range(3)]
    placed = await intake.put([*events[:10], *pages, *events[10:]])
    assert {one.status for one in placed} == {202}
    assert [one.topic for one in placed] == ["order"] * 10 + ["page"] * 3 + ["order"] * 10
    assert placed[0] == IntakeResult(status=202, store="topics", stream="order", topic="order")
    assert stored(home) == ids(events)
    assert home.topic("order").peek(1)[0].body == events[0].body
    assert home.topic("order").peek(1)[0].key == "r"


async def test_an_event_may_have_a_topic_whatever_the_document_says(intake):
    intake.apply(ControlDocument(streams=(EventStream(name="all"),)))
    placed = await intake.put([accepted()._replace(topic="failed_events"), accepted(1)])
    assert [(p.stream, p.topic) for p in placed] == [("failed_events", "failed_events"), ("all", "all")]


async def test_what_waits_goes_together(home, intake):
    home.may_go_on.clear()
    puts = [asyncio.ensure_future(intake.put([accepted(n)])) for n in range(200)]
    await until(lambda: intake.state().in_flight == 200)
    home.may_go_on.set()
    assert all(placed.status == 202 for (placed,) in await asyncio.gather(*puts))
    assert len(home.batches) <= 3


@pytest.mark.parametrize("home", [True, False], indirect=True)
async def test_an_id_that_comes_again_is_a_duplicate_and_stored_once(home, intake):
    a, b, c = (accepted(n) for n in range(3))
    first = await intake.put([a, b, a])
    assert [one.duplicate for one in first] == [False, False, True]
    again = await intake.put([b, c])
    assert [(one.status, one.duplicate) for one in again] == [(202, True), (202, False)]
    both = await asyncio.gather(*[intake.put([d]) for d in [accepted(4)] * 5])
    assert sorted(one.duplicate for (one,) in both) == [False, True, True, True, True]
    assert len(home.stored) == len(set(home.stored)) == 4
    assert intake.state().stored["topics"] == 4
    assert intake.state().in_flight_bytes == 0


@pytest.mark.parametrize("home", [False], indirect=True)
async def test_an_id_that_comes_again_while_it_is_stored_has_the_same_fate(home, intake):
    home.may_go_on.clear()
    one = accepted()
    puts = [asyncio.ensure_future(intake.put([one])) for _ in range(3)]
    await until(lambda: intake.state().topics)
    home.down = "no: password=hunter2pw"
    home.may_go_on.set()
    assert [placed.status for (placed,) in await asyncio.gather(*puts)] == [503] * 3
    assert intake.state().topics["order"].error == "no: password=[redacted]"
    home.down = ""
    await until(lambda: not intake._writers["order"].retry_after)
    assert (await intake.put([one])) == [IntakeResult(status=202, store="topics", stream="order", topic="order")]


@pytest.mark.parametrize("home", [True, False], indirect=True)
async def test_while_the_topics_fail_events_are_in_the_fallback_and_go_back_in_order(home, spare, intake):
    events = [accepted(n) for n in range(60)]
    await intake.put(events[:10])
    home.down = "on fire: password=hunter2pw"
    for n in range(10, 50, 10):
        assert {one.store for one in await intake.put(events[n : n + 10])} == {"fallback"}
    assert stored(spare, "fallback--order") == ids(events[10:50])
    assert intake.state().topics["order"].backlog == 40
    assert "on fire: password=[redacted]" in intake.state().topics["order"].error
    assert not intake.error
    home.down = ""
    await intake.put(events[50:])
    await until(lambda: intake.state().topics["order"].store == "topics")
    assert home.stored == ids(events)
    assert {one.key for one in home.topic("order").peek(100)} == {"r"}
    assert (intake.state().backlog, intake.state().topics["order"].error) == (0, "")
    assert [one.store for one in await intake.put([accepted()])] == ["topics"]


async def test_order_holds_while_new_events_come_during_the_drain(home, spare, intake):
    events = [accepted(n) for n in range(5000)]
    home.down = "down"
    await intake.put(events)
    home.down = ""
    stores: list[str] = []
    while stores.count("topics") < 20:
        events += [accepted(n) for n in range(20)]
        stores += [one.store for one in await intake.put(events[-20:])]
        await asyncio.sleep(0.001)
    assert stores == sorted(stores)  # the fallback, and then the topics for good
    assert home.stored == ids(events)


@pytest.mark.parametrize("home", [True, False], indirect=True)
async def test_an_id_sent_before_an_outage_and_in_it_is_downstream_once(home, spare, intake):
    one, other = accepted(), accepted(1)
    await intake.put([one])
    home.down = "down"
    await intake.put([one, other])
    home.down = ""
    await until(lambda: intake.state().topics["order"].store == "topics")
    assert home.stored == ids([one, other])


@pytest.mark.parametrize("with_fallback", [True, False])
async def test_when_no_store_takes_it_nothing_is_kept_and_it_goes_on_afterwards(home, spare, with_fallback):
    async with running(home, spare if with_fallback else None) as intake:
        home.down = spare.down = "the disk takes no more"
        events = [accepted(n) for n in range(3)]
        placed = await intake.put(events)
        assert {(one.status, one.store) for one in placed} == {(503, "")}
        assert "the disk takes no more" in placed[0].reason
        assert placed[0].retry_after >= 1
        assert "the disk takes no more" in intake.error
        assert intake.state().in_flight_bytes == 0
        home.down = spare.down = ""
        while (await intake.put(events))[0].status != 202:
            await asyncio.sleep(0.02)
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert home.stored == ids(events)
        assert not intake.error


async def test_with_no_room_in_the_fallback_the_topics_take_events_again_past_its_backlog(home, spare, intake):
    home.down = "down"
    first, second = accepted(), accepted(1)
    await intake.put([first])
    spare.down = "full"
    assert (await intake.put([second]))[0].status == 503
    home.down = ""
    while (placed := await intake.put([second]))[0].status != 202:
        await asyncio.sleep(0.02)
    assert placed[0].store in ("topics", "fallback")
    await until(lambda: intake.state().topics["order"].store == "topics")
    assert set(home.stored) == set(ids([first, second]))


@pytest.mark.parametrize("home", [True, False], indirect=True)
async def test_topics_that_hang_slow_one_batch_and_no_event_is_there_twice(home, spare):
    async with running(home, spare, timeout=0.1, notify=lambda line: be_patient(intake)) as intake:
        home.may_go_on.clear()
        events = [accepted(n) for n in range(5)]
        for one in events:
            assert [placed.store for placed in await intake.put([one])] == ["fallback"]
        home.may_go_on.set()  # the first call was never given up by whoever makes it
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert home.stored == ids(events)


async def test_one_topic_that_hangs_holds_up_no_other(home, intake):
    waiting = asyncio.Event()
    slow = home.topic("slow")
    publish = slow.publish_new
    slow.publish_new = lambda messages: (home.may_go_on.wait(30), publish(messages))[1]  # type: ignore[method-assign]
    home.topic("order").publish_new = type(slow).publish_new.__get__(home.topic("order"))
    home.may_go_on.clear()
    late = asyncio.ensure_future(intake.put([accepted(0, "slow")]))
    late.add_done_callback(lambda _: waiting.set())
    for n in range(20):
        assert (await intake.put([accepted(n)]))[0].status == 202
    assert not waiting.is_set()
    home.may_go_on.set()
    assert (await late)[0].status == 202


async def test_what_the_topic_can_never_take_is_refused_alone(home, intake):
    events = [accepted(n) for n in range(9)]
    home.refused = {events[4].event.header.id}
    placed = await intake.put(events)
    assert [one.status for one in placed] == [202] * 4 + [413] + [202] * 4
    assert "too large" in placed[4].reason
    assert stored(home) == ids(events[:4] + events[5:])
    assert (await intake.put(events[3:5]))[0].duplicate


async def test_a_name_that_the_home_cannot_have_is_told_and_harms_nobody_else(home):
    make = home.topic

    def topic(name: str) -> Any:
        if name == "odd":
            raise ConfigError("no such name here")
        return make(name)

    home.topic = topic  # type: ignore[method-assign]
    async with running(home) as intake:
        placed = await intake.put([accepted(0, "odd"), accepted()])
        assert [one.status for one in placed] == [413, 202]
        assert "no such name here" in placed[0].reason


async def test_what_only_the_fallback_could_take_is_a_dead_letter_there_and_the_rest_goes_back(home, spare, intake):
    events = [accepted(n) for n in range(3)]
    home.down = "down"
    await intake.put(events)
    home.refused = {events[1].event.header.id}
    home.down = ""
    await until(lambda: intake.state().topics["order"].store == "topics")
    assert stored(home) == ids([events[0], events[2]])
    (letter,) = spare.topic("fallback--order").dead_letters(GROUP)
    assert (letter.id, "too large" in letter.reason) == (events[1].event.header.id, True)


async def test_a_hot_stream_is_told_to_come_back_and_others_have_room(home):
    async with running(home, in_flight_bytes=1 << 20) as intake:
        home.may_go_on.clear()
        flood = [asyncio.ensure_future(intake.put([accepted(n, "hot", text="x" * 10_000)])) for n in range(150)]
        calm = [asyncio.ensure_future(intake.put([accepted(n, "calm")])) for n in range(100)]
        await until(lambda: intake.state().in_flight_bytes and all(f.done() for f in flood[60:]))
        assert intake.state().in_flight_bytes <= 1 << 20
        home.may_go_on.set()
        hot = [placed for (placed,) in await asyncio.gather(*flood)]
        assert {placed.status for (placed,) in await asyncio.gather(*calm)} == {202}
        late = [one for one in hot if one.status == 429]
        assert 50 <= len(late) < 150
        assert all(1 <= one.retry_after <= 60 and one.stream == "hot" for one in late)
        assert home.topic("hot").describe().messages == 150 - len(late)


async def test_a_rate_holds_from_the_next_request_on_and_a_bad_document_changes_nothing(home, intake):
    assert {one.status for one in await intake.put([accepted(n) for n in range(50)])} == {202}
    intake.apply(ControlDocument(streams=(EventStream(name="slow", types=("order",), topic="t", rate=0.01),)))
    placed = await intake.put([accepted(n) for n in range(8)])
    assert [one.status for one in placed] == [202] + [429] * 7
    assert (placed[0].stream, placed[0].topic) == ("slow", "t")
    with pytest.raises(ConfigError, match=r"\$\.streams\[0\]\.where"):
        intake.apply(ControlDocument(streams=(EventStream(name="bad", where="("),)))
    assert (await intake.put([accepted(0, "page")]))[0].status == 202
    assert (await intake.put([accepted()]))[0].status == 429


async def test_a_client_that_goes_away_changes_nothing(home, intake):
    home.may_go_on.clear()
    events = [accepted(n) for n in range(10)]
    put = asyncio.ensure_future(intake.put(events[:5]))
    await until(lambda: intake.state().in_flight == 5)
    put.cancel()
    other = asyncio.ensure_future(intake.put(events[5:]))
    await asyncio.sleep(0)
    assert intake.state().in_flight_bytes == sum(len(one.body) for one in events)
    home.may_go_on.set()
    assert {one.status for one in await other} == {202}
    assert intake.state().in_flight_bytes == 0
    assert stored(home) == ids(events)


async def test_a_stop_makes_durable_what_was_taken(home, intake):
    home.may_go_on.clear()
    events = [accepted(n) for n in range(50)]
    puts = [asyncio.ensure_future(intake.put([one])) for one in events]
    await until(lambda: intake.state().in_flight == 50)
    stop = asyncio.ensure_future(intake.stop(20))
    await asyncio.sleep(0.01)
    home.may_go_on.set()
    assert await stop == []
    assert {placed.status for (placed,) in await asyncio.gather(*puts)} == {202}
    [refused] = await intake.put([accepted()])
    assert (refused.status, refused.retry_after) == (503, 1.0)
    assert "stopping" in refused.reason
    assert stored(home) == ids(events)


async def test_what_the_topics_do_not_take_before_the_end_goes_to_the_fallback_and_back_after_a_start(home, spare):
    events = [accepted(n) for n in range(9)]
    async with running(home, spare, timeout=30) as intake:
        home.may_go_on.clear()
        puts = [asyncio.ensure_future(intake.put([one])) for one in events]
        await until(lambda: intake.state().in_flight == 9)
        assert await intake.stop(0.5) == []
        assert [placed.store for (placed,) in await asyncio.gather(*puts)] == ["fallback"] * 9
    home.may_go_on.set()
    async with running(home, spare) as intake:
        assert intake.state().backlog == 9
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert stored(home) == ids(events)


async def test_a_stop_tells_which_events_nobody_was_told_are_durable(home):
    events = [accepted(n) for n in range(6)]
    async with running(home, timeout=30) as intake:
        home.may_go_on.clear()
        puts = [asyncio.ensure_future(intake.put(events[:3]))]
        await until(lambda: intake.state().in_flight == 3)
        puts.append(asyncio.ensure_future(intake.put(events[3:])))
        await until(lambda: intake.state().in_flight == 6)
        lost = await intake.stop(0.2)
        assert {one.status for placed in await asyncio.gather(*puts) for one in placed} == {503}
        assert lost == ids(events)
    home.may_go_on.set()


async def test_a_stop_is_over_in_time_also_when_both_homes_hang(home, spare):
    events = [accepted(n) for n in range(6)]
    async with running(home, spare, timeout=30) as intake:
        home.may_go_on.clear()
        spare.may_go_on.clear()
        put = asyncio.ensure_future(intake.put(events))
        await until(lambda: intake.state().in_flight == 6)
        assert await intake.stop(0.2) == ids(events)
        assert {one.status for one in await put} == {503}
    home.may_go_on.set()
    spare.may_go_on.set()


async def test_what_another_had_in_hand_when_it_was_killed_is_waited_for(home, spare):
    """Or what is behind it would overtake it."""
    events = [accepted(n) for n in range(4)]
    waiting = spare.topic("fallback--order")
    waiting.publish([Message(one.event.header.id, one.body) for one in events])
    waiting.receive(GROUP, 2, lease=1.0)
    async with running(home, spare) as intake:
        late = accepted(4)
        assert (await intake.put([late]))[0].store == "fallback"
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert stored(home) == ids([*events, late])


async def test_a_fallback_that_cannot_be_read_at_the_start_is_read_later(home, spare, monkeypatch):
    monkeypatch.setattr("balog.service.intake.intake._BACKLOG_RETRY_SECONDS", 0.01)
    early = accepted()
    spare.topic("fallback--order").publish([Message(early.event.header.id, early.body)])
    names = spare.names

    def fail() -> list[str]:
        raise TopicError("no answer")

    spare.names = fail  # type: ignore[method-assign]
    async with running(home, spare) as intake:
        assert "fallback can't be read" in intake.error
        assert (await intake.put([accepted(1)]))[0].store == "topics"
        spare.names = names  # type: ignore[method-assign]
        await until(lambda: early.event.header.id in stored(home))
        assert not intake.error


async def test_a_refusal_is_no_trouble_for_ever(home, intake, monkeypatch):
    """Whoever is asked for nothing while it is in trouble would never hear that it is over."""
    home.down = "on fire"
    await intake.put([accepted()])
    assert intake.error == "on fire"
    monkeypatch.setattr("balog.service.intake.intake._RECENT_SECONDS", 0.0)
    assert intake.error == ""


async def test_types_without_end_keep_few_topics_open(home, intake):
    for n in range(250):
        assert (await intake.put([accepted(n, f"type{n}")]))[0].status == 202
    assert len(intake.state().topics) <= 100
    assert len(home.stored) == 250


@pytest.mark.parametrize("home", [False], indirect=True)
async def test_what_a_topic_took_after_it_was_given_up_is_a_duplicate_when_it_comes_again(home):
    async with running(home, timeout=0.05) as intake:
        one = accepted()
        home.may_go_on.clear()
        assert [placed.status for placed in await intake.put([one])] == [503]
        home.may_go_on.set()
        await until(lambda: home.stored)
        while (placed := (await intake.put([one]))[0]).status != 202:
            await asyncio.sleep(0.02)
        assert placed.duplicate
        assert home.stored == ids([one])


@pytest.mark.parametrize("home", [False], indirect=True)
async def test_what_the_fallback_took_after_it_was_given_up_is_moved_and_there_once(home, spare):
    async with running(home, spare, timeout=0.05) as intake:
        one = accepted()
        home.down = "down"
        spare.may_go_on.clear()
        assert [placed.status for placed in await intake.put([one])] == [503]
        home.down = ""
        await until(lambda: intake.state().topics["order"].store == "topics")
        spare.may_go_on.set()
        await until(lambda: home.stored)
        assert (await intake.put([one]))[0].duplicate
        assert home.stored == ids([one])


@pytest.mark.parametrize("home", [False], indirect=True)
async def test_what_a_topic_refused_after_it_was_given_up_is_a_dead_letter(home, spare):
    async with running(home, spare, timeout=0.05, notify=lambda line: be_patient(intake)) as intake:
        one, other = accepted(), accepted(1)
        home.refused = {one.event.header.id}
        home.may_go_on.clear()
        assert {placed.store for placed in await intake.put([one, other])} == {"fallback"}
        home.may_go_on.set()
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert home.stored == ids([other])
        assert [letter.id for letter in spare.topic("fallback--order").dead_letters(GROUP)] == ids([one])


async def test_a_fallback_that_hands_nothing_out_yet_is_asked_with_pauses(home, spare, monkeypatch):
    waiting = spare.topic("fallback--order")
    waiting.publish([Message("early", b"{}")])
    receive, asked = waiting.receive, []

    def nothing_yet(*given: Any, **named: Any) -> Any:
        asked.append(1)
        return receive(*given, **named) if len(asked) > 5 else []

    monkeypatch.setattr(waiting, "receive", nothing_yet)
    monkeypatch.setattr("balog.service.intake.topic_writer._EMPTY_PAUSE", 0.1)
    async with running(home, spare) as intake:
        await asyncio.sleep(0.25)
        assert len(asked) <= 4
        await until(lambda: intake.state().topics["order"].store == "topics")
        assert stored(home) == ["early"]


async def test_an_outage_and_its_end_are_one_line_each_for_all_topics(home, spare):
    said: list[str] = []
    async with running(home, spare, notify=said.append) as intake:
        home.down = "on fire"
        await intake.put([accepted(0), accepted(1, "page")])
        await intake.put([accepted(2), accepted(3, "page")])
        (outage,) = said
        assert outage.startswith("fallback: stores events, because a topic fails: ")
        home.down = ""
        await until(lambda: len(said) == 2)
        assert (len(stored(home)), len(stored(home, "page"))) == (2, 2)
        assert said[1] == "fallback: empty again; its events are in their topics"
