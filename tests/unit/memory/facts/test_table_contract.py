"""The table of memories: what both databases do, and do alike."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memory.errors import MemoryStoreError
from memory.facts.table import MemoryTable, SessionPlace, Waiting
from tests.support.tables import (
    DIMENSION,
    Open,
    direction,
    ids,
    near,
    nearest,
    payload,
    put,
    random_vectors,
    scope,
    worded,
)

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_a_row_comes_back_as_it_was_given(table: MemoryTable) -> None:
    given = payload(
        "ana",
        "a",
        'An "odd"\n\\text %s \U0001f6a4',
        kind="episode",
        trust=0.6,
        importance=9,
        entities=["Ana", None, 3, {"x": [True]}],
        **{"any key' at all": 1.5},
    )
    table.insert("one", direction(3.0, 4.0), {**given, "terms": ["odd"]})
    [row] = table.select(scope("ana"))
    assert (row.id, row.payload) == ("one", given)
    assert (row.access_count, row.last_access) == (0, None)
    kept = table.vector("one")
    assert kept is not None
    assert np.allclose(kept, direction(0.6, 0.8))
    assert table.numbered([row.seq, row.seq + 1]) == {row.seq: row}


def test_what_no_column_can_hold_is_refused(table: MemoryTable) -> None:
    for field, value in (("op", 3), ("trust", "high"), ("importance", True), ("kind", ["fact"])):
        with pytest.raises(ValueError, match=field):
            table.insert("one", None, {**payload("ana", "a"), field: value})
    with pytest.raises(ValueError, match="JSON"):
        table.insert("one", None, payload("ana", "a", weight=float("nan")))
    for vector in (direction(1.0, dimension=3), np.full(DIMENSION, np.nan, np.float32)):
        with pytest.raises(MemoryStoreError, match="embedder"):
            table.insert("one", vector, payload("ana", "a"))
    assert table.count({}) == 0


def test_an_operation_makes_one_row_in_its_scope_and_kind(table: MemoryTable) -> None:
    put(table, "ana", "a", "first")
    table.insert("other", direction(0.0, 1.0), payload("ana", "a", "second"))
    put(table, "ben", "a", "elsewhere")
    table.insert("episode", None, payload("ana", "a", "of another kind", kind="episode"))
    for one in ("none", "nothing"):
        table.insert(one, None, payload("ana", None, "made by none"))
    assert ids(table.select(scope("ana"))) == ["ana-a", "episode", "none", "nothing"]
    assert near(table, direction(0.0, 1.0), "ana") == ["ana-a"]
    assert worded(table, "ana", "second") == []
    assert worded(table, "ana", "first") == ["ana-a"]


def test_an_id_stands_once(table: MemoryTable) -> None:
    put(table, "ana", "a")
    with pytest.raises(MemoryStoreError):
        table.insert("ana-a", None, payload("ana", "b"))
    assert table.count({}) == 1


def test_an_alias_is_known_as_having_made_the_row_while_it_stands(table: MemoryTable) -> None:
    put(table, "ana", "a", "first")
    put(table, "ana", "b")
    for _ in range(2):
        table.alias("ana-a", "c")
    table.alias("nowhere", "d")
    table.insert("other", None, payload("ana", "c", "second"))
    made = table.made(scope("ana"), ["c", "b", "a", "d"])
    assert {op: row.id for op, row in made.items()} == {"c": "ana-a", "b": "ana-b", "a": "ana-a"}
    assert made["c"].payload["op"] == "a"
    assert table.made(scope("ben"), ["c", "a"]) == {}
    assert table.made({**scope("ana"), "kind": "none"}, ["c", "a"]) == {}
    table.delete({"id": "ana-a"})
    assert table.made(scope("ana"), ["c", "a"]) == {}
    table.insert("other", None, payload("ana", "c", "second"))
    assert ids(table.made(scope("ana"), ["c"]).values()) == ["other"]


def test_of_several_rows_of_one_operation_its_own_last_one_is_told(table: MemoryTable) -> None:
    for kind in ("episode", "fact"):
        table.insert(kind, None, payload("ana", "a", kind=kind))
    table.insert("other", None, payload("ana", "b"))
    table.alias("other", "a")
    assert ids(table.made(scope("ana"), ["a"]).values()) == ["fact"]
    assert ids(table.made({**scope("ana"), "kind": "fact"}, ["a"]).values()) == ["fact"]
    table.delete({"op": "a"})
    assert ids(table.made(scope("ana"), ["a"]).values()) == ["other"]


def test_an_update_changes_one_row_and_keeps_what_is_not_given(table: MemoryTable) -> None:
    for op in "abc":
        put(table, "ana", op, f"text {op}")
    before = {row.id: row for row in table.select({})}
    table.update("ana-b", direction(0.0, 1.0), None)
    table.update("ana-c", None, payload("ana", "c", "text c", speaker="Ana"))
    table.update("nowhere", direction(1.0), payload("ana", "x"))
    after = {row.id: row for row in table.select({})}
    assert after["ana-a"] == before["ana-a"]
    assert after["ana-b"] == before["ana-b"]
    assert after["ana-c"].payload == {**before["ana-c"].payload, "speaker": "Ana"}
    assert [row.seq for row in after.values()] == [row.seq for row in before.values()]
    assert near(table, direction(0.0, 1.0), "ana") == ["ana-b", "ana-a", "ana-c"]


def test_a_new_text_without_a_vector_leaves_the_row_unembedded(table: MemoryTable) -> None:
    put(table, "ana", "a", "red fox", embed="about a fox")
    put(table, "ana", "b", "red fox", embed="about a fox")
    table.update("ana-a", None, payload("ana", "a", "blue whale", embed="about a fox"))
    assert near(table, direction(1.0), "ana") == ["ana-a", "ana-b"]
    table.update("ana-b", None, payload("ana", "b", "red fox"))
    assert near(table, direction(1.0), "ana") == ["ana-a"]
    assert table.vector("ana-b") is None
    assert table.unembedded({}, 5) == [Waiting("ana-b", "red fox")]


def test_nearness_is_the_cosine_and_a_zero_vector_is_like_nothing(table: MemoryTable) -> None:
    put(table, "ana", "zero", vector=direction(0.0))
    put(table, "ana", "away", vector=direction(-1.0))
    put(table, "ana", "half", vector=direction(1.0, 3**0.5))
    put(table, "ana", "same", vector=direction(1.0))
    found = nearest(table, direction(1.0), scope("ana"), 10)
    assert ids(found) == ["ana-same", "ana-half", "ana-zero", "ana-away"]
    assert [round(score, 5) for _, score in found] == [1.0, 0.5, 0.0, -1.0]
    assert nearest(table, direction(1.0), scope("ana"), 0) == []


def test_every_search_of_many_users_gives_all_that_is_asked_for(open_table: Open) -> None:
    table = open_table(dimension=16)
    vectors = random_vectors(1_500, 16)
    with table.transaction():
        for number, vector in enumerate(vectors):
            put(table, f"user{number % 50}", str(number), vector=vector)
    for user in range(50):
        best = sorted(range(user, 1_500, 50), key=lambda one: -float(vectors[one] @ vectors[0]))
        expected = [f"user{user}-{one}" for one in best[:10]]
        assert near(table, vectors[0], f"user{user}") == expected


def test_what_is_rolled_back_was_never_there(table: MemoryTable) -> None:
    put(table, "ana", "before", "red fox")
    with contextlib.suppress(KeyError), table.transaction():
        put(table, "ana", "half", "blue whale", vector=direction(0.0, 1.0))
        put(table, "ben", "half", "blue whale")
        table.delete({"id": "ana-before"})
        table.alias("ana-half", "x")
        raise KeyError
    assert near(table, direction(0.0, 1.0), "ana") == ["ana-before"]
    assert (worded(table, "ana", "whal"), worded(table, "ana", "fox")) == ([], ["ana-before"])
    assert table.made({}, ["x", "half"]) == {}
    put(table, "ben", "whole", "blue whale")
    assert worded(table, "ben", "whal") == ["ben-whole"]


def test_a_transaction_inside_another_is_part_of_it(table: MemoryTable) -> None:
    with contextlib.suppress(KeyError), table.transaction():
        with table.transaction():
            put(table, "ana", "inner")
        put(table, "ana", "outer")
        raise KeyError
    assert table.count({}) == 0
    with table.transaction(), table.transaction():
        put(table, "ana", "inner")
    assert table.count({}) == 1


def test_episodes_come_session_by_session_in_the_order_of_their_time(table: MemoryTable) -> None:
    rows = [("b", "3"), ("a", "2"), ("b", "1"), ("a", "2"), ("c", "0"), ("a", None)]
    for number, (session, at) in enumerate(rows):
        put(table, "ana", str(number), kind="episode", session=session, valid_from=at)
    put(table, "ana", "fact", kind="fact", session="a", valid_from="0")
    put(table, "ana", "window", kind="window", session="a", valid_from="0")
    put(table, "ben", "0", kind="episode", session="a", valid_from="0")
    seq = {row.id: row.seq for row in table.select({})}
    order = [("a", "5"), ("a", "1"), ("a", "3"), ("b", "2"), ("b", "0")]
    assert table.timeline(scope("ana"), ["b", "a"]) == [
        SessionPlace(session, seq[f"ana-{number}"]) for session, number in order
    ]
    assert table.timeline(scope("ana"), []) == []


def test_the_episodes_beside_one_are_the_nearest_of_its_session(table: MemoryTable) -> None:
    for number in range(7):
        put(table, "ana", str(number), kind="episode", session="s", valid_from=str(9 - number))
    seq = {row.id: row.seq for row in table.select({})}
    asked = [seq["ana-3"], seq["ana-6"]]
    assert table.beside(scope("ana"), asked, 2) == {seq[f"ana-{one}"] for one in (1, 2, 4, 5)}
    assert table.beside(scope("ben"), asked, 2) == set()


def test_an_access_is_counted_and_changes_nothing_else(table: MemoryTable) -> None:
    for op in "abc":
        put(table, "ana", op)
    before = table.select({})
    table.touch(["ana-a", "ana-c", "ana-c", "nowhere"], NOW)
    table.touch(["ana-c"], NOW.replace(hour=10))
    rows = table.select({})
    assert [row.access_count for row in rows] == [1, 0, 2]
    assert [row.last_access for row in rows] == [
        NOW.isoformat(),
        None,
        NOW.replace(hour=10).isoformat(),
    ]
    assert [row[:3] for row in rows] == [row[:3] for row in before]
    assert len(near(table, direction(1.0), "ana")) == len(worded(table, "ana", "text")) == 3


def test_rows_without_a_vector_of_the_embedder_wait_newest_first(table: MemoryTable) -> None:
    put(table, "ana", "a")
    for op, fields in (("b", {}), ("c", {"embed": "instead"}), ("d", {})):
        table.insert(f"ana-{op}", None, payload("ana", op, f"text {op}", **fields))
    table.insert("ben-b", None, payload("ben", "b"))
    waiting = [Waiting("ana-d", "text d"), Waiting("ana-c", "instead"), Waiting("ana-b", "text b")]
    assert table.unembedded(scope("ana"), 10) == waiting
    assert table.unembedded(scope("ana"), 2) == waiting[:2]
    assert (table.count_unembedded(scope("ana")), table.count_unembedded({})) == (3, 4)
    assert near(table, direction(1.0), "ana") == ["ana-a"]
    table.set_vectors({"ana-c": direction(1.0), "nowhere": direction(1.0)})
    assert table.unembedded(scope("ana"), 10) == [waiting[0], waiting[2]]
    assert near(table, direction(1.0), "ana") == ["ana-a", "ana-c"]


def test_a_vector_of_another_embedder_is_as_good_as_none(open_table: Open) -> None:
    first = open_table()
    put(first, "ana", "a", "red fox")
    put(first, "ana", "b")
    for other in (open_table(model="other"), open_table(dimension=DIMENSION + 1)):
        assert other.vector("ana-a") is None
        assert other.count_unembedded(scope("ana")) == 2
        assert worded(other, "ana", "fox") == ["ana-a"]
    other = open_table(model="it's 100% {where}", dimension=3)
    assert nearest(other, direction(1.0, dimension=3), scope("ana"), 5) == []
    other.set_vectors({"ana-b": direction(1.0, dimension=3)})
    assert ids(nearest(other, direction(1.0, dimension=3), scope("ana"), 5)) == ["ana-b"]
    assert ids(other.select(scope("ana"))) == ["ana-a", "ana-b"]
    assert near(first, direction(1.0), "ana") == ["ana-a"]
    assert first.unembedded({}, 5) == [Waiting("ana-b", "text")]


def test_two_tables_on_one_database_see_what_the_other_writes(open_table: Open) -> None:
    one, two = open_table(), open_table()
    put(one, "ana", "a", "red fox")
    assert near(two, direction(1.0), "ana") == worded(two, "ana", "fox") == ["ana-a"]
    two.update("ana-a", direction(0.0, 1.0), payload("ana", "a", "blue whale"))
    assert worded(one, "ana", "fox") == []
    assert nearest(one, direction(0.0, 1.0), scope("ana"), 1)[0][1] == pytest.approx(1.0)
    one.delete({"id": "ana-a"})
    assert near(two, direction(1.0), "ana") == worded(two, "ana", "whal") == []


def test_a_number_is_never_used_again(table: MemoryTable) -> None:
    put(table, "ana", "a")
    put(table, "ana", "b")
    [first, last] = [row.seq for row in table.select({})]
    table.delete({"id": "ana-b"})
    put(table, "ana", "c")
    assert first < last < table.select({"op": "c"})[0].seq


def test_scrubbing_changes_nothing_that_stands(table: MemoryTable) -> None:
    put(table, "ana", "a", "red fox")
    put(table, "ana", "b", "blue whale")
    table.delete({"id": "ana-a"})
    before: list[Any] = table.select({})
    table.scrub()
    assert table.select({}) == before
    assert worded(table, "ana", "fox", "whal") == ["ana-b"]
    assert near(table, direction(1.0), "ana") == ["ana-b"]
