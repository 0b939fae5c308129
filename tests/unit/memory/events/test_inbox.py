from collections.abc import Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from memory.errors import InputError
from memory.events import inbox
from memory.messages import is_outside
from memory.messages.convert import valid_event
from memory.records import TickPrompt
from memory.records.records import Event, HandledMark, Scope
from memory.state import State
from tests.support.clock import Clock

SCOPE = Scope("local", "thread")


def event(name: str, **more: object) -> Event:
    raw = {"id": name, "at": "2026-03-02T09:00:00+00:00", "sender": "Ada", "text": "hello", **more}
    return valid_event(raw)


async def test_events_wait_in_the_order_in_which_they_were_posted(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("b"), event("a")], now=clock())
    clock.advance(seconds=1)
    await inbox.post(store, SCOPE, [event("0")], now=clock())
    waiting = await inbox.waiting(store, SCOPE)
    assert [item["event"]["id"] for item in waiting] == ["b", "a", "0"]


async def test_an_id_posted_twice_waits_once(clock: Clock) -> None:
    store = InMemoryStore()
    first = await inbox.post(store, SCOPE, [event("a"), event("a")], now=clock())
    again = await inbox.post(store, SCOPE, [event("a")], now=clock())
    assert first.accepted == ["a"]
    assert again == ([], ["a"], [])
    assert len(await inbox.waiting(store, SCOPE)) == 1


async def test_a_handled_id_is_skipped_and_reported(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a")], now=clock())
    mark = HandledMark(id="a", tick=1, at=clock().isoformat())
    await inbox.settle(store, SCOPE, [mark])
    assert await inbox.waiting(store, SCOPE) == []
    assert (await inbox.post(store, SCOPE, [event("a")], now=clock())).skipped == ["a"]
    assert await inbox.waiting(store, SCOPE) == []


async def test_an_event_whose_tick_the_state_contains_does_not_wait(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a"), event("b")], now=clock())
    marks = [HandledMark(id="a", tick=1, at=clock().isoformat())]
    assert [i["event"]["id"] for i in await inbox.waiting(store, SCOPE, marks)] == ["b"]


async def test_after_three_failures_an_event_is_set_aside_with_its_error(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a")], now=clock())
    outcomes = [
        await inbox.give_back(store, SCOPE, "a", f"broken {n}", max_attempts=3) for n in range(3)
    ]
    assert outcomes == [(1, False), (2, False), (3, True)]
    assert await inbox.waiting(store, SCOPE) == []
    aside = await inbox.set_aside(store, SCOPE)
    assert [(item["event"]["id"], item["error"]) for item in aside] == [("a", "broken 2")]


async def test_a_set_aside_event_that_is_posted_again_gets_another_chance(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a")], now=clock())
    await inbox.give_back(store, SCOPE, "a", "broken", max_attempts=1)
    await inbox.post(store, SCOPE, [event("a")], now=clock())
    assert await inbox.set_aside(store, SCOPE) == []
    assert [item["attempts"] for item in await inbox.waiting(store, SCOPE)] == [0]


async def test_what_is_set_aside_is_retried_in_its_place_with_a_fresh_count(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a"), event("b"), event("c")], now=clock())
    for name in ("a", "b"):
        await inbox.give_back(store, SCOPE, name, "broken", max_attempts=1)
    assert await inbox.retry(store, SCOPE, "b") == ["b"]
    assert [item["event"]["id"] for item in await inbox.set_aside(store, SCOPE)] == ["a"]
    assert await inbox.retry(store, SCOPE, None) == ["a"]
    rows = await inbox.waiting(store, SCOPE)
    assert [(row["event"]["id"], row["attempts"], row["error"]) for row in rows] == [
        *(("a", 0, None), ("b", 0, None), ("c", 0, None))
    ]
    assert await inbox.set_aside(store, SCOPE) == []
    assert await inbox.retry(store, SCOPE, None) == []


async def test_a_retry_is_one_transaction(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a"), event("b")], now=clock())
    for name in ("a", "b"):
        await inbox.give_back(store, SCOPE, name, "broken", max_attempts=1)
    batches: list[int] = []

    async def counted(store: BaseStore, puts: Sequence[PutOp]) -> None:
        batches.append(len(puts))

    monkeypatch.setattr(inbox, "write_batch", counted)
    await inbox.retry(store, SCOPE, None)
    assert batches == [4]


async def test_an_event_that_is_not_set_aside_cannot_be_retried(clock: Clock) -> None:
    store = InMemoryStore()
    await inbox.post(store, SCOPE, [event("a")], now=clock())
    with pytest.raises(InputError, match="no event a is set aside"):
        await inbox.retry(store, SCOPE, "a")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "has blank"}, "event has blank: id"),
        ({"at": "yesterday"}, "at"),
        ({"sender": "  "}, "sender"),
        ({"text": ""}, "text"),
        ({"addressed": "yes"}, "addressed"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_malformed_event_is_one_clear_error(change: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        event("a", **change)


def test_times_are_kept_in_utc() -> None:
    assert event("a", at="2026-03-02T09:00:00+02:00")["at"] == "2026-03-02T07:00:00+00:00"
    assert event("a", at="2026-03-02T09:00:00")["at"] == "2026-03-02T09:00:00+00:00"


def test_an_id_is_one_word_of_200_characters_at_most() -> None:
    assert event("é" * 200)["id"] == "é" * 200
    for id_ in ("x" * 201, "", "a b", "a\n"):
        with pytest.raises(InputError, match="id"):
            event(id_)


async def test_the_newest_prompts_are_kept() -> None:
    store = InMemoryStore()

    async def kept() -> list[int]:
        found = [await inbox.prompt_of(store, SCOPE, tick) for tick in range(1, 9)]
        return [one["tick"] for one in found if one is not None]

    for tick in range(1, 9):
        at = f"2026-03-0{tick}T09:00:00+00:00"
        prompt = TickPrompt(tick=tick, at=at, system="Be brief.", front="Now: ...", messages=tick)
        await store.abatch(inbox.puts_prompt(SCOPE, prompt, most=4))
    assert await kept() == [5, 6, 7, 8]
    await inbox.drop_prompts(store, SCOPE, most=4, since="2026-03-06")
    assert await kept() == [6, 7, 8]
    await inbox.drop_prompts(store, SCOPE, most=2, since=None)
    assert await kept() == [7, 8]
    await inbox.drop_prompts(store, SCOPE, most=0, since=None)
    assert await kept() == []


async def test_what_does_not_fit_is_left_and_known_events_take_no_room(clock: Clock) -> None:
    store, events = InMemoryStore(), [event("a"), event("b"), event("c")]

    async def two(scope: Scope) -> inbox.Room:
        return inbox.Room(2, "two is enough")

    async def taken(**given: object) -> inbox.Arrived:
        state = cast(State, given)
        place: Any = {"store": store, "scope": SCOPE, "owner": "Ada", "now": clock()}
        return await inbox.take_in(state, **place, run_id=None, room=two)

    with pytest.raises(InputError, match="3 events were not taken in: two is enough"):
        await taken(events=events)
    assert await inbox.waiting(store, SCOPE) == []
    await taken(events=events[:2])
    said = [HumanMessage(name, id=name) for name in ("1", "2", "3")]
    first = await taken(events=events[:2], messages=said)
    assert [item["event"]["id"] for item in await inbox.waiting(store, SCOPE)] == [*"ab12"]
    left = [one for one in first.messages if is_outside(one)]
    assert ([one.id for one in left], first.notes[0][-18:]) == (["3"], "1 (two is enough).")
    await taken(messages=left)
    assert [item["event"]["id"] for item in await inbox.waiting(store, SCOPE)] == [*"ab123"]


async def test_a_message_that_is_sent_again_as_an_event_is_taken_once(clock: Clock) -> None:
    store: Any = InMemoryStore()
    place: Any = {"store": store, "scope": SCOPE, "owner": "Ada", "now": clock(), "run_id": None}
    said, sent = HumanMessage("Build it", id="1"), {"id": "1", "sender": "Ada", "text": "Build it"}
    sent["at"] = "2026-03-01T09:00:00+00:00"
    other = {**sent, "text": "Build two"}
    with pytest.raises(InputError, match="two events have the id '1'"):
        await inbox.take_in(cast(State, {"messages": [said], "events": [other]}), **place)
    for _ in range(2):
        await inbox.take_in(cast(State, {"messages": [said], "events": [sent]}), **place)
    [taken] = await inbox.waiting(store, SCOPE)
    assert taken["event"]["at"] == sent["at"]
