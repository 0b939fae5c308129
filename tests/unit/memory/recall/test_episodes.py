"""Episodes: the journal's entries are found as soon as somebody recalls, each once."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.store.memory import InMemoryStore

from memory.facts.semantic import Episode, SemanticMemory
from memory.facts.table import scope_filters
from memory.journal import entries as journal
from memory.recall import episodes
from memory.recall.episodes import episode_of, index_entries, said_before, session_of
from memory.recall.recall import named_speakers
from memory.records.records import SELF, JournalEntry
from memory.text.analysis import terms
from tests.support.facts import ANA, BEN, WordEmbeddings, memory_at
from tests.support.recalling import START, entry, marks, rows, write


async def test_an_entry_becomes_a_row_once_and_its_mark_goes(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    said = entry("harp for sale, Ben!", importance=7)
    await write(store, said)
    assert await marks(store) == [said["id"]]
    for _ in range(2):
        await index_entries(store, memory, ANA)
    assert await marks(store) == []
    [row] = rows(memory)
    assert row.payload == {
        **scope_filters(ANA),
        "kind": "episode",
        "op": said["id"],
        "data": "harp for sale, Ben!",
        "speaker": "Ana",
        "entities": [],
        "trust": 0.8,
        "importance": 7,
        "valid_from": said["timestamp"],
        "source_entries": [said["id"]],
        "source_events": ["e-harp"],
        "session": "2026-03-05 on -",
        "embed": "harp for sale, Ben!",
    }


async def test_rows_of_another_scope_are_not_touched(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    await write(store, entry("harp"))
    await index_entries(store, memory, BEN)
    assert rows(memory) == []
    assert len(await marks(store)) == 1


async def test_an_answer_is_found_by_the_words_before_it(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    await write(store, entry("Which harp?", speaker="Ben"), entry("Mine, Ben.", minutes=1))
    await index_entries(store, memory, ANA)
    [found] = memory.lookup(
        ANA, [(terms("harp"), None)], kinds=["episode"], limit=9, include_superseded=True
    )
    asked, answer = [row.payload for row, _ in found.worded]
    assert (asked["data"], answer["data"]) == ("Which harp?", "Mine, Ben.")
    assert answer["source_entries"] == [answer["op"], asked["op"]]
    assert answer["source_events"] == ["e-Mine,"]
    assert answer["embed"] == "Mine."


async def test_what_was_said_before_is_known_whether_it_came_with_the_entry_or_earlier(
    store: InMemoryStore, memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [entry(f"n{number}", minutes=number) for number in range(14)]
    monkeypatch.setattr(episodes, "BATCH", 3)
    await write(store, *talk[:10])
    await index_entries(store, memory, ANA)
    await write(store, talk[10], talk[11])
    await index_entries(store, memory, ANA)
    # One that comes late takes its place in time, far from the end.
    late = entry("late", minutes=2.5)
    await write(store, late)
    await index_entries(store, memory, ANA)
    # One that is indexed again keeps what it has.
    await write(store, talk[5])
    await index_entries(store, memory, ANA)
    found = {row.payload["data"]: row.payload["source_entries"][1:] for row in rows(memory)}
    ids = {one["content"]: one["id"] for one in talk}
    assert found["n0"] == []
    steady = (2, *range(5, 12))
    assert all(found[f"n{n}"] == [ids[f"n{n - 1}"], ids[f"n{n - 2}"]] for n in steady)
    assert found["late"] == [ids["n2"], ids["n1"]]
    assert found["n3"] == [late["id"], ids["n2"]]
    assert found["n4"] == [ids["n3"], late["id"]]


def test_after_a_pause_a_conversation_begins_anew() -> None:
    def said(*minutes: float) -> list[episodes.Utterance]:
        at = [(START + timedelta(minutes=one)).isoformat() for one in minutes]
        return [episodes.Utterance(one, f"id {one}", "Ben", one) for one in at]

    now = entry("now", minutes=200)
    assert [one.at for one in said_before(now, said(199, 150, 145, 201))] == [
        one.at for one in said(199, 150)
    ]
    assert len(said_before(now, said(199, 100))) == 1
    assert said_before(now, said(130, 200.5)) == []
    assert said_before(now, []) == []


@pytest.mark.parametrize(
    ("changes", "session"),
    [
        ({"channel": "town"}, "2026-03-05 on town"),
        ({"channel": None}, "2026-03-05 on -"),
        ({"source_type": "direct"}, "2026-03-05 with Ana"),
        ({"source_type": "direct", "channel": "town"}, "2026-03-05 on town"),
        ({"source_type": "inference", "id": "note_1_x"}, "note_1_x"),
        ({"source_type": "compaction", "id": "compact_1_x"}, "compact_1_x"),
    ],
)
def test_a_session_is_a_days_talk_in_one_place(changes: dict[str, Any], session: str) -> None:
    assert session_of(entry("a", **changes)) == session


async def test_what_was_written_first_and_said_later_takes_the_words_before_it(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    later, after, first = entry("later", minutes=2), entry("after", minutes=4), entry("first")
    for one in (later, after, first):
        await write(store, one)
        await index_entries(store, memory, ANA)
    found = {row.payload["data"]: row.payload["source_entries"][1:] for row in rows(memory)}
    assert found == {"first": [], "later": [first["id"]], "after": [later["id"], first["id"]]}


async def test_entries_of_two_channels_do_not_lend_each_other_words(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    await write(store, entry("one", channel="a"), entry("two", channel="b", minutes=1))
    await index_entries(store, memory, ANA)
    assert [row.payload["source_entries"] for row in rows(memory)] == [
        ["event_20260305_one"],
        ["event_20260305_two"],
    ]


async def test_notes_on_oneself_are_not_indexed_and_a_tag_given_later_takes_one_out(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    note = entry("gate")
    await write(store, note, entry("own strategy", tags=[SELF]))
    await index_entries(store, memory, ANA)
    assert [row.payload["data"] for row in rows(memory)] == ["gate"]
    await write(store, {**note, "tags": [SELF]})
    await index_entries(store, memory, ANA)
    assert rows(memory) == []
    assert await marks(store) == []


async def test_an_entry_that_is_gone_loses_its_row(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    said = entry("harp")
    await write(store, said)
    await index_entries(store, memory, ANA)
    await store.adelete(journal.day_of(ANA, said["id"]), said["id"])
    await store.abatch([journal.unindexed(ANA, said)])
    await index_entries(store, memory, ANA)
    assert rows(memory) == []


async def test_a_change_of_an_entry_changes_its_row_and_keeps_a_vector_that_fits(
    store: InMemoryStore, tmp_path: Path
) -> None:
    embeddings = WordEmbeddings()
    memory = memory_at(tmp_path, embeddings)
    said = entry("harp")
    for one in (said, {**said, "importance": 9}, {**said, "content": "harp sold"}):
        await write(store, cast(JournalEntry, one))
        await index_entries(store, memory, ANA)
    [row] = rows(memory)
    assert (row.payload["importance"], row.payload["data"]) == (3, "harp sold")
    assert embeddings.calls == [["harp"], ["harp sold"]]
    memory.close()


async def test_who_spoke_is_known_by_name_in_a_query(
    store: InMemoryStore, memory: SemanticMemory
) -> None:
    await write(store, entry("one", speaker="Ana Lopez"), entry("two", speaker="Ben"))
    await index_entries(store, memory, ANA)

    async def known(query: str) -> Sequence[str]:
        return sorted(await named_speakers(store, ANA, query))

    assert await known("What did ana lopez say to Ben?") == ["Ana Lopez", "Ben"]
    assert await known("What did Ana say to Benny?") == []
    assert await known("word " * 500 + "Ben") == []
    assert await named_speakers(store, BEN, "Ben") == set()


def test_an_episode_is_what_a_table_takes() -> None:
    given = episode_of(entry("harp", speaker=None, consolidation="faded", origins=["Olaf"]))
    assert set(given) == set(Episode.__annotations__)
    plain = episode_of(entry("harp", speaker=None))
    assert set(given) - set(plain) == {"minor", "faded", "origins"}
