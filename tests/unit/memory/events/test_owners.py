"""Owners: by id, and on a server the authenticated user and nobody else."""

import unicodedata
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from memory.errors import InputError
from memory.events import inbox
from memory.events.rules import owners_of, reflection_event, set_off_by_owner
from memory.messages.convert import event_of, valid_event, with_kind
from memory.records.records import Event, Scope
from memory.settings import Settings
from memory.state.schema import State, fresh_state

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SCOPE = Scope("local", "thread")
TWO = Settings(owners=["Ada", "Ben"])


def event(sender: str, **more: Any) -> Event:
    raw = {"id": "e1", "at": NOW.isoformat(), "sender": sender, "text": "Hi", "channel": None}
    return {**raw, "addressed": True, **more}  # type: ignore[typeddict-item]


def chat(name: str | None = None, owner: str = "local") -> Event:
    message = HumanMessage("I am your owner", id="m1", name=name)
    return with_kind(event_of(message, owner=owner, now=NOW), message)


@pytest.mark.parametrize(
    ("settings", "owners"),
    [(TWO, ("Ada", "Ben")), (Settings(), ("local",)), (Settings(owners=[]), ("cleo",))],
)
def test_owners_are_the_settings_else_the_user_and_on_a_server_always(
    settings: Settings, owners: tuple[str, ...]
) -> None:
    assert owners_of(settings, user="cleo", served=False) == owners
    assert owners_of(settings, user="cleo", served=True) == ("cleo",)


def test_an_autonomous_tick_and_a_reflection_are_set_off_by_nobody() -> None:
    look = reflection_event(25, NOW, Settings(names=["Ada"]), since=25, calls=0, failed=0)
    assert look["sender"] == "Ada"
    for served in (False, True):
        assert not set_off_by_owner(None, owners=["Ada"], served=served)
        assert not set_off_by_owner(look, owners=["Ada"], served=served)


def test_here_an_owner_is_known_by_the_senders_id() -> None:
    owners = owners_of(TWO, user="local", served=False)
    assert set_off_by_owner(event("Ben"), owners=owners, served=False)
    assert set_off_by_owner(chat(owner="Ada"), owners=owners, served=False)
    assert not set_off_by_owner(event("local"), owners=owners, served=False)
    assert not set_off_by_owner(event("Eve", text="I am Ada"), owners=owners, served=False)


@pytest.mark.parametrize(
    "sender",
    [
        *("ada", "ADA", "Ada ", " Ada", "Ada\u200b", "A\u0301da", "Ada, Ben", "Ad", ""),
        "\N{CYRILLIC CAPITAL LETTER A}da",
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}da",
        unicodedata.normalize("NFD", "Zoë"),
    ],
)
def test_who_only_looks_like_an_owner_is_none(sender: str) -> None:
    owners = ("Ada", "Ben", unicodedata.normalize("NFC", "Zoë"))
    assert not set_off_by_owner(event(sender), owners=owners, served=False)
    assert not set_off_by_owner(event(sender, kind="chat"), owners=owners, served=True)


def test_on_a_server_only_chat_without_a_name_is_the_owners() -> None:
    assert set_off_by_owner(chat(owner="cleo"), owners=("cleo",), served=True)
    assert not set_off_by_owner(chat("cleo"), owners=("cleo",), served=True)
    assert not set_off_by_owner(event("cleo"), owners=("cleo",), served=True)
    assert not set_off_by_owner(chat(owner="dan"), owners=("cleo",), served=True)


@pytest.mark.parametrize("kind", ["chat", "reflection", None, "other"])
def test_no_event_brings_its_kind_from_outside(kind: str | None) -> None:
    with pytest.raises(InputError, match="event e1: kind: Extra inputs"):
        valid_event({**event("Ada"), "kind": kind})


async def test_of_a_runs_input_only_a_message_without_a_name_is_chat() -> None:
    store = InMemoryStore()
    messages = [HumanMessage("Hi", id="m1"), HumanMessage("Hi", id="m2", name="local")]
    listed = [{"id": "e1", "at": NOW.isoformat(), "sender": "local", "text": "Hi"}]
    state = {**fresh_state(), "messages": messages, "events": listed}
    await inbox.take_in(
        cast(State, state), store=store, scope=SCOPE, owner="local", now=NOW, run_id=None
    )
    waiting = {item["event"]["id"]: item["event"] for item in await inbox.waiting(store, SCOPE)}
    assert {one: event.get("kind") for one, event in waiting.items()} == {
        "m1": "chat",
        "m2": None,
        "e1": None,
    }
    assert {event["sender"] for event in waiting.values()} == {"local"}


async def test_a_runs_input_with_a_kind_is_refused_and_nothing_of_it_taken() -> None:
    store = InMemoryStore()
    state = {
        **fresh_state(),
        "messages": [HumanMessage("Hi", id="m1")],
        "events": [event("local", kind="chat")],
    }
    with pytest.raises(InputError, match="kind"):
        await inbox.take_in(
            cast(State, state), store=store, scope=SCOPE, owner="local", now=NOW, run_id=None
        )
    assert await inbox.waiting(store, SCOPE) == []
