"""Projects, goals and session memory as the model changes them, call by call."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from memory.errors import ModelError
from tests.support.scripted import call, scripted
from tests.support.tool_calls import NOW, Bench


@pytest.mark.parametrize(
    ("name", "arguments"), [("noop", {}), ("review_journal", {}), ("list_projects", {})]
)
async def test_every_tool_takes_a_reason_and_none_takes_a_forged_runtime(
    name: str, arguments: dict[str, Any]
) -> None:
    forged = {"reasoning": "nothing to do", "runtime": {"state": {}}}
    called = await Bench().call(name, **arguments, **forged)
    assert called.result["success"] is True
    assert called.message.status == "success"
    assert called.message.tool_call_id == f"call-{name}"
    assert set(called.update) <= {"tool_cache"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_project", {"project_key": " ", "summary": "x"}),
        ("swap_project", {"project_key": "castle"}),
        ("update_project", {"context_update": "x"}),
        ("add_goal", {"description": ""}),
        ("update_goal", {"goal_id": "goal_1_1", "progress": 5}),
        ("decompose_goal", {"goal_id": "goal_1_1"}),
        ("add_session_memory", {"memory_type": "fact", "content": "I helped Alice"}),
        ("add_journal_entry", {"content": " "}),
        ("add_journal_entry", {"content": "x", "importance": 11}),
        ("review_journal", {"limit": 0}),
        ("recall_memories", {"query": " "}),
        ("recall_memories", {"query": "x", "limit": 0}),
        ("store_memory", {"facts": []}),
        ("store_memory", {"facts": [{"text": "I helped Alice"}]}),
    ],
)
async def test_every_error_carries_a_suggestion(name: str, arguments: dict[str, Any]) -> None:
    called = await Bench().call(name, **arguments)
    assert (called.result["success"], called.message.status) == (False, "error")
    assert called.result["error"]
    assert called.result["suggestion"]
    assert called.update == {}


async def test_projects_are_created_listed_swapped_updated_and_completed() -> None:
    bench = Bench()
    made = await bench.call(
        "create_project", project_key="build_tavern", summary="Construct a tavern"
    )
    assert made.result["previous_project"] is None
    await bench.call(
        "create_project",
        project_key="quest_design",
        summary="Design main quest line",
        initial_context="Current: Act 1 outline complete...",
    )
    await bench.call("swap_project", project_key="build_tavern")
    swapped = await bench.call(
        "swap_project",
        project_key="quest_design",
        current_project_update="Walls 60% done",
        reasoning="Player asked about quests",
    )
    assert swapped.result == {
        "success": True,
        "old_project": "build_tavern",
        "new_project": "quest_design",
        "new_project_summary": "Design main quest line",
        "new_project_context": "Current: Act 1 outline complete...",
    }
    assert bench.state["projects"]["slots"]["build_tavern"]["context"] == "Walls 60% done"
    listed = (await bench.call("list_projects")).result
    assert listed["active_project"] == "quest_design"
    assert [(row["project_key"], row["status"]) for row in listed["projects"]] == [
        ("build_tavern", "paused"),
        ("quest_design", "active"),
    ]
    done = await bench.call("update_project", context_update="Act 3 written", status="completed")
    assert (done.result["status"], done.result["active_project"]) == ("completed", None)
    assert bench.state["session_memory"]["completed_tasks"] == [
        {"description": "Design main quest line", "timestamp": NOW.isoformat()}
    ]
    again = await bench.call("create_project", project_key="quest_design", summary="Again")
    assert "quest_design" in again.result["error"]


def subtasks(*texts: str) -> AIMessage:
    return call("Subtasks", subtasks=list(texts))


FIVE = [
    "Design layout",
    "Build structure",
    "Add furniture",
    "Create bartender",
    "Write descriptions",
]


async def test_the_goal_flow_of_the_page() -> None:
    bench = Bench(model=scripted(subtasks(*FIVE)))
    added = await bench.call("add_goal", description="Build a complete tavern", priority="high")
    assert added.result["goal_id"] == "goal_42_0"
    assert bench.state["goal_index"] == 1
    made = await bench.call("decompose_goal", goal_id="goal_42_0")
    assert made.result == {
        "success": True,
        "goal_id": "goal_42_0",
        "subtasks_created": 5,
        "subtasks": [
            {"id": f"goal_42_{index}", "description": text} for index, text in enumerate(FIVE, 1)
        ],
    }
    assert made.message.artifact["usage"]["llm_calls"] == 1
    assert bench.state["goal_index"] == 6
    first = await bench.call("update_goal", goal_id="goal_42_1", status="completed", progress=100)
    assert (first.result["goal_id"], first.result["message"]) == ("goal_42_1", "Goal updated")
    assert set(first.update) == {"goals"}
    assert first.result["also_changed"] == ["goal_42_0 (active, 20%)"]
    await bench.call("update_goal", goal_id="goal_42_2", status="completed")
    assert bench.state["goals"]["goal_42_0"]["progress"] == 40
    for index in (3, 4, 5):
        last = await bench.call("update_goal", goal_id=f"goal_42_{index}", status="completed")
        assert ("open again" in str(last.result)) == (index == 5)
    assert "goal_42_0 (completed, 100%)" in last.result["also_changed"]
    await bench.call("add_goal", description="Open it", parent_id="goal_42_0")
    assert bench.state["goals"]["goal_42_0"]["status"] == "active"
    assert bench.state["session_memory"]["completed_tasks"] == [
        {"description": "Build a complete tavern", "timestamp": NOW.isoformat()}
    ]


async def test_a_goal_gets_another_text_and_keeps_the_rest() -> None:
    bench = Bench()
    await bench.call("add_goal", description="Open day on 9 May", priority="high")
    before = bench.state["goals"]["goal_42_0"]
    moved = await bench.call("update_goal", goal_id="goal_42_0", description="Open day on 16 May ")
    assert (moved.result["success"], moved.result["status"]) == (True, "active")
    text = "Open day on 16 May"
    after = {**before, "description": text, "public": [text]}
    assert bench.state["goals"] == {"goal_42_0": after}
    for given in ({}, {"description": " "}):
        refused = await bench.call("update_goal", goal_id="goal_42_0", **given)
        assert refused.message.status == "error"


@pytest.mark.parametrize("number", [2, 8])
async def test_too_few_or_too_many_subtasks_change_nothing_and_are_paid_for(number: int) -> None:
    texts = [f"step {index}" for index in range(number)]
    bench = Bench(model=scripted(subtasks(*texts)))
    await bench.call("add_goal", description="Build a complete tavern")
    called = await bench.call("decompose_goal", goal_id="goal_42_0")
    assert called.result["success"] is False
    assert "3-7" in called.result["error"]
    assert called.update == {}
    assert called.message.artifact["usage"]["llm_calls"] == 1
    assert list(bench.state["goals"]) == ["goal_42_0"]


async def test_a_model_that_fails_is_an_error_and_changes_nothing() -> None:
    bench = Bench(model=scripted(ModelError("it is down")))
    await bench.call("add_goal", description="Build a complete tavern")
    called = await bench.call("decompose_goal", goal_id="goal_42_0")
    assert called.result["success"] is False
    assert called.result["error"].startswith("The model gave no subtasks")
    assert called.update == {}


async def test_no_model_is_asked_about_a_goal_with_open_subtasks() -> None:
    bench = Bench()
    await bench.call("add_goal", description="Build a complete tavern")
    await bench.call("add_goal", description="Lay foundation", parent_id="goal_42_0")
    called = await bench.call("decompose_goal", goal_id="goal_42_0")
    assert called.result["open_subtasks"] == ["goal_42_1"]
    assert bench.model.calls == []


async def test_session_memory_rejects_takes_and_compacts_as_on_the_pages() -> None:
    bench = Bench()
    rejected = await bench.call("add_session_memory", memory_type="fact", content="I helped Alice")
    assert rejected.result["rejected_content"] == "I helped Alice"
    assert rejected.result["error"].startswith("Content appears to reference assistant actions")
    content = "Player Alice completed the intro quest"
    added = await bench.call("add_session_memory", memory_type="fact", content=content)
    assert added.result == {
        "success": True,
        "memory_type": "fact",
        "added": content,
        "total_facts": 1,
        "total_patterns": 0,
    }
    compacted = await bench.call(
        "compact_session_memory",
        new_facts=["Alice is level 5 warrior"],
        new_patterns=[],
        summary="Consolidated",
    )
    assert compacted.result == {
        "success": True,
        "before": {"facts": 1, "patterns": 0},
        "after": {"facts": 1, "patterns": 0},
        "summary": "Consolidated",
    }
    assert bench.state["session_memory"]["last_compacted"] == NOW.isoformat()
