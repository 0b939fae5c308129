"""Finding memories of all kinds in one scope, and embedding what waits, in both databases."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.errors import MemoryStoreError
from memory.facts.semantic import EMBEDDED_CHARS, Episode, Matches, SemanticMemory
from memory.facts.table import Counted, Kind, SessionPlace
from memory.records.records import Scope
from memory.text.analysis import terms
from tests.support.facts import ANA, BEN, WordEmbeddings, draft, nearest_facts, texts
from tests.support.memories import Memories

KINDS: tuple[Kind, ...] = ("fact", "episode")


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture
def memory(memories: Memories, embeddings: WordEmbeddings) -> SemanticMemory:
    return memories.open(embeddings)


def episode(op: str, text: str, **fields: Any) -> Episode:
    made = {
        "kind": "episode",
        "op": op,
        "data": text,
        "speaker": "Ana",
        "entities": [],
        "trust": 0.9,
        "importance": 5,
        "valid_from": "2026-03-02T09:00:00+00:00",
        "source_entries": [op],
        "source_events": [f"event_{op}"],
        "session": "s1",
    }
    return cast(Episode, {**made, **fields})


async def look(
    memory: SemanticMemory, scope: Scope, query: str, *, kinds: Sequence[Kind] = KINDS, **more: Any
) -> Matches:
    options: dict[str, Any] = {"limit": 10, "include_superseded": False, **more}
    vector = await memory.embed_query(query)
    [found] = memory.lookup(scope, [(terms(query), vector)], kinds=kinds, **options)
    return found


def told(found: Any) -> list[str]:
    return [row.payload["data"] for row, _ in found]


async def test_facts_and_episodes_are_found_together_and_apart(memory: SemanticMemory) -> None:
    await memory.add(ANA, [draft("a", "red fox")])
    await memory.put_episodes(ANA, [episode("e1", "a red fox came"), episode("e2", "an owl")])
    assert await memory.embed_waiting(10) == 2
    found = await look(memory, ANA, "red fox")
    assert (told(found.near)[:2], told(found.worded)) == (["red fox", "a red fox came"],) * 2
    for kind, text in (("fact", "red fox"), ("episode", "a red fox came")):
        alone = await look(memory, ANA, "red fox", kinds=[cast(Kind, kind)])
        assert (told(alone.near)[0], told(alone.worded)) == (text, [text])
    # A fact takes no entry's room.
    both = await look(memory, ANA, "red fox", limit=1)
    assert told(both.near) == told(both.worded) == ["red fox", "a red fox came"]
    assert await memory.count(ANA) == 1
    assert texts(await memory.all(ANA)) == ["red fox"]
    assert await look(memory, BEN, "red fox") == Matches([], [], Counted(0, {}))


async def test_a_lookup_without_a_vector_is_by_words_alone(memory: SemanticMemory) -> None:
    await memory.put_episodes(ANA, [episode("e1", "a red fox came")])
    assert await memory.embed_query("...") is not None
    assert await memory.embed_query("   ") is None
    [found] = memory.lookup(ANA, [(["fox"], None)], kinds=KINDS, limit=5, include_superseded=False)
    assert (found.near, told(found.worded)) == ([], ["a red fox came"])


async def test_a_superseded_fact_and_a_doubtful_source_are_left_out(memory: SemanticMemory) -> None:
    old, _ = await memory.add(ANA, [draft("a", "red fox"), draft("b", "red panda", trust=0.3)])
    await memory.update(ANA, old["id"], {"invalid_at": "2026-03-03T00:00Z"})
    await memory.put_episodes(ANA, [episode("e1", "a red owl", trust=0.6)])
    await memory.embed_waiting(10)
    for trust, superseded, expected in (
        (None, False, ["red panda", "a red owl"]),
        (None, True, ["red fox", "red panda", "a red owl"]),
        (0.6, False, ["a red owl"]),
        (0.9, True, ["red fox"]),
    ):
        found = await look(memory, ANA, "red", min_trust=trust, include_superseded=superseded)
        assert sorted(told(found.near)) == sorted(told(found.worded)) == sorted(expected)


async def test_an_episode_put_again_is_one_and_changes_where_it_differs(
    memory: SemanticMemory, embeddings: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = episode("e3", "red fox\nan owl", terms=[])
    await memory.put_episodes(ANA, [episode("e1", "red fox"), episode("e2", "an owl"), hidden])
    await memory.embed_waiting(10)
    found = await look(memory, ANA, "red fox owl")
    assert sorted(told(found.worded)) == ["an owl", "red fox"]
    assert len(found.near) == 3
    changed = episode("e2", "a blue whale")
    heavier = episode("e1", "red fox", importance=9, embed="red fox")
    await memory.put_episodes(ANA, [heavier, changed, hidden])
    with monkeypatch.context() as watched:
        watched.setattr(memory.open_table(), "update", None)
        await memory.put_episodes(ANA, [heavier, changed])
    assert await memory.count_unembedded(ANA) == 1
    found = await look(memory, ANA, "red fox owl")
    [(row, _)] = found.worded
    assert (row.payload["data"], row.payload["importance"]) == ("red fox", 9)
    assert sorted(told(found.near)) == ["red fox", "red fox\nan owl"]
    await memory.embed_waiting(10)
    assert len(embeddings.calls) == 2
    assert embeddings.calls[1] == ["a blue whale"]


async def test_an_episode_put_again_with_other_terms_is_found_by_them_and_keeps_its_vector(
    memory: SemanticMemory,
) -> None:
    await memory.put_episodes(ANA, [episode("e1", "red fox", terms=["red", "fox"])])
    await memory.embed_waiting(10)
    await memory.put_episodes(ANA, [episode("e1", "red fox", terms=["fox", "owl"])])
    assert told((await look(memory, ANA, "owl")).worded) == ["red fox"]
    found = await look(memory, ANA, "red")
    assert (told(found.near), found.worded) == (["red fox"], [])


async def test_the_same_entry_id_in_two_scopes_is_two_episodes(memory: SemanticMemory) -> None:
    for scope, text in ((ANA, "red fox"), (BEN, "red panda")):
        await memory.put_episodes(scope, [episode("e1", text)])
    assert told((await look(memory, ANA, "red")).worded) == ["red fox"]
    assert await memory.drop_episodes(ANA, ["e1", "e9"]) == 1
    assert told((await look(memory, ANA, "red")).worded) == []
    assert told((await look(memory, BEN, "red")).worded) == ["red panda"]


async def test_dropping_an_episode_leaves_a_fact_of_that_operation(memory: SemanticMemory) -> None:
    await memory.add(ANA, [draft("x", "red fox")])
    await memory.put_episodes(ANA, [episode("x", "red fox")])
    assert await memory.drop_episodes(ANA, ["x"]) == 1
    assert await memory.count(ANA) == 1


async def test_rows_and_their_neighbours_are_read_in_their_own_scope_alone(
    memory: SemanticMemory,
) -> None:
    hours = {"e1": "11", "e2": "09", "e3": "10"}
    for op, hour in hours.items():
        at = f"2026-03-02T{hour}:00:00+00:00"
        await memory.put_episodes(ANA, [episode(op, f"red {op}", valid_from=at)])
    await memory.put_episodes(BEN, [episode("e1", "red of ben")])
    places = memory.timeline(ANA, ["s1"])
    rows = memory.numbered(ANA, [place.seq for place in places])
    assert [rows[place.seq].payload["op"] for place in places] == ["e2", "e3", "e1"]
    [other] = memory.timeline(BEN, ["s1"])
    assert other == SessionPlace("s1", other.seq)
    assert memory.numbered(ANA, [other.seq]) == {}
    assert list(memory.numbered(BEN, [other.seq])) == [other.seq]


async def test_an_access_is_counted_in_its_own_scope_and_shown_on_the_fact(
    memory: SemanticMemory,
) -> None:
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    counted = {**fact, "access_count": 1, "last_access": "2026-03-02T09:00:00+00:00"}
    doubted = {**counted, "trust": 0.5}
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    await memory.touch(BEN, [fact["id"]], at)
    assert await memory.get(ANA, fact["id"]) == fact
    await memory.touch(ANA, [fact["id"], "nobody"], at)
    assert await memory.get(ANA, fact["id"]) == counted
    assert await memory.update(ANA, fact["id"], {"trust": 0.5}) == doubted


async def test_waiting_rows_are_embedded_in_one_call_the_newest_first(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    rows = [episode(f"e{n}", f"word{n}") for n in range(4)]
    await memory.put_episodes(ANA, [*rows, episode("blank", "  "), episode("twin", "word3")])
    await memory.put_episodes(BEN, [episode("e0", "of ben", embed="Ben: " + "x" * 9_999)])
    assert await memory.count_unembedded() == 7
    assert await memory.embed_waiting(4, ANA) == 4
    assert embeddings.calls == [["word3", "word2"]]
    assert (await memory.count_unembedded(ANA), await memory.count_unembedded()) == (2, 3)
    assert await memory.embed_waiting(9) == 3
    [ben, *_] = embeddings.calls[1]
    assert len(ben) == EMBEDDED_CHARS
    assert await memory.embed_waiting(9) == await memory.count_unembedded() == 0
    assert (len(embeddings.calls), await memory.embed_waiting(9, ANA)) == (2, 0)


async def test_a_text_that_changes_while_it_is_embedded_waits_for_its_own_vector(
    memory: SemanticMemory, embeddings: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.put_episodes(ANA, [episode("e1", "red fox"), episode("e2", "red panda")])
    embed = embeddings.embed_documents
    table = memory.open_table()

    def meanwhile(texts: list[str]) -> list[list[float]]:
        [row] = table.select({"op": "e1"})
        table.update(row.id, None, {**row.payload, "data": "blue whale"})
        table.delete({"op": "e2"})
        return embed(texts)

    monkeypatch.setattr(embeddings, "embed_documents", meanwhile)
    await memory.embed_waiting(9, ANA)
    monkeypatch.undo()
    assert await memory.count_unembedded(ANA) == 1
    await memory.embed_waiting(9, ANA)
    [(row, score)] = (await look(memory, ANA, "blue whale")).near
    assert (row.payload["data"], round(score, 3)) == ("blue whale", 1.0)


class OfAnotherDimension(WordEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 2.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, float("nan")]


async def test_an_embedder_that_silently_changed_is_named_with_what_to_do(
    memories: Memories,
) -> None:
    memory = memories.open(OfAnotherDimension())
    await memory.put_episodes(ANA, [episode("e1", "red fox")])
    says = r"embedder gave a vector .* `circadian reindex`"
    with pytest.raises(MemoryStoreError, match=r"shape \(2,\), .* 64 .* `circadian reindex`"):
        await memory.embed_waiting(9)
    with pytest.raises(MemoryStoreError, match=says):
        await memory.add(ANA, [draft("a", "red fox")])
    with pytest.raises(MemoryStoreError, match=says):
        await memory.embed_query("red fox")
    assert (await memory.count(ANA), await memory.count_unembedded()) == (0, 1)


SCOPES = st.sampled_from([Scope("ana", "x"), Scope("ana", "y"), Scope("ben", "x"), Scope("", " ")])
WORDS = st.sampled_from(["red fox", "red panda", "blue whale", "fox fox"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    written=st.lists(st.tuples(SCOPES, WORDS, st.booleans()), max_size=8), asker=SCOPES, query=WORDS
)
async def test_no_lookup_gives_anything_of_another_scope(
    memory: SemanticMemory, written: list[tuple[Scope, str, bool]], asker: Scope, query: str
) -> None:
    table = memory.open_table()
    table.delete({})
    expected = {}
    for number, (scope, text, is_fact) in enumerate(written):
        said = f"{text} {scope!r}"
        if is_fact:
            await memory.add(scope, [draft(f"{number}", said)])
        else:
            await memory.put_episodes(scope, [episode(f"{number}", said)])
        expected[said] = scope
    await memory.embed_waiting(99)
    found = await look(memory, asker, query, limit=99)
    of_asker = sorted({said for said, scope in expected.items() if scope == asker})
    assert sorted(set(told(found.near))) == of_asker
    assert set(told(found.worded)) <= set(of_asker)
    facts = await nearest_facts(memory, asker, query, 99)
    assert {fact["text"] for fact, _ in facts} <= set(of_asker)


async def test_words_are_counted_over_a_scope_among_facts_or_among_entries(
    memory: SemanticMemory,
) -> None:
    await memory.add(ANA, [draft("a", "red fox"), draft("b", "red owl")])
    await memory.put_episodes(ANA, [episode("e1", "a red red fox came")])
    await memory.add(BEN, [draft("c", "red hat")])
    found = await look(memory, ANA, "red fox hat", kinds=["fact"])
    assert found.known == Counted(2, {"red": 2, "fox": 1})


async def test_several_are_looked_up_in_one_pass_over_the_vectors_and_find_the_same_as_alone(
    memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add(ANA, [draft("a", "red fox"), draft("b", "grey owl"), draft("c", "red owl")])
    asked = [(terms(query), await memory.embed_query(query)) for query in ("fox", "owl", "red")]
    asked.insert(1, (["grey"], None))
    given: dict[str, Any] = {"kinds": ["fact"], "limit": 2, "include_superseded": True}
    alone = [memory.lookup(ANA, [one], **given)[0] for one in asked]
    passes: list[int] = []
    table = memory.open_table()
    find = table.nearest

    def counted(vectors: Any, *more: Any) -> Any:
        passes.append(len(vectors))
        return find(vectors, *more)

    monkeypatch.setattr(table, "nearest", counted)
    assert memory.lookup(ANA, asked, **given) == alone
    assert passes == [3]
