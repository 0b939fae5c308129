import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage, messages_to_dict
from langgraph.types import Overwrite

from memory.errors import StateError
from memory.messages.convert import EVENT_KEY
from memory.records.tick import empty_report
from memory.state.schema import State, fresh_state, merge_by_id, merge_projects
from memory.state.validation import checked, kept_problem, report_so_far, state_problem
from tests.support.scripted import calls
from tests.support.tool_calls import loop_of, tick_state
from tests.unit.tools.test_pattern import assessment


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


def test_a_fresh_state_and_a_new_input_break_no_rule() -> None:
    assert state_problem(fresh_state()) is None
    assert state_problem({**fresh_state(), "events": ["no event"], "request": "dance"}) is None
    empty: Any = {"projects": {}, "goals": {}, "conversations": {}}
    assert state_problem({**fresh_state(), **empty}) is None


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("session_memory", {"key_facts": "tea"}, "session_memory.key_facts"),
        ("session_memory", {"key_facts": "tea"}, "update_state"),
        ("schema_version", 99, "newer Circadian"),
        ("tick", -1, "wrong tick"),
        ("goal_index", -1, "wrong goal_index"),
        ("calibration", 0.0, "wrong calibration"),
        ("calibration", float("nan"), "wrong calibration"),
        ("calibration", float("inf"), "wrong calibration"),
        ("projects", {"active": "a", "slots": {}}, "wrong projects"),
        # Only where records are merged, an empty object is no value yet.
        *[(key, {}, f"wrong {key}") for key in ("session_memory", "metrics", "tick", "mode")],
    ],
)
def test_a_bad_edit_is_one_sentence_that_names_the_key(key: str, value: Any, says: str) -> None:
    assert says in str(state_problem({**fresh_state(), key: value}))


def test_records_merge_field_by_field_and_none_deletes() -> None:
    old = {"a": {"x": 1, "y": 2}, "b": {"x": 3}}
    assert merge_by_id(old, {"a": {"y": 5}, "b": None}) == {"a": {"x": 1, "y": 5}}
    assert old["a"] == {"x": 1, "y": 2}


def test_a_project_edit_leaves_the_active_slot_where_it_is() -> None:
    old: Any = {"active": "a", "slots": {"a": {"summary": "one"}}}
    new = merge_projects(old, {"slots": {"b": {"summary": "two"}}})
    assert new["active"] == "a"
    assert sorted(new["slots"]) == ["a", "b"]


@pytest.mark.parametrize("value", ["abc", "", [1], [], 0])
def test_only_objects_can_be_merged(value: Any) -> None:
    with pytest.raises(StateError, match=r"^goals must be an object"):
        merge_by_id({}, value, key="goals")
    with pytest.raises(StateError, match=r"^projects must be an object"):
        merge_projects(None, value)
    with pytest.raises(StateError, match=r"^projects\.slots must be an object"):
        merge_projects(None, {"slots": value})


OLD_REPORT = {key: value for key, value in empty_report().items() if key != "ignored"}


def test_keys_set_by_every_run_are_not_validated() -> None:
    old = {**fresh_state(), "report": OLD_REPORT, "turn": "dance"}
    assert kept_problem(old) is None
    assert state_problem(old) is not None
    assert "wrong tick" in str(kept_problem({**old, "tick": "one"}))


def test_an_invalid_report_is_replaced_by_an_empty_one() -> None:
    sound = {**empty_report(), "notes": ["so far"]}
    assert report_so_far(sound) == sound
    assert report_so_far(OLD_REPORT) == report_so_far(None) == empty_report()
    assert report_so_far({**sound, "ticks": [{"tick": 1}]}) == empty_report()


def waiting() -> dict[str, Any]:
    mark = {EVENT_KEY: {"tick": 4}}
    asked = calls(("noop", {}), ("launch", {"target": "the moon", "share": math.nan}))
    asked.additional_kwargs = dict(mark)
    done = ToolMessage("{}", tool_call_id=str(asked.tool_calls[0]["id"]), additional_kwargs=mark)
    tick = tick_state()
    event: Any = {
        "id": "e1",
        "at": "2026-03-02T09:00Z",
        "sender": "Ada",
        "text": "Go",
        "channel": None,
    }
    return {
        "question": {
            "id": "ask_1",
            "tool": "launch",
            "args": {"share": float("nan"), "target": "the moon"},
            "reason": None,
            "what": "Run launch(target='the moon')",
            "difference": None,
            "event_id": "e1",
            "sender": "Ada",
            "asked_at": "2026-03-02T09:00:00+00:00",
        },
        "event": {**event, "addressed": True},
        "classification": None,
        "assessment": assessment(),
        "context": tick["context"],
        "pattern": tick["pattern"],
        "loop": loop_of(
            iteration=1, llm_calls=1, next="confirm", dangerous=asked.tool_calls[1]["id"]
        ),
        "messages": messages_to_dict([HumanMessage("Go", additional_kwargs=mark), asked, done]),
    }


def of_parked(*parked: dict[str, Any]) -> str | None:
    return state_problem({**fresh_state(), "parked": list(parked)})


def test_a_parked_tick_is_valid() -> None:
    assert of_parked(waiting(), waiting()) is None


def data(parked: dict[str, Any], at: int) -> dict[str, Any]:
    found: dict[str, Any] = parked["messages"][at]["data"]
    return found


EDITS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda one: one.update(messages=[{}]), "messages: one cannot be read (KeyError)"),
    (lambda one: one.update(messages=[{"type": "ai"}]), "messages: one cannot be read"),
    (lambda one: one.update(messages=[{"type": "ai", "data": []}]), "messages: one cannot be read"),
    (lambda one: one["messages"][0].update(type="poem"), "messages: one cannot be read"),
    (lambda one: data(one, 1).update(additional_kwargs="x"), "messages: one cannot be read"),
    (
        lambda one: data(one, 0).update(additional_kwargs={}),
        "messages: one is no message of a tick",
    ),
    (
        lambda one: data(one, 1).update(additional_kwargs={EVENT_KEY: 1}),
        "messages: one is no message of a tick",
    ),
    (
        lambda one: one["messages"].extend(messages_to_dict([RemoveMessage("m")])),
        "messages: one is no message of a tick",
    ),
    (lambda one: one.update(messages=[]), "messages: no tool call is open"),
    (lambda one: one["messages"].pop(1), "messages: no tool call is open"),
    (lambda one: one["messages"].pop(), "question: its tool and args"),
    (lambda one: one["question"].update(tool="noop"), "question: its tool and args"),
    (lambda one: one["question"]["args"].update(target="Mars"), "question: its tool and args"),
    (lambda one: data(one, 1)["tool_calls"][1]["args"].update(target="Mars"), "question: its tool"),
    (lambda one: one["loop"].update(next="act"), "loop: next and dangerous"),
    (lambda one: one["loop"].update(dangerous=None), "loop: next and dangerous"),
]


@pytest.mark.parametrize(("edit", "words"), EDITS, ids=range(len(EDITS)))
def test_a_tampered_parked_tick_is_named(edit: Callable[[dict[str, Any]], Any], words: str) -> None:
    edited = copy.deepcopy(waiting())
    edit(edited)
    problem = of_parked(waiting(), edited)
    assert problem is not None
    assert f"wrong parked.1.{words}" in problem
    assert "update_state" in problem


async def test_what_a_node_raises_has_no_secrets() -> None:
    class Coded(Exception):
        def __str__(self) -> str:
            return "no postgresql://ada:hunter2x@db/x"

    for error in (ValueError("no postgresql://ada:hunter2x@db/x"), Coded()):

        @checked
        async def broken(state: State) -> dict[str, Any]:
            raise error  # noqa: B023 - called at once

        with pytest.raises(Exception, match=r"no postgresql://ada:\*\*\*@db/x$"):
            await broken(fresh_state())
