from typing import Any

import pytest
from langgraph.types import Overwrite

from memory.errors import StateError
from memory.merging import merge_by_id, merge_conversations, merge_goals, merge_projects
from memory.state import State, fresh_state
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


def test_an_empty_object_is_no_value_yet_only_where_records_are_merged() -> None:
    empty: Any = {"projects": {}, "goals": {}, "conversations": {}}
    assert state_problem({**fresh_state(), **empty}) is None
    for key in ("session_memory", "metrics", "tick", "mode"):
        problem = state_problem({**fresh_state(), key: {}})
        assert problem is not None
        assert f"wrong {key}" in problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tick", -1),
        ("goal_index", -1),
        ("calibration", 0.0),
        ("calibration", float("nan")),
        ("calibration", float("inf")),
        ("projects", {"active": "a", "slots": {}}),
    ],
)
def test_a_value_out_of_range_is_named(key: str, value: Any) -> None:
    problem = state_problem({**fresh_state(), key: value})
    assert problem is not None
    assert f"wrong {key}" in problem


def test_a_new_input_is_not_checked_as_state() -> None:
    assert state_problem({**fresh_state(), "events": ["no event"], "request": "dance"}) is None


@pytest.mark.parametrize("value", ["abc", "", [1], [], 0])
def test_what_is_no_object_cannot_be_merged(value: Any) -> None:
    with pytest.raises(StateError, match=r"^goals must be an object"):
        merge_goals({}, value)
    with pytest.raises(StateError, match=r"^conversations must be an object"):
        merge_conversations({}, value)
    with pytest.raises(StateError, match=r"^projects must be an object"):
        merge_projects(None, value)
    with pytest.raises(StateError, match=r"^projects\.slots must be an object"):
        merge_projects(None, {"slots": value})
