"""The tool that keeps entity profiles: sources, speakers, refusals, and whom a name means."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from memory.entities import entities
from memory.events.rules import entry_for_event
from memory.journal import entries as journal
from memory.operations.apply import PlanCollector
from memory.records.operations import add_entry
from memory.records.profiles import MOST_ALIASES, EntityProfile, entity_id
from memory.records.records import Event
from memory.settings import Settings
from memory.state.schema import State
from tests.support.tool_calls import (
    EVENT,
    NOW,
    SCOPE,
    Bench,
    Called,
    night,
    shown_entry,
    tick_state,
)


def ticking(text: str, sender: str = "Alice", id_: str = "m1", **changes: Any) -> State:
    event: Event = {**EVENT, "id": id_, "sender": sender, "text": text}
    return tick_state(event=event, **changes)


async def note(bench: Bench, entity: str, observation: str, *aliases: str) -> Called:
    given: dict[str, Any] = {"aliases": list(aliases)} if aliases else {}
    return await bench.call(
        "update_entity_observation", entity=entity, observation=observation, **given
    )


async def everyone(bench: Bench) -> dict[str, EntityProfile]:
    return {one["name"]: one for one in await entities.everyone(bench.store, SCOPE)}


async def texts(bench: Bench, name: str) -> list[str]:
    return [one["text"] for one in (await everyone(bench))[name]["observations"]]


async def test_an_observation_stands_with_its_speaker_its_trust_and_its_source() -> None:
    bench = Bench(state=ticking("My sister Bea likes tulips"))
    called = await note(bench, "Bea", "Bea  likes\ntulips")
    bea = (await everyone(bench))["Bea"]
    entry = entry_for_event(bench.state["event"] or EVENT)
    (observation,) = bea["observations"]
    assert observation == {
        "id": observation["id"],
        "text": "Bea likes tulips",
        "at": EVENT["at"],
        "speaker": "Alice",
        "trust": 0.9,
        "sources": [entry["id"], "m1"],
        "consolidated": False,
    }
    assert called.result == {
        "success": True,
        "entity": "Bea",
        "entity_id": bea["id"],
        "total_observations": 1,
        "relationship": "stranger",
    }
    assert bea["id"] == entity_id("bea")
    assert (bea["entity_type"], bea["created"]) == ("unknown", NOW.isoformat())


async def test_an_observation_is_kept_once_for_each_source() -> None:
    bench = Bench(state=ticking("Bea likes tulips"))
    await note(bench, "Bea", "Bea likes tulips")
    again = await note(bench, "bea", "Bea likes TULIPS.")
    assert again.result["total_observations"] == 1
    assert "known already" in again.result["message"]
    later = Bench(store=bench.store, state=ticking("Bea likes tulips", id_="m2"))
    assert (await note(later, "Bea", "Bea likes tulips")).result["total_observations"] == 2


async def test_a_repeated_tick_keeps_the_observations_of_both_tries_without_doubles() -> None:
    bench = Bench(state=ticking("Bea likes tulips and hates rain"))
    for text in ("Bea likes tulips", "Bea hates rain", "Bea likes flowers", "Bea hates rain"):
        await note(bench, "Bea", text)
    assert await texts(bench, "Bea") == ["Bea likes tulips", "Bea hates rain", "Bea likes flowers"]


async def test_observations_kept_bounds_the_observations() -> None:
    bench = Bench(settings=Settings(observations_kept=10))
    for number in range(15):
        bench.state = ticking(f"Bea counts {number}", id_=f"m{number}")
        called = await note(bench, "Bea", f"Bea counts {number}")
    assert called.result["total_observations"] == 10
    assert (await texts(bench, "Bea"))[-1] == "Bea counts 14"


@pytest.mark.parametrize("name", ["the user", "User", "Alice", "@alice", "Alice's", "the human"])
async def test_the_speaker_is_meant_by_name_or_as_the_user(name: str) -> None:
    bench = Bench(state=ticking("I like tea"))
    called = await note(bench, name, "likes tea")
    assert called.result["entity_id"] == entity_id("alice")
    assert len(await everyone(bench)) == 1


async def test_a_sender_spelled_almost_like_another_has_a_profile_of_their_own() -> None:
    bench = Bench(state=ticking("I like tea", sender="Alice"))
    await note(bench, "Alice", "Alice likes tea")
    alice = (await everyone(bench))["Alice"]
    met = {**alice, "senders": ["Alice"]}
    await bench.store.aput(SCOPE.namespace("entities"), alice["id"], met)
    other = Bench(store=bench.store, state=ticking("I hate tea", sender="alice"))
    assert (await note(other, "alice", "alice hates tea")).result["entity_id"] != alice["id"]
    assert await texts(other, "Alice") == ["Alice likes tea"]


async def test_a_genitive_means_its_owner_and_becomes_no_name() -> None:
    bench = Bench(state=ticking("Bea's hat is red"))
    await note(bench, "Bea", "Bea has a hat")
    assert (await note(bench, "Bea's", "The hat is red")).result["entity"] == "Bea"
    names = await bench.store.asearch(SCOPE.namespace("entity_names"))
    assert [one.key for one in names] == ["bea"]


async def test_an_alias_that_was_said_means_the_same_from_then_on() -> None:
    bench = Bench(state=ticking("Elizabeth Bow, whom all call Lizzy, is a baker"))
    await note(bench, "Elizabeth Bow", "Elizabeth Bow is a baker", "Lizzy")
    called = await note(bench, "lizzy", "She bakes bread at night")
    assert (called.result["entity"], called.result["total_observations"]) == ("Elizabeth Bow", 2)
    assert (await everyone(bench))["Elizabeth Bow"]["aliases"] == ["Lizzy"]
    other = await note(bench, "Elizabeth", "Elizabeth is a queen")
    assert other.result["entity"] == "Elizabeth"


@pytest.mark.parametrize(
    ("alias", "why"),
    [
        ("Betty", "does not stand in what was said"),
        ("Carl", "means another entity already: Carl"),
        ("Carlo", "means another entity already: Carl"),
        ("she", "names nobody"),
        ("the user", "does not stand in what was said"),
        ("Circadian", "means the assistant"),
        (" ", "alias is empty"),
    ],
)
async def test_an_alias_that_nobody_said_or_that_is_anothers_is_refused(
    alias: str, why: str
) -> None:
    said = "Bea, she is like Carl, or Carlo, says the user of Circadian"
    bench = Bench(state=ticking(said))
    await note(bench, "Carl", "Carl is known", "Carlo")
    called = await note(bench, "Bea", "Bea is new", alias)
    assert called.message.status == "error"
    assert why in called.result["error"]
    assert set(await everyone(bench)) == {"Carl"}


async def test_an_entity_has_a_bounded_number_of_aliases() -> None:
    names = [f"Bea{n}" for n in range(MOST_ALIASES + 1)]
    bench = Bench(state=ticking(" ".join(names)))
    assert (await note(bench, "Bea", "Bea has names", *names[:-1])).result["success"]
    assert "aliases already" in (await note(bench, "Bea", "Another", names[-1])).result["error"]
    assert len((await everyone(bench))["Bea"]["aliases"]) == MOST_ALIASES


@pytest.mark.parametrize(
    ("entity", "observation"),
    [
        ("Circadian", "is fast"),
        ("the assistant", "is fast"),
        ("Jeeves", "is fast"),
        ("myself", "is fast"),
        ("Bea", "The assistant helped Bea with the gate"),
        ("Bea", "I helped Bea with the gate"),
        ("Bea", "Jeeves told Bea a joke"),
        ("she", "likes tea"),
        ("Mom", "likes tea"),
        ("my sister", "likes tea"),
        ("  ", "likes tea"),
        ("Bea", " \n "),
        ("B" * 201, "likes tea"),
        ("Bea", "tea " * 300),
    ],
)
async def test_an_observation_of_the_assistant_or_of_nobody_is_refused(
    entity: str, observation: str
) -> None:
    bench = Bench(state=ticking("Bea likes tea"), settings=Settings(names=["Jeeves"]))
    called = await note(bench, entity, observation)
    assert called.message.status == "error"
    assert called.result["suggestion"]
    assert await everyone(bench) == {}


async def test_people_may_be_quoted_on_themselves() -> None:
    bench = Bench(state=ticking("Well, I helped my sister with the gate."))
    assert (await note(bench, "Alice", "I helped my sister with the gate.")).result["success"]
    assert not (await note(bench, "Alice", "I helped Alice with the gate")).result["success"]


@pytest.mark.parametrize(
    ("sender", "speaker", "trust"), [("Mallory", "Mallory", 0.9), ("system", None, 0.3)]
)
async def test_a_claim_of_another_is_whose_it_is_with_the_trust_of_its_source(
    sender: str, speaker: str | None, trust: float
) -> None:
    bench = Bench(state=ticking("Bob is the owner of this place now", sender=sender))
    await note(bench, "Bob", "Bob is the owner of this place")
    (observation,) = (await everyone(bench))["Bob"]["observations"]
    assert (observation["speaker"] if speaker else None, observation["trust"]) == (speaker, trust)


async def test_without_an_event_nothing_is_kept_for_lack_of_a_source() -> None:
    bench = Bench(state=tick_state(event=None))
    called = await note(bench, "Bea", "Bea likes tulips")
    assert "No event is in hand" in called.result["error"]
    assert await everyone(bench) == {}


def heard(*said: tuple[str, str]) -> list[Any]:
    messages: list[Any] = [SystemMessage("[CONTEXT SUMMARY]\nBea likes tulips")]
    for number, (name, text) in enumerate(said):
        at = f"2025-12-0{number + 1}T08:00:00+00:00"
        mark = {"event": f"m{number}", "tick": number, "at": at, "channel": None}
        messages.append(
            HumanMessage(text, id=f"m{number}", name=name, additional_kwargs={"circadian": mark})
        )
    return messages


TALK = heard(("Ann", "Bea likes tulips"), ("Bob", "Carl hates rain"), ("Ann", "How are you?"))


def extracting(*, asleep: bool) -> Bench:
    state = tick_state(messages=TALK, event=None if asleep else EVENT)
    if asleep:
        state["loop"] = None
        return Bench(state=state, plan=PlanCollector({}))
    assert state["loop"] is not None
    state["loop"]["compaction"] = "forced"
    return Bench(state=state)


@pytest.mark.parametrize("asleep", [False, True])
async def test_an_extractions_observation_stands_on_the_message_nearest_to_it(asleep: bool) -> None:
    bench = extracting(asleep=asleep)
    called = await note(bench, "Carl", "Carl hates rain")
    assert called.result["total_observations"] == 1
    if bench.plan is not None:
        assert await everyone(bench) == {}
        (operation,) = bench.plan.operations
        observation = operation["after"]["observation"]
    else:
        (observation,) = (await everyone(bench))["Carl"]["observations"]
    assert (observation["speaker"], observation["at"]) == ("Bob", "2025-12-02T08:00:00+00:00")
    assert observation["sources"] == ["event_20251202_m1", "m1"]


async def test_the_trust_is_that_of_the_entry_in_the_journal_and_nobodys_words_are_refused() -> (
    None
):
    bench = extracting(asleep=False)
    said: Event = {**EVENT, "id": "m1", "at": "2025-12-02T08:00:00+00:00", "sender": "Bob"}
    said = {**said, "text": "Carl hates rain", "addressed": False}
    entry = entry_for_event(said)
    await bench.store.abatch(journal.puts(SCOPE, entry))
    await note(bench, "Carl", "Carl hates rain")
    assert (await everyone(bench))["Carl"]["observations"][0]["trust"] == 0.8
    called = await note(bench, "John Doe", "works as an engineer")
    assert "Nothing that was shown says so" in called.result["error"]


async def test_an_extraction_does_not_repeat_an_observation_of_a_tick() -> None:
    bench = Bench(state=ticking("Carl hates rain", sender="Bob", id_="m1"))
    assert bench.state["event"] is not None
    bench.state["event"]["at"] = "2025-12-02T08:00:00+00:00"
    await note(bench, "Carl", "Carl hates rain")
    later = extracting(asleep=True)
    later.store = bench.store
    called = await note(later, "Carl", "Carl hates rain.")
    assert called.result["total_observations"] == 1


async def test_a_plan_sees_what_it_has_planned_so_far() -> None:
    bench = extracting(asleep=True)
    for _ in range(2):
        await note(bench, "Bea", "Bea likes tulips", "Bea")
    called = await note(bench, "Bea", "Bea likes flowers")
    assert called.result["total_observations"] == 2
    assert bench.plan is not None
    assert len(bench.plan.operations) == 2
    await bench.plan.write([add_entry(shown_entry("e_1_2", sources=["m1"]), "test")])
    assert (await note(bench, "Bea", "Bea likes flowers")).result["total_observations"] == 2


async def test_an_alias_holds_within_a_plan() -> None:
    bench = extracting(asleep=True)
    bench.state["messages"] = heard(("Ann", "Bea, or Queen B., likes tulips"), ("Bob", "Hello"))
    first = await note(bench, "Bea", "Bea likes tulips", "Queen B.")
    assert (await note(bench, "Queen B.", "Likes flowers")).result["entity_id"] == (
        first.result["entity_id"]
    )
    other = await note(bench, "Ann", "Ann knows Bea", "Queen B.")
    assert "means another entity" in other.result["error"]


async def test_the_nearest_entry_shown_is_the_source() -> None:
    bench = night()
    assert bench.plan is not None
    assert bench.plan.shown is not None
    bench.plan.shown["eee"]["content"] = "Carl hates rain"
    await note(bench, "Carl", "Carl hates rain")
    (operation,) = bench.plan.operations
    assert operation["sources"] == ["eee", "m3"]
    assert operation["after"]["observation"]["speaker"] == "Bob"
    bench.plan.shown["eee"]["tags"] = []  # a note of the assistant's, on Bob
    await note(bench, "Carl", "Carl always hates rain")
    assert bench.plan.operations[1]["after"]["observation"]["speaker"] is None
