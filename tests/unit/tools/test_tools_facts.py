"""store_memory: facts with their sources, awake and in a night."""

import json
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage

from memory.events.rules import entry_for_event
from memory.journal import entries as journal
from memory.messages import marked
from memory.operations.apply import PlanCollector
from memory.records.operations import operation_id
from memory.records.profiles import new_profile
from memory.records.records import Event, JournalEntry
from memory.text import name_key
from tests.support.tool_calls import EVENT, NOW, SCOPE, Bench, night, shown_entry, tick_state

TOLD: Event = {
    **EVENT,
    "text": "I want a tavern. The gate is shut, the mill is old, it rains and it is cold here.",
}
"""An event that says what these facts say."""


def told_tick(**changes: Any) -> Bench:
    return Bench(state=tick_state(event=TOLD, **changes))


def drafts(bench: Bench) -> list[dict[str, Any]]:
    assert bench.plan is not None
    return [operation["after"] for operation in bench.plan.operations]


async def test_awake_a_fact_stands_on_the_event_in_hand() -> None:
    bench = told_tick()
    called = await bench.call(
        "store_memory",
        facts=[{"text": "Alice wants a  tavern", "entities": ["Alice", "tavern", "Alice"]}],
    )
    assert called.result == {"success": True, "stored": 1, "rejected": [], "not_cited": []}
    (fact,) = bench.shelf.facts.values()
    entry_id = entry_for_event(TOLD)["id"]
    assert fact == {
        "op": operation_id("fact", "tick:message-1", *sorted([entry_id, "message-1"]), "0"),
        "text": "Alice wants a tavern",
        "source_entries": [entry_id],
        "source_events": ["message-1"],
        "speaker": "Alice",
        "entities": ["Alice", "tavern"],
        "trust": 0.9,
        "importance": 5,
        "created": NOW.isoformat(),
        "valid_from": EVENT["at"],
        "id": "fact-0",
        "invalid_at": None,
        "superseded_by": None,
    }
    assert called.message.artifact == {"written": ["fact-0"]}


async def test_a_repeated_tick_stores_no_fact_twice_and_its_second_call_drops_none() -> None:
    bench = told_tick()
    for _ in range(2):
        bench.state = tick_state(event=TOLD)
        await bench.call("store_memory", facts=[{"text": "The gate is shut"}, {"text": "It rains"}])
        await bench.call("store_memory", facts=[{"text": "The mill is old"}])
    texts = sorted(fact["text"] for fact in bench.shelf.facts.values())
    assert texts == ["It rains", "The gate is shut", "The mill is old"]


async def test_a_repeated_tick_keeps_the_facts_of_both_tries_without_doubles() -> None:
    bench = told_tick()
    await bench.call("store_memory", facts=[{"text": "The gate is shut"}, {"text": "It rains"}])
    bench.state = tick_state(event=TOLD, tick=44)
    told = await bench.call("store_memory", facts=[{"text": "It rains"}, {"text": "It is cold"}])
    assert told.result["stored"] == 2
    texts = [fact["text"] for fact in bench.shelf.facts.values()]
    assert texts == ["The gate is shut", "It rains", "It is cold"]
    assert told.message.artifact == {"written": ["fact-1", "fact-2"]}


async def test_the_same_fact_twice_in_one_call_is_stored_and_counted_once() -> None:
    bench = told_tick()
    told = await bench.call("store_memory", facts=[{"text": "It rains"}, {"text": "It  rains"}])
    assert (told.result["stored"], len(bench.shelf.facts)) == (1, 1)
    asleep = night()
    twice = [{"text": "It rains", "source_ids": ["e"]}] * 2
    assert (await asleep.call("store_memory", facts=twice)).result["stored"] == 1
    assert len(drafts(asleep)) == 1


async def test_ticks_and_nights_that_cite_the_same_entry_share_no_fact() -> None:
    bench = Bench()
    entry_id = (await bench.call("add_journal_entry", content="The gate")).result["entry_id"]
    shown = {entry_id: shown_entry("a", sources=["message-1"])}
    shown[entry_id]["id"] = entry_id
    facts = [{"text": "The gate is shut", "source_ids": [entry_id]}]
    for event, tick in ((EVENT, 42), ({**EVENT, "id": "m2"}, 43), (None, 44), (None, 45)):
        bench.state = tick_state(event=event, tick=tick)
        assert (await bench.call("store_memory", facts=facts)).result["stored"] == 1
    ops = [fact["op"] for fact in bench.shelf.facts.values()]
    for now in ("2025-12-07T03:00:00+00:00", "2025-12-08T03:00:00+00:00"):
        state = tick_state(event=None, loop=None)
        asleep = Bench(state=state, plan=PlanCollector(shown))
        assert state["context"] is not None
        state["context"]["now"] = now
        await asleep.call("store_memory", facts=facts)
        ops += [draft["op"] for draft in drafts(asleep)]
    assert len(set(ops)) == 6


async def test_awake_heard_events_and_journal_entries_may_be_cited_too() -> None:
    heard = {**EVENT, "id": "heard-1", "sender": "Bob", "addressed": False}
    bench = Bench(state=tick_state(context_buffer=[heard]))
    note = await bench.call("add_journal_entry", content="The gate is shut", importance=8)
    note_id = note.result["entry_id"]
    called = await bench.call(
        "store_memory", facts=[{"text": "The gate is shut", "source_ids": ["heard-1", note_id]}]
    )
    assert called.result["stored"] == 1
    (fact,) = bench.shelf.facts.values()
    assert fact["source_events"] == ["heard-1", "message-1"]
    assert note_id in fact["source_entries"]
    assert (fact["trust"], fact["importance"]) == (0.6, 8)


async def test_a_fact_without_any_source_or_of_the_length_of_a_book_is_refused() -> None:
    bench = Bench(state=tick_state(event=None))
    called = await bench.call("store_memory", facts=[{"text": "The gate is shut"}])
    assert called.result["success"] is False
    assert "names no source" in called.result["rejected"][0]["error"]
    assert bench.shelf.facts == {}
    called = await Bench().call("store_memory", facts=[{"text": "The gate is shut. " * 1_000}])
    assert "18,000 characters, more than 10,000" in called.result["rejected"][0]["error"]


async def test_a_note_on_oneself_is_never_made_into_a_fact() -> None:
    bench = Bench()
    note = await bench.call("add_journal_entry", content="Short answers work", tags=["self"])
    called = await bench.call(
        "store_memory",
        facts=[{"text": "Short answers work", "source_ids": [note.result["entry_id"]]}],
    )
    assert note.result["entry_id"] in called.result["rejected"][0]["error"]
    assert bench.shelf.facts == {}


async def test_facts_of_a_night_join_the_plan_with_their_sources() -> None:
    bench = says(night(), ee="I moved to Rome")
    called = await bench.call(
        "store_memory",
        facts=[
            {"text": "Alice moved to Rome", "source_ids": ["ee", "e"], "speaker": "Alice"},
            {"text": "It rained", "source_ids": ["e", "eee", "e"]},
        ],
    )
    assert called.result == {"success": True, "stored": 2, "rejected": [], "not_cited": []}
    first, second = drafts(bench)
    assert first["source_entries"] == ["ee", "e"]
    assert first["source_events"] == ["m2", "m1"]
    assert (first["speaker"], first["importance"]) == ("Alice", 7)
    assert first["valid_from"] == "2025-12-02T10:00:00+00:00"
    assert (second["source_entries"], second["speaker"]) == (["e", "eee"], None)
    assert bench.shelf.facts == {}


async def test_a_night_accepts_only_shown_ids_and_names_the_others() -> None:
    bench = night()
    called = await bench.call(
        "store_memory",
        facts=[
            {"text": "Alice moved to Rome", "source_ids": ["e", "m1", "made-up"]},
            {"text": "Bob likes tea", "source_ids": ["eee"]},
            {"text": "It rained"},
        ],
    )
    assert called.result["success"] is True
    assert called.result["stored"] == 1
    assert called.result["rejected"] == [
        {"text": "Alice moved to Rome", "error": "Unknown source_ids: m1, made-up"},
        {"text": "It rained", "error": "It names no source: give source_ids"},
    ]
    assert called.result["not_cited"] == ["1", "2"]
    assert called.result["suggestion"]


async def test_entries_cited_by_earlier_calls_are_not_listed_again() -> None:
    bench = night()
    first, second = [
        await bench.call("store_memory", facts=[{"text": text, "source_ids": [id_]}])
        for text, id_ in (("It rained", "e"), ("Bob likes tea", "eee"))
    ]
    assert (first.result["stored"], second.result["stored"]) == (1, 1)
    assert set(second.result["not_cited"]) < set(first.result["not_cited"])


async def test_the_event_in_hand_is_no_source_in_a_night() -> None:
    bench = night()
    bench.state["event"] = EVENT
    called = await bench.call("store_memory", facts=[{"text": "It rained"}])
    assert called.result["stored"] == 0


async def test_the_guard_judges_a_fact_with_its_speaker() -> None:
    bench = says(night(), e="I love my garden, you know")
    facts = [
        {"text": "I love my garden", "source_ids": ["e"], "speaker": "Alice"},
        {"text": "I love my garden", "source_ids": ["e"]},
        {"text": "I love my garden", "source_ids": ["e"], "speaker": "-"},
        {"text": "The assistant suggested a rest", "source_ids": ["e"], "speaker": "Alice"},
    ]
    called = await bench.call("store_memory", facts=facts)
    assert called.result["stored"] == 1
    assert len(called.result["rejected"]) == 3
    assert drafts(bench)[0]["speaker"] == "Alice"


async def test_fact_ids_come_from_sources_and_place_over_the_whole_loop_and_never_from_text() -> (
    None
):
    one, other = night(), night()
    for bench, word in ((one, "red"), (other, "blue")):
        for text in (f"The door is {word}", f"The roof is {word}"):
            await bench.call("store_memory", facts=[{"text": text, "source_ids": ["e"]}])
        await bench.call("store_memory", facts=[{"text": "It rains", "source_ids": ["eee"]}])
    ids = [draft["op"] for draft in drafts(one)]
    assert ids == [
        operation_id("fact", f"night:{NOW.isoformat()}", *place)
        for place in (("e", "m1", "0"), ("e", "m1", "1"), ("eee", "m3", "0"))
    ]
    assert ids == [draft["op"] for draft in drafts(other)]


async def test_the_order_in_which_sources_are_cited_does_not_change_the_id() -> None:
    one, other = night(), night()
    await one.call("store_memory", facts=[{"text": "x", "source_ids": ["e", "eee"]}])
    await other.call("store_memory", facts=[{"text": "x", "source_ids": ["eee", "e"]}])
    assert drafts(one)[0]["op"] == drafts(other)[0]["op"]


def says(bench: Bench, **contents: str) -> Bench:
    assert bench.plan is not None
    assert bench.plan.shown is not None
    for entry_id, content in contents.items():
        bench.plan.shown[entry_id]["content"] = content
    return bench


async def test_a_fact_that_the_assistant_confirmed_before_is_stored() -> None:
    bench = says(night(), e="We sold 212 croissants today")
    noted = AIMessage("Noted: 212 croissants were sold.")
    bench.state["messages"] = [noted, SystemMessage("212 croissants sold")]
    fact = {"text": "212 croissants were sold.", "source_ids": ["e"], "speaker": "Alice"}
    assert (await bench.call("store_memory", facts=[fact])).result["stored"] == 1


async def test_a_fact_that_joins_two_peoples_statements_names_both() -> None:
    bench = says(night(), e="I bake a lemon loaf", eee="I bring the poppy seed rolls")
    fact = {
        "text": "Alice bakes a lemon loaf and Bob brings poppy seed rolls.",
        "source_ids": ["e", "eee"],
        "speaker": "Alice",
    }
    assert (await bench.call("store_memory", facts=[fact])).result["stored"] == 1
    (draft,) = drafts(bench)
    assert (draft["speaker"], draft["source_entries"]) == ("Alice and Bob", ["e", "eee"])


@pytest.mark.parametrize("speaker", ["Ingrid Solheim", "local", None])
async def test_the_local_user_may_be_called_by_name(speaker: str | None) -> None:
    bench = Bench(
        state=tick_state(event={**EVENT, "sender": "local", "text": "I never take calls before 9."})
    )
    fact = {"text": "Ingrid Solheim never takes calls before 9.", "speaker": speaker}
    called = await bench.call("store_memory", facts=[fact])
    assert called.result["stored"] == 1, called.result
    (stored,) = bench.shelf.facts.values()
    assert stored["speaker"] == "local"


async def test_other_words_are_kept_beside_the_text_bounded_and_once() -> None:
    bench = night()
    words = ["the  inn", "the inn", "", "x" * 200, *(f"word {n}" for n in range(20))]
    given = {"text": "A text", "source_ids": ["e"], "other_words": words}
    await bench.call("store_memory", facts=[given])
    (draft,) = drafts(bench)
    assert draft["text"] == "A text"
    assert draft["other_words"][:2] == ["the inn", "x" * 80]
    assert len(draft["other_words"]) == 8


@pytest.mark.parametrize(
    ("sender", "alias", "text"),
    [
        ("Theresa", "Tess", "Tess moved to Linz in May."),
        ("Theresa", "Tess", "Theresa moved to Linz in May."),
        ("goran.b", "Goran", "Goran moved to Linz in May."),
        ("local", "Ingrid", "Since May the home of Ingrid is in Linz."),
    ],
)
@pytest.mark.parametrize("asleep", [False, True])
async def test_a_fact_under_an_alias_of_its_speaker_is_the_speakers(
    asleep: bool, sender: str, alias: str, text: str
) -> None:
    event: Event = {**EVENT, "sender": sender, "text": "I moved to Linz in May."}
    bench = Bench(state=tick_state(event=event))
    if asleep:
        entry = {**shown_entry("e", sources=["m"], speaker=sender), "content": event["text"]}
        bench.plan = PlanCollector({"e": cast(JournalEntry, entry)})
        bench.state = tick_state(event=None, loop=None)
    profile = {**new_profile("one", sender, EVENT["at"]), "aliases": [alias], "senders": [sender]}
    await bench.store.aput(SCOPE.namespace("entities"), "one", profile)
    for name in (sender, alias):
        key = name_key(name)
        await bench.store.aput(SCOPE.namespace("entity_names"), key, {"id": "one"})
    given = {"text": text, "speaker": alias, "source_ids": ["e"] if asleep else []}
    called = await bench.call("store_memory", facts=[given])
    assert called.result["rejected"] == []
    (fact,) = drafts(bench) if asleep else bench.shelf.facts.values()
    assert fact["speaker"] == sender


@pytest.mark.parametrize("giver", ["Ines", "Mallory"])
async def test_a_fact_has_a_full_name_that_its_speaker_gave_before(giver: str) -> None:
    event: Event = {**EVENT, "sender": "Ines", "text": "I want to move to Linz in May."}
    bench = Bench(state=tick_state(event=event))
    name = "Inés Robledo"
    noticed = {"id": "o", "text": "x", "at": EVENT["at"], "speaker": giver, "names": [name]}
    profile = {**new_profile("one", "Ines", EVENT["at"]), "aliases": [name], "senders": ["Ines"]}
    profile |= {"observations": [{**noticed, "trust": 0.9, "sources": [], "consolidated": True}]}
    await bench.store.aput(SCOPE.namespace("entities"), "one", profile)
    for key in map(name_key, ("Ines", name)):
        await bench.store.aput(SCOPE.namespace("entity_names"), key, {"id": "one"})
    given = {"text": f"{name} wants to move to Linz in May.", "speaker": "Ines"}
    called = await bench.call("store_memory", facts=[given])
    assert [*map(len, called.result["rejected"])] == ([] if giver == "Ines" else [2])


@pytest.mark.parametrize("shown", [True, False])
async def test_a_night_takes_a_fact_that_it_looked_up_for_the_fact_s_own_entries(
    shown: bool,
) -> None:
    bench = night()
    assert bench.plan is not None
    told = {"content": "I moved to Rome in May", "timestamp": "2025-11-01T10:00:00+00:00"}
    old = {**shown_entry("event_20251101_old", sources=["m0"]), **told}
    await bench.store.abatch(journal.puts(SCOPE, cast(JournalEntry, old)))
    draft: Any = {"op": "f", "text": "Alice lives in Rome.", "source_entries": [old["id"], "ee"]}
    (fact,) = await bench.shelf.add(SCOPE, [draft])
    looked_up = {"memories": [{"id": fact["id"] if shown else "fact-9", "text": "Rome"}]}
    answered = ToolMessage(json.dumps(looked_up), tool_call_id="1", name="recall_memories")
    bench.state["exchange"] = [answered]
    given = {"text": "Alice moved to Rome in May", "source_ids": ["1", fact["id"]]}
    called = await bench.call("store_memory", facts=[{**given, "speaker": "Alice"}])
    if shown:
        (made,) = drafts(bench)
        assert made["source_entries"] == ["e", old["id"], "ee"]
        assert [*bench.plan.looked_up] == [old["id"]]
        assert made["source_events"] == ["m1", "m0", "m2"]
        assert called.result["not_cited"] == ["3"]
    else:
        assert called.result["rejected"][0]["error"] == f"Unknown source_ids: {fact['id']}"


@pytest.mark.parametrize("cite", ["fact", "event", "unseen"])
async def test_a_tick_cites_what_it_recalled(cite: str) -> None:
    bench = Bench(state=tick_state(event={**EVENT, "sender": "Alice", "text": "Yes, it stands."}))
    text = "If the varnish isn't dry by 11 December 2025, we use spirit."
    told = {"content": text, "timestamp": "2025-11-01T10:00:00+00:00"}
    old = {**shown_entry("event_20251101_m0", sources=["m0"], speaker="Alice"), **told}
    await bench.store.abatch(journal.puts(SCOPE, cast(JournalEntry, old)))
    draft: Any = {"op": "f", "text": text, "source_entries": [old["id"]], "source_events": ["m0"]}
    (fact,) = await bench.shelf.add(SCOPE, [draft])
    looked_up = {"memories": [{"id": fact["id"], "kind": "fact", "text": text, "sources": ["m0"]}]}
    answered = ToolMessage(json.dumps(looked_up), tool_call_id="1", name="recall_memories")
    if cite != "unseen":
        bench.state["messages"] = [marked(answered, tick=bench.state["tick"])]
    given = {"text": text, "source_ids": [fact["id"] if cite == "fact" else "m0"]}
    called = await bench.call("store_memory", facts=[{**given, "speaker": "Alice"}])
    errors = [one["error"] for one in called.result["rejected"]]
    assert errors == (["Unknown source_ids: m0"] if cite == "unseen" else [])
