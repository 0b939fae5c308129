"""The pages of memories: the list, one memory, correcting and forgetting."""

from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from graph.inspector import memories
from graph.inspector.memories import Shown, day_bounds, told
from memory.errors import InputError
from tests.support.visiting import Visitor, text_of


async def fact_about(visitor: Visitor, word: str) -> str:
    facts = await visitor.agent.resources.semantic.all(visitor.agent.scope)
    return next(fact["id"] for fact in facts if word in fact["text"])


async def test_the_list_has_facts_and_entries_with_who_said_them(visitor: Visitor) -> None:
    shown = text_of(await visitor.get("/memory"))
    for words in ("Paris", "Rex is afraid of thunder", "dentist", "Ada", "Ben"):
        assert words in shown


async def test_a_search_says_why_each_was_found(visitor: Visitor) -> None:
    page = await visitor.get("/memory", q="thunder")
    assert "Rex is afraid of thunder" in text_of(page)
    assert "shared words" in page
    assert "What was said around it fits the search." in page
    assert "afraid of <mark>thunder</mark>." in page
    page = await visitor.get("/memory", q="dog Rex thunder")
    assert text_of(page).count("Why it was found") > 1
    full = [one for one in page.split('<rect class="fill" width="')[1:] if one.startswith("100.0")]
    assert len(full) == 1  # One scale: the largest part of all results fills its bar.
    assert '<rect class="fill"' in page


async def test_a_filter_finds_what_is_not_among_the_best(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "FOUND", 1)
    assert "The best 1 memories" in text_of(await visitor.get("/memory", q="thunder"))
    found = text_of(await visitor.get("/memory", q="thunder", kind="entry"))
    assert "My dog Rex is afraid of thunder." in found
    assert "Nothing fits" in text_of(await visitor.get("/memory", q="%", kind="entry"))


async def test_a_search_has_pages(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "ON_A_PAGE", 1)
    first, second = [await visitor.get("/memory", q="dog Rex", page=number) for number in (1, 2)]
    assert "?q=dog+Rex&amp;page=2" in first
    assert text_of(first) != text_of(second)
    assert "Why it was found" in text_of(second)


async def test_the_list_is_filtered_by_person_kind_and_day(visitor: Visitor) -> None:
    by_ben = text_of(await visitor.get("/memory", person="ben"))
    assert "Rex" in by_ben
    assert "Paris" not in by_ben
    entries = text_of(await visitor.get("/memory", kind="entry", day="2026-03-04"))
    assert "dentist" in entries
    assert "Paris" not in entries
    assert "2026-05-02, not" in text_of(await visitor.get("/memory", 422, day="soon"))
    eastern: Any = SimpleNamespace(zone=ZoneInfo("Asia/Tokyo"))
    with pytest.raises(InputError, match="0001-01-01"):
        day_bounds("0001-01-01", eastern)


async def test_a_memory_leads_to_the_words_it_rests_on(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "thunder")
    page = await visitor.get(f"/memory/{id_}")
    shown = text_of(page)
    assert "Where it was said" in shown
    assert "My dog Rex is afraid of thunder." in shown
    assert "Night of 2 Mar 2026 09:00 learned it" in shown
    assert "<svg" in page
    entry = next(one for one in page.split('"') if one.startswith("/default/memory/event_"))
    assert "made from My dog Rex" in shown
    source = text_of(await visitor.get(entry.removeprefix("/default")))
    assert "made into My dog Rex" in source
    assert "made from" not in source.partition("Linked with")[2]


async def test_a_correction_is_shown_then_made_then_traced(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "Paris")
    preview = text_of(await visitor.get(f"/correct/{id_}", text="Ada lives in Oslo."))
    assert "as said by you" in preview
    assert "What would change" in preview
    assert "Ada lives in Oslo." in preview
    facts = await visitor.agent.resources.semantic.all(visitor.agent.scope)
    assert not any("Oslo" in fact["text"] for fact in facts)
    page = await visitor.after(await visitor.post(f"/correct/{id_}", text="Ada lives in Oslo."))
    shown = text_of(page)
    assert "Corrected." in shown
    assert "corrected by you" in shown
    assert "first said by Ada 2 Mar 2026 09:00" in shown
    log = text_of(await visitor.get("/log", who="you"))
    assert "· you · ok fact corrected: I live in Paris and work at the harbour. is now Ada" in log
    assert "1 line," in log
    assert "What replaced what" in shown
    assert "Paris" in shown
    ended = text_of(await visitor.get("/memory", holds="ended"))
    assert "Paris" in ended
    assert "Oslo" not in ended
    again = await visitor.client.get(f"/default/correct/{id_}", params={"text": "I live in Rome."})
    assert "no longer holds since" in text_of(await visitor.after(again))


async def test_a_correction_in_the_first_person_is_by_who_said_it(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "Paris")
    preview = await visitor.get(f"/correct/{id_}", text="I live in Oslo.")
    assert "as said by Ada" in text_of(preview)
    assert 'name="by" value="Ada"' in preview
    refused = await visitor.get(f"/correct/{id_}", text="I live in Oslo.", by="you")
    assert "write it about Ada" in text_of(refused)
    assert "Correct it" not in text_of(refused)
    shown = text_of(
        await visitor.after(await visitor.post(f"/correct/{id_}", text="I live in Oslo.", by="Ada"))
    )
    assert "corrected by Ada" in shown


async def test_a_correction_without_words_changes_nothing_and_says_so(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "Paris")
    for empty in (" ", "\x00"):
        answer = await visitor.post(f"/correct/{id_}", 422, text=empty)
        assert 'role="alert"' in answer.text
    assert await fact_about(visitor, "Paris") == id_


async def test_a_long_correction_is_previewed_whole(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "Paris")
    long = "I live in Oslo, " + "far up the hill " * 100 + "by the tower."
    assert f'value="{long}"' in await visitor.get(f"/correct/{id_}", text=long)


def test_a_link_is_read_from_the_nearer_end() -> None:
    old = Shown("a", "fact", "I live in Paris", "2026-03-01", None, holds=False)
    new = Shown("b", "fact", "I live in Oslo", "2026-03-02", None, holds=True)
    entry, insight = old._replace(kind="entry"), old._replace(kind="insight")
    assert told("supersedes", new, old) == "replaces"
    assert told("supersedes", old, new) == "replaced by"
    ended = new._replace(holds=False)
    assert (told("supersedes", ended, old), told("supersedes", old, ended)) == (
        "replaces",
        "replaced by",
    )
    assert (told("evidence", insight, entry), told("evidence", entry, insight)) == (
        "rests on",
        "led to",
    )


async def test_forgetting_says_first_what_goes_and_that_it_is_for_good(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "thunder")
    preview = text_of(await visitor.get(f"/forget/{id_}"))
    assert "What would be forgotten" in preview
    assert "cannot be taken back" in preview
    assert "journal entry My dog Rex is afraid of thunder." in preview
    assert "kept prompts of ticks, all there are 5" in preview
    assert "journal entry 1" in preview
    assert "other" not in preview
    assert await fact_about(visitor, "thunder") == id_
    await visitor.post(f"/forget/{id_}")
    await visitor.wait()
    assert "this is for good" in text_of(await visitor.get("/progress"))
    await visitor.get(f"/memory/{id_}", 404)
    assert "afraid of thunder" not in text_of(await visitor.get("/memory"))


async def test_an_entry_of_the_journal_is_not_corrected_but_can_be_forgotten(
    visitor: Visitor,
) -> None:
    page = await visitor.get("/memory", kind="entry", person="Ben", day="2026-03-02")
    entry = next(one for one in page.split('"') if one.startswith("/default/memory/event_"))
    path = entry.removeprefix("/default/memory/")
    await visitor.get(f"/memory/{path}")
    await visitor.get(f"/correct/{path}", 404)
    preview = text_of(await visitor.get(f"/forget/{path}"))
    assert "fact" in preview
    assert "dog Rex" in preview
    await visitor.post(f"/forget/{path}")
    await visitor.wait()
    await visitor.get(f"/memory/{path}", 404)
    await visitor.get(f"/forget/{path}", 404)


async def test_a_memory_tells_who_was_shown_it(visitor: Visitor) -> None:
    shown = text_of(await visitor.get(f"/memory/{await fact_about(visitor, 'thunder')}"))
    assert "a step on its own goals. Tick 3 Ben" in shown
    assert "What is my dog Rex afraid of?" in shown
    goal = text_of(await visitor.get("/memory", kind="entry", q="dentist"))
    assert "dentist" in goal
    newest = await visitor.get("/memory", kind="entry", day="2026-03-04")
    entry = next(one for one in newest.split('"') if one.startswith("/default/memory/event_"))
    unseen = text_of(await visitor.get(entry.removeprefix("/default")))
    assert "Never, as far as ticks are kept." in unseen
    assert "09:00 · answered in Tick 5" in unseen
    assert "These have no further links" in shown
    assert "Recalled for 0 answers that used it" in shown


async def test_a_busy_agent_is_read_and_not_changed(visitor: Visitor) -> None:
    id_ = await fact_about(visitor, "Paris")
    async with visitor.home.agent_lock(visitor.agent.scope.thread):
        await visitor.get("/memory")
        await visitor.get("/today")
        answer = await visitor.post(f"/correct/{id_}", 409, text="Ada lives in Oslo.")
    assert "in use by" in text_of(answer.text)
    assert await fact_about(visitor, "Paris") == id_


async def test_a_fact_and_the_entry_with_its_words_are_one_line(visitor: Visitor) -> None:
    page = await visitor.get("/memory", person="Ben", day="2026-03-02")
    assert page.count(">My dog Rex is afraid of thunder.</a>") == 1
    assert "the same words in the journal: Ben, 2 Mar 2026 09:00" in text_of(page)
    assert "2 memories, the newest first; 1 of them on this page stands under" in text_of(page)
    assert '"/default/memory/event_20260302_' in page


async def test_today_shows_the_agent_at_a_glance(visitor: Visitor) -> None:
    memory = (await visitor.agent.aget_state()).values["session_memory"]
    said = {"key_facts": ["Tea at four."], "said_by": {"Tea at four.": "Ben"}}
    await visitor.agent.context.replace_state({"session_memory": {**memory, **said}})
    shown = text_of(await visitor.get("/today"))
    assert "Session memory Tea at four. Ben" in shown
    for words in ("Awake", "Since the last night", "can be taken back", "Projects", "spent today"):
        assert words in shown
