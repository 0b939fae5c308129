"""Projects are paged in and out."""

from datetime import UTC, datetime

import pytest

from memory.errors import Refusal
from memory.planning import projects as rules
from memory.records.records import Marks, Project, Projects, ProjectStatus

CREATED = "2025-12-06T10:00:00+00:00"
NOW = datetime(2025, 12, 6, 14, 30, tzinfo=UTC)


def slot(summary: str, context: str, status: ProjectStatus) -> Project:
    return {
        "summary": summary,
        "context": context,
        "status": status,
        "created_at": CREATED,
        "last_active": CREATED,
    }


def page() -> Projects:
    return {
        "active": "build_tavern",
        "slots": {
            "build_tavern": slot("Construct a tavern", "Walls 50%...", "active"),
            "quest_design": slot("Design main quest line", "Act 1 complete", "paused"),
        },
    }


def test_the_swap_of_the_page() -> None:
    before = page()
    after, result = rules.swap(before, "quest_design", "Walls 60%...", NOW)
    assert result == {
        "old_project": "build_tavern",
        "new_project": "quest_design",
        "new_project_summary": "Design main quest line",
        "new_project_context": "Act 1 complete",
    }
    assert after["active"] == "quest_design"
    tavern, quest = after["slots"]["build_tavern"], after["slots"]["quest_design"]
    assert (tavern["status"], tavern["context"]) == ("paused", "Walls 50%...\nWalls 60%...")
    assert (quest["status"], quest["context"]) == ("active", "Act 1 complete")
    assert tavern["last_active"] == quest["last_active"] == NOW.isoformat()
    assert tavern["created_at"] == CREATED
    assert before == page()


@pytest.mark.parametrize("update", [None, "", "  "])
def test_a_swap_without_update_pauses_and_stamps_but_keeps_the_context(update: str | None) -> None:
    after, _ = rules.swap(page(), "quest_design", update, NOW)
    assert after["slots"]["build_tavern"] == {
        **slot("Construct a tavern", "Walls 50%...", "paused"),
        "last_active": NOW.isoformat(),
    }


def test_a_swap_to_the_active_project_only_saves_the_update() -> None:
    after, result = rules.swap(page(), "build_tavern", "Walls 60%", NOW)
    assert after["active"] == "build_tavern"
    assert after["slots"]["build_tavern"]["status"] == "active"
    assert after["slots"]["build_tavern"]["context"] == "Walls 50%...\nWalls 60%"
    assert after["slots"]["quest_design"] == page()["slots"]["quest_design"]
    assert result["old_project"] == result["new_project"] == "build_tavern"
    assert result["new_project_context"] == "Walls 50%...\nWalls 60%"
    assert rules.swap(page(), "build_tavern", None, NOW)[0] == page()


def test_a_swap_to_an_unknown_project_lists_the_known_ones() -> None:
    with pytest.raises(Refusal) as refused:
        rules.swap(page(), "castle", "Walls 60%", NOW)
    result = refused.value.result()
    assert result["success"] is False
    assert result["error"].startswith("Project does not exist")
    assert result["available_projects"] == ["build_tavern", "quest_design"]
    assert result["suggestion"]


def test_a_swap_works_from_no_active_project_and_to_a_completed_one() -> None:
    after, result = rules.swap({**page(), "active": None}, "quest_design", "lost", NOW)
    assert result["old_project"] is None
    assert after["slots"]["build_tavern"] == page()["slots"]["build_tavern"]
    done, _ = rules.update(page(), None, "completed", NOW)
    again, _ = rules.swap(done, "build_tavern", None, NOW)
    assert (again["active"], again["slots"]["build_tavern"]["status"]) == ("build_tavern", "active")


def test_a_new_project_is_active_and_the_one_before_is_paused_and_stamped() -> None:
    before = page()
    after = rules.create(before, "castle", "A castle", "Hill chosen", NOW)
    assert after["active"] == "castle"
    stamps = dict.fromkeys(("created_at", "last_active"), NOW.isoformat())
    assert after["slots"]["castle"] == {**slot("A castle", "Hill chosen", "active"), **stamps}
    tavern = after["slots"]["build_tavern"]
    assert (tavern["status"], tavern["last_active"]) == ("paused", NOW.isoformat())
    assert tavern["context"] == "Walls 50%..."
    assert before == page()


def test_white_space_around_a_key_is_no_part_of_it() -> None:
    after = rules.create(page(), " castle\n", "A castle", "", NOW)
    assert (after["active"], list(after["slots"])[-1]) == ("castle", "castle")
    with pytest.raises(Refusal, match="already exists"):
        rules.create(after, "castle ", "Again", "", NOW)
    assert rules.swap(after, " build_tavern ", None, NOW)[0]["active"] == "build_tavern"


def test_an_update_saves_the_context_without_swapping() -> None:
    before = page()
    after, done = rules.update(before, "Requirements gathered", None, NOW)
    tavern = after["slots"]["build_tavern"]
    assert tavern["context"] == "Walls 50%...\nRequirements gathered"
    assert tavern["last_active"] == NOW.isoformat()
    assert (after["active"], tavern["status"], done) == ("build_tavern", "active", None)
    assert before == page()


def test_an_update_replaces_the_context_only_when_it_is_asked_to() -> None:
    for given, context, gone in (
        ({}, "Walls 50%...\nRoof on", None),
        ({"replace": True}, "Roof on", "Walls 50%..."),
    ):
        after, _ = rules.update(page(), "Roof on", None, NOW, **given)
        assert after["slots"]["build_tavern"]["context"] == context
        assert rules.replaced(page(), after, "build_tavern") == gone
        swapped, result = rules.swap(page(), "quest_design", "Roof on", NOW, **given)
        assert swapped["slots"]["build_tavern"]["context"] == context
        assert result.get("replaced_context") == gone


@pytest.mark.parametrize(
    ("update", "context"),
    [
        ("Walls 50%...", "Walls 50%..."),
        ("Walls\n50%...\nRoof on", "Walls\n50%...\nRoof on"),
        ("Walls 5", "Walls 50%...\nWalls 5"),
    ],
)
def test_what_a_context_says_already_is_not_said_twice(update: str, context: str) -> None:
    after, _ = rules.update(page(), update, None, NOW)
    assert after["slots"]["build_tavern"]["context"] == context


def test_a_context_that_would_grow_too_long_stays_and_says_what_to_do() -> None:
    with pytest.raises(Refusal, match="more than 20,000") as refused:
        rules.swap(page(), "quest_design", "x" * 20_000, NOW)
    assert "replace=true" in refused.value.result()["suggestion"]
    after, _ = rules.update(page(), "x" * 20_000, None, NOW, replace=True)
    assert len(after["slots"]["build_tavern"]["context"]) == 20_000


def test_pausing_frees_the_active_slot_and_completes_nothing() -> None:
    after, done = rules.update(page(), "Later", "paused", NOW)
    assert (after["active"], done) == (None, None)
    assert after["slots"]["build_tavern"]["status"] == "paused"


def test_an_update_needs_an_active_project_and_something_to_change() -> None:
    with pytest.raises(Refusal, match="No project is active"):
        rules.update({**page(), "active": None}, "x", None, NOW)
    with pytest.raises(Refusal, match="Nothing to change"):
        rules.update(page(), "  ", None, NOW)


def test_a_public_sees_and_changes_only_what_was_told_in_public() -> None:
    marks: Marks = {"public": ["New website", "Okan builds it"]}
    made = rules.create(page(), "website", "New website", "Okan builds it", NOW, marks=marks)
    told, _ = rules.update(made, "Budget 900 euros", None, NOW)
    shown = rules.known_to(told, public=True)
    assert list(shown["slots"]) == ["website"]
    assert shown["slots"]["website"]["context"] == "Okan builds it"
    assert rules.known_to(told, public=False) == told
    # Whoever does not see a line cannot drop it; said in public, it is shown.
    less, _ = rules.update(told, "Pilar paints it", None, NOW, replace=True, public=True)
    assert less["slots"]["website"]["context"] == "Budget 900 euros\nPilar paints it"
    open_, _ = rules.update(less, "Budget 900 euros", None, NOW, public=True)
    context = rules.known_to(open_, public=True)["slots"]["website"]["context"]
    assert context == "Pilar paints it\nBudget 900 euros"
    with pytest.raises(Refusal, match="already exists") as taken:
        rules.create(less, "quest_design", "Quests", "", NOW, public=True)
    assert "begun in private" in taken.value.result()["suggestion"]
    for tried in ({"key": "quest_design"}, {"key": "nowhere"}):
        with pytest.raises(Refusal) as refused:
            rules.swap(less, tried["key"], None, NOW, public=True)
        assert refused.value.result()["available_projects"] == ["website"]
