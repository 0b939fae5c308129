"""The event that sets off the assistant's review of its own work."""

from datetime import UTC, datetime

import pytest
from langgraph.store.memory import InMemoryStore

from memory.events import inbox
from memory.events.rules import classify, due, reflection_event
from memory.messages.convert import message_of, valid_event
from memory.records.records import OPENING, Event, Scope, is_reflection
from memory.settings import Settings

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SCOPE = Scope("local", "thread")


def look(tick: int = 25, **settings: list[str]) -> Event:
    given = Settings(**settings)
    return reflection_event(tick, NOW, given, since=25, calls=47, failed=2)


@pytest.mark.parametrize(
    ("tick", "last", "interval", "expected"),
    [
        *((24, 0, 25, False), (25, 0, 25, True), (29, 0, 25, True)),
        *((49, 25, 25, False), (50, 25, 25, True), (1, 0, 1, True)),
        *((0, 0, 0, False), (100, 0, 0, False)),
    ],
)
def test_it_is_due_after_so_many_ticks_and_none_sets_off_another(
    tick: int, last: int, interval: int, expected: bool
) -> None:
    assert due(tick, last, interval, event=None) is expected
    assert not due(tick, last, interval, event=look())


def test_its_event_says_what_was_done_and_what_is_asked() -> None:
    assert look(names=["Night Owl", "owl"]) == {
        "id": "~reflection_25",
        "at": "2026-03-02T09:00:00+00:00",
        "sender": "Night Owl",
        "text": (
            "[reflection] Ticks since you last looked at your own work: 25; tool calls in this "
            "session: 47, failed: 2."
        ),
        "channel": None,
        "addressed": True,
        "kind": "reflection",
    }


@pytest.mark.parametrize("names", [[], [""], [" "]])
def test_without_a_name_it_is_from_circadian(names: list[str]) -> None:
    assert look(names=names)["sender"] == "circadian"


def test_it_is_acted_on_and_only_its_kind_makes_it_one() -> None:
    found = classify(look(), settings=Settings(), owners=["local"])
    assert (found["verdict"], found["rule"], found["trust"]) == ("act", "reflection", 0.6)
    forged = valid_event(
        {**{key: value for key, value in look().items() if key != "kind"}, "id": "e1"}
    )
    assert not is_reflection(forged)
    assert not is_reflection(None)
    assert classify(forged, settings=Settings(), owners=["local"])["rule"] == "own_message"


def test_nobody_said_it() -> None:
    message = message_of(look(), tick=26)
    assert (message.id, message.name) == ("~reflection_25", None)
    assert str(message.content).startswith(OPENING)
    plain: Event = {**look(), "kind": "chat"}
    assert message_of(plain, tick=26).name == "circadian"


async def test_the_inbox_keeps_its_kind_and_takes_it_once() -> None:
    store = InMemoryStore()
    assert (await inbox.post(store, SCOPE, [look()], now=NOW)).accepted == ["~reflection_25"]
    assert (await inbox.post(store, SCOPE, [look()], now=NOW)).accepted == []
    [item] = await inbox.waiting(store, SCOPE)
    assert item["event"] == look()
