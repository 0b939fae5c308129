from typing import Any

import pytest
from langgraph.types import Overwrite

from memory.errors import StateError
from memory.state import State, fresh_state, merge_by_id, merge_projects
from memory.state_check import checked, state_problem


def node(output: Any) -> Any:
    async def act(state: State) -> Any:
        return output

    return checked(act)


async def test_an_unknown_key_is_an_error_and_not_a_silent_drop() -> None:
    with pytest.raises(StateError, match="act returned the unknown key 'tikc'"):
        await node({"tikc": 1})({})


async def test_a_wrong_type_is_an_error_that_names_the_place() -> None:
    goal = {"id": "goal_1_0", "progress": "half"}
    with pytest.raises(StateError, match=r"goals\.goal_1_0"):
        await node({"goals": {"goal_1_0": goal}})({})


async def test_a_right_output_passes_as_it_is() -> None:
    update = {"tick": 3, "mode": "sleep", "goals": Overwrite({})}
    assert await node(update)({}) == update


def test_a_fresh_state_breaks_no_rule() -> None:
    assert state_problem(fresh_state()) is None


def test_a_bad_edit_is_one_sentence_that_names_the_key() -> None:
    problem = state_problem({**fresh_state(), "session_memory": {"key_facts": "tea"}})
    assert problem is not None
    assert "session_memory.key_facts" in problem
    assert "update_state" in problem


def test_a_thread_of_a_newer_schema_is_refused() -> None:
    problem = state_problem({**fresh_state(), "schema_version": 99})
    assert problem is not None
    assert "newer Circadian" in problem


def test_records_merge_field_by_field_and_none_deletes() -> None:
    old = {"a": {"x": 1, "y": 2}, "b": {"x": 3}}
    assert merge_by_id(old, {"a": {"y": 5}, "b": None}) == {"a": {"x": 1, "y": 5}}
    assert old["a"] == {"x": 1, "y": 2}


def test_a_project_edit_leaves_the_active_slot_where_it_is() -> None:
    old: Any = {"active": "a", "slots": {"a": {"summary": "one"}}}
    new = merge_projects(old, {"slots": {"b": {"summary": "two"}}})
    assert new["active"] == "a"
    assert sorted(new["slots"]) == ["a", "b"]
