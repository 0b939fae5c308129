"""Which entries a night prunes, and which it never does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.night import stale
from memory.records.records import Conversation, Goal, JournalEntry, Operation, Projects
from memory.settings import Settings
from nodes.night.prune import open_keys, open_words, prunable
from tests.support.night_memories import entry, talk

NOW = datetime(2026, 5, 3, 2, tzinfo=UTC)
OLD = (NOW - timedelta(days=31)).isoformat()
SETTINGS = Settings()


def old(id_: str = "event_20260402_e1", **fields: Any) -> JournalEntry:
    settled = {"timestamp": OLD, "importance": 3, "consolidation": "below_threshold"}
    return entry(id_, **{**settled, **fields})


def pruned(
    *entries: JournalEntry,
    cited: tuple[str, ...] = (),
    projects: tuple[str, ...] = (),
    goals: str = "",
) -> list[str]:
    operations = prunable(
        entries, cited=cited, open_projects=projects, open_goals=goals, now=NOW, settings=SETTINGS
    )
    assert {one["kind"] for one in operations} <= {"mark_entry"}
    return [one["target"] for one in operations]


def bounded(kept: int, *entries: JournalEntry) -> list[Operation]:
    settings = Settings(faded_kept=kept)
    return prunable(
        entries,
        cited=("event_20260402_c",),
        open_projects=(),
        open_goals="",
        now=NOW,
        settings=settings,
    )


def test_an_old_unimportant_entry_fades_and_is_not_removed() -> None:
    [operation] = prunable(
        [old()], cited=(), open_projects=(), open_goals="", now=NOW, settings=SETTINGS
    )
    assert operation["kind"] == "mark_entry"
    assert operation["before"] == {"consolidation": "below_threshold"}
    assert operation["after"] == {"consolidation": "faded"}
    assert operation["reason"] == "importance <= 3, older than 30 days"


def test_a_faded_entry_stays_as_it_is() -> None:
    assert pruned(old(consolidation="faded")) == []


def test_where_a_setting_bounds_the_faded_entries_the_oldest_go() -> None:
    def aged(name: str, days: int, **fields: Any) -> JournalEntry:
        at = (NOW - timedelta(days=days)).isoformat()
        return old(f"event_20260402_{name}", timestamp=at, **fields)

    faded = [aged(name, days, consolidation="faded") for name, days in (("a", 70), ("b", 60))]
    cited, new = aged("c", 90, consolidation="faded"), aged("d", 40)
    done = [(one["kind"], one["target"][-1]) for one in bounded(2, *faded, cited, new)]
    assert done == [("prune_entry", "a"), ("mark_entry", "d")]
    assert bounded(2, *faded, cited) == []
    gone = bounded(0, new)
    assert [(one["kind"], one["before"]) for one in gone] == [("prune_entry", new)]
    assert gone[0]["reason"].endswith("more than 0 faded")


@pytest.mark.parametrize(
    "fields",
    [
        {"importance": 4},
        {"timestamp": (NOW - timedelta(days=29)).isoformat()},
        {"timestamp": (NOW - timedelta(days=30)).isoformat()},
        {"consolidation": "consolidated"},
        {"consolidation": "exempt"},
    ],
)
def test_important_recent_and_consolidated_entries_stay(fields: dict[str, Any]) -> None:
    assert pruned(old(**fields)) == []


@pytest.mark.parametrize("cited", ["event_20260402_e1", "source-of-event_20260402_e1"])
def test_entries_cited_by_id_or_event_stay(cited: str) -> None:
    assert pruned(old(), cited=(cited,)) == []


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"related_projects": ["barn"]}, True),
        ({"content": "The barn has a new roof."}, True),
        ({"content": "The Barn!"}, True),
        ({"content": "Barnaby came by."}, False),
        ({"related_projects": ["mill"]}, False),
    ],
)
def test_entries_of_open_projects_stay(fields: dict[str, Any], kept: bool) -> None:
    assert (pruned(old(**fields), projects=("barn",)) == []) is kept


@pytest.mark.parametrize(
    "goals", ["See event_20260402_E1", "As said in source-of-event_20260402_e1."]
)
def test_entries_named_by_open_goals_stay(goals: str) -> None:
    assert pruned(old(), goals=goals) == []
    assert pruned(old(), goals="Find a roof for the barn") == ["event_20260402_e1"]


def test_the_oldest_entries_are_pruned_first() -> None:
    older = (NOW - timedelta(days=60)).isoformat()
    assert pruned(old("b"), old("a"), old("z", timestamp=older)) == ["z", "a", "b"]


ENTRIES = st.lists(
    st.builds(
        lambda n, days, importance, done: old(
            f"event_20260402_e{n}",
            timestamp=(NOW - timedelta(days=days)).isoformat(),
            importance=importance,
            consolidation=done,
            sources=[f"s{n}", f"shared{n % 3}"],
        ),
        st.integers(0, 30),
        st.integers(0, 90),
        st.integers(1, 10),
        st.sampled_from(["pending", "consolidated", "below_threshold", "exempt"]),
    ),
    max_size=25,
    unique_by=lambda one: one["id"],
)
CITED = st.sets(
    st.one_of(
        st.integers(0, 30).map("event_20260402_e{}".format),
        st.integers(0, 30).map("s{}".format),
        st.integers(0, 2).map("shared{}".format),
    )
)


@given(ENTRIES, CITED)
def test_pruning_never_removes_cited_evidence_nor_what_is_important_or_young(
    entries: list[JournalEntry], cited: set[str]
) -> None:
    by_id = {one["id"]: one for one in entries}
    gone = pruned(*entries, cited=tuple(cited))
    for one in (by_id[id_] for id_ in gone):
        assert not cited & {one["id"], *one["sources"]}
        assert one["importance"] <= 3
        assert one["timestamp"] < (NOW - timedelta(days=30)).isoformat()
        assert one["consolidation"] not in ("consolidated", "exempt")
    assert len(gone) == len(set(gone))


def goal(id_: str, status: str, words: str) -> Goal:
    made: dict[str, Any] = {"id": id_, "status": status, "description": words}
    return made  # type: ignore[return-value] # the parts that are read


def test_open_words_come_from_active_goals_and_open_projects() -> None:
    goals = {
        "g1": goal("g1", "active", "Mend the roof"),
        "g2": goal("g2", "completed", "Buy nails"),
        "g3": goal("g3", "abandoned", "Sell the barn"),
    }
    states = {"barn": "active", "mill": "paused", "well": "completed"}
    slots: Any = {
        key: {"status": status, "summary": f"The {key}", "context": f"About the {key}."}
        for key, status in states.items()
    }
    projects: Projects = {"active": "barn", "slots": slots}
    assert open_keys(projects) == ["barn", "mill"]
    words = ["Mend the roof", "The barn", "About the barn.", "The mill", "About the mill."]
    assert open_words(goals, projects).splitlines() == words


def conversation(minutes: float, *actions: str) -> Conversation:
    last = (NOW - timedelta(minutes=minutes)).isoformat()
    return talk("Ada", last, pending_actions=[*actions])


def test_a_conversation_is_stale_after_an_hour_unless_something_is_pending() -> None:
    talks = {
        "over": conversation(61),
        "at the hour": conversation(60),
        "going on": conversation(5),
        "promised": conversation(600, "send the plan"),
    }
    assert stale(talks, now=NOW, settings=SETTINGS) == ["over"]
    assert stale(talks, now=NOW, settings=Settings(stale_conversation_hours=24)) == []
