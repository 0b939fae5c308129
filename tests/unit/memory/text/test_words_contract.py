"""Finding memories by their words: what both databases do, and do alike."""

import pytest

from memory.facts.table import MemoryTable
from memory.text.analysis import terms
from tests.support.tables import ids, payload, put, scope, worded


def test_the_words_follow_every_change(table: MemoryTable) -> None:
    put(table, "ana", "a", "red fox")
    put(table, "ana", "b", "a fox, and ünïcode")
    table.update("ana-a", None, payload("ana", "a", "blue whale", importance=3))
    assert (worded(table, "ana", "fox"), worded(table, "ana", "whal")) == (["ana-b"], ["ana-a"])
    assert table.delete(scope("ana")) == 2
    assert worded(table, "ana", "fox", "ünïcode") == []
    put(table, "ana", "b", "a fox")
    [(_, score)] = table.keywords(["fox"], scope("ana"), 5)
    put(table, "eva", "b", "a fox")
    assert table.keywords(["fox"], scope("eva"), 5)[0][1] == pytest.approx(score)


def test_a_row_is_found_by_its_given_terms(table: MemoryTable) -> None:
    put(table, "ana", "a", "red fox", terms=["two words", "it's", "ICH", "ich"])
    put(table, "ana", "b", "red fox", terms=[])
    put(table, "ana", "c", "red fox")
    for term in ("two words", "it's", "Ich"):
        assert worded(table, "ana", term) == ["ana-a"]
    for term in ("two", "words", "it", "", "it's two", "%", "fo"):
        assert worded(table, "ana", term) == []
    assert worded(table, "ana", "fox") == ["ana-c"]
    assert "terms" not in table.select({"id": "ana-a"})[0].payload
    table.update("ana-a", None, payload("ana", "a", "red fox"))
    assert worded(table, "ana", "fox", "two words") == ["ana-a", "ana-c"]


def test_a_rare_word_counts_for_more_and_a_long_text_for_less(table: MemoryTable) -> None:
    texts = ["rare common", "common thing", "common", "common word after word after word", "rare"]
    for number, text in enumerate(texts):
        put(table, "ana", str(number), text)
    assert worded(table, "ana", "common", "rar") == ["ana-0", "ana-4", "ana-2", "ana-1", "ana-3"]
    [*_, (_, last)] = table.keywords(["common", "rar"], scope("ana"), 10)
    assert last > 0
    assert worded(table, "ana", *["common"] * 9, "rar")[0] == "ana-0", "a word counts once"


def test_other_agents_rows_do_not_change_the_order(table: MemoryTable) -> None:
    put(table, "ana", "1", "rare common common")
    put(table, "ana", "2", "common other words")
    put(table, "ana", "3", "common and more words")
    before = table.keywords(terms("rare common"), scope("ana"), 10)
    for number in range(30):
        put(table, "ben", str(number), "rare rare words of somebody else")
    assert table.keywords(terms("rare common"), scope("ana"), 10) == before


def test_keywords_of_several_agents_come_best_first(table: MemoryTable) -> None:
    told = {"x": ["fox", "fox"], "y": ["fox", "cat", "dog", "owl"]}
    for agent, facts in told.items():
        for op, text in enumerate(facts):
            table.insert(f"{agent}{op}", None, {"data": text, **scope("ana", agent), "op": str(op)})
    assert ids(table.keywords(["fox"], {"user_id": "ana"}, 10)) == ["y0", "x0", "x1"]
    assert ids(table.keywords(["fox"], {"user_id": "ana"}, 1)) == ["y0"]
    assert table.keywords(["fox"], {"user_id": "ben"}, 1) == []


def test_a_word_is_as_rare_as_it_is_in_its_own_scope(table: MemoryTable) -> None:
    for number in range(6):
        word = "fox" if number < 5 else "owl"
        table.insert(f"x{number}", None, {**payload("ana", f"{number}", word), "agent_id": "x"})
        word = "fox" if number > 4 else "owl and two more words"
        table.insert(f"y{number}", None, {**payload("ana", f"{number}", word), "agent_id": "y"})
    alone = {
        row.id: score
        for agent in ("x", "y")
        for row, score in table.keywords(["fox"], scope("ana", agent), 10)
    }
    together = {row.id: score for row, score in table.keywords(["fox"], {"user_id": "ana"}, 10)}
    assert together == pytest.approx(alone)
    assert alone["y5"] > 2 * alone["x0"]


def test_a_row_of_another_kind_than_before_is_counted_with_that(table: MemoryTable) -> None:
    for number in range(4):
        put(table, "ana", f"e{number}", "a mill", kind="episode")
    put(table, "ana", "f", "a harp in a mill", kind="fact")
    put(table, "ana", "g", "a harp in an inn", kind="fact")

    def order() -> list[str]:
        return worded(table, "ana", "mill", "inn", kind="fact")

    assert order() == ["ana-f", "ana-g"], "of equals the first written"
    table.update("ana-e3", None, payload("ana", "e3", "a mill", kind="fact"))
    assert order()[0] == "ana-g"
    table.update("ana-e3", None, payload("ana", "e3", "a mill", kind="episode"))
    assert order() == ["ana-f", "ana-g"]
