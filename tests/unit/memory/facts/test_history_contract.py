"""Mem0's history of changes: what both databases do, and that PostgreSQL's is part of the write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.facts.postgres.table import PostgresHistory, PostgresTable
from memory.facts.semantic import settle_mem0
from memory.facts.table import History
from tests.support.tables import DATABASES, Open, ids, put


@pytest.fixture(params=DATABASES)
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    """An empty history, in each of the two databases in turn."""
    opened: History
    if request.param == "postgres":
        opened = of_table(request.getfixturevalue("open_postgres"))
    else:
        settle_mem0(tmp_path / "mem0")
        from memory.facts.mem0 import FileHistory

        opened = FileHistory(tmp_path / "history.db")
    yield opened
    opened.close()
    opened.close()


def of_table(open_postgres: Open) -> PostgresHistory:
    table = open_postgres()
    assert isinstance(table, PostgresTable)
    return PostgresHistory(table)


def events(history: History, memory_id: str) -> list[tuple[str, str]]:
    return [(row["event"], row["new_memory"]) for row in history.get_history(memory_id)]


def test_changes_come_back_oldest_first_with_what_was_told_of_them(history: History) -> None:
    made = {"created_at": "2026-03-01T08:00:00+00:00"}
    history.add_history("one", None, "red fox", "ADD", **made, actor_id="Ana", role="user")
    later = {**made, "updated_at": "2026-03-02T08:00:00+00:00"}
    history.add_history("one", "a", "b", "UPDATE", **later)
    history.add_history("two", None, "owl", "ADD", is_deleted=1)
    assert events(history, "one") == [("ADD", "red fox"), ("UPDATE", "b")]
    [first, second] = history.get_history("one")
    [other] = history.get_history("two")
    assert first == {
        "id": first["id"],
        "memory_id": "one",
        "old_memory": None,
        "new_memory": "red fox",
        "event": "ADD",
        "created_at": made["created_at"],
        "updated_at": None,
        "is_deleted": False,
        "actor_id": "Ana",
        "role": "user",
    }
    assert len({first["id"], second["id"], other["id"]}) == 3
    assert (other["is_deleted"], other["old_memory"], other["created_at"]) == (True, None, None)
    assert history.get_history("nothing") == []


def test_changes_are_in_the_order_of_their_times(history: History) -> None:
    made, later = "2026-03-01T08:00:00+00:00", "2026-03-02T08:00:00+00:00"
    times = [("b", made, later), ("c", later, None), ("a", made, None)]
    for text, created, updated in times:
        history.add_history("one", None, text, "ADD", created_at=created, updated_at=updated)
    assert [text for _, text in events(history, "one")] == ["a", "b", "c"]


def test_a_deletion_takes_all_that_is_kept_of_the_memory(history: History) -> None:
    for memory_id in ("one", "two"):
        history.add_history(memory_id, None, "red fox", "ADD")
    history.add_history("one", "red fox", None, "DELETE", is_deleted=1)
    assert events(history, "one") == []
    assert events(history, "two") == [("ADD", "red fox")]


def test_a_batch_is_written_at_its_end(history: History) -> None:
    with history.batch():
        history.add_history("one", None, "red fox", "ADD")
    assert events(history, "one") == [("ADD", "red fox")]


def test_in_postgresql_it_is_written_with_the_facts_or_not_at_all(open_postgres: Open) -> None:
    table = open_postgres()
    assert isinstance(table, PostgresTable)
    history, elsewhere = PostgresHistory(table), of_table(open_postgres)
    with contextlib.suppress(KeyError), history.batch(), table.transaction():
        put(table, "ana", "a")
        history.add_history("ana-a", None, "text", "ADD")
        assert events(elsewhere, "ana-a") == []
        raise KeyError
    assert (events(history, "ana-a"), table.count({})) == ([], 0)
    with history.batch(), table.transaction():
        put(table, "ana", "a")
        history.add_history("ana-a", None, "nul\0", "ADD")
    assert ids(table.select({})) == ["ana-a"]
    assert events(elsewhere, "ana-a") == [("ADD", "nul\ufffd")]
