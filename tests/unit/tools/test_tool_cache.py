"""Cached answers: given again while they hold, never when what they depend on has changed."""

import json
from datetime import timedelta
from typing import Annotated, Any, cast

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.types import Command

from memory.state.schema import State, held
from tests.support.tool_calls import NOW, executed, tick_state, wanted
from tools.execution.execute import LONGEST_CACHED, MOST_CACHED, Executed, cache_key, with_answer
from tools.registry import BUILT_IN, ToolKind, registered

CREATE, LIST = (BUILT_IN[name][0] for name in ("create_project", "list_projects"))
TICK, SESSION = ToolKind(cache="tick"), ToolKind(cache="session")


@pytest.fixture
def ran() -> list[str]:
    ASKED.clear()
    return ASKED


ASKED: list[str] = []


@tool
def look(what: str, reasoning: str | None = None) -> str:
    """Look at something."""
    ASKED.append(what)
    if what == "fog":
        raise OSError("nothing to be seen")
    return "long" * LONGEST_CACHED if what == "sky" else f"{what} {len(ASKED)}"


def after(done: Executed, **changes: Any) -> State:
    return cast(State, {**tick_state(), **done.update, **changes})


async def asked(state: State | None, kept: BaseTool, what: str = "sea", **more: Any) -> Executed:
    return await executed([wanted("look", what=what)], [kept], state, **more)


def shown(done: Executed) -> list[str]:
    return [str(message.content) for message in done.messages]


async def test_an_answer_is_given_again_in_its_tick_and_marked(ran: list[str]) -> None:
    kept = registered(look, "safe_chain", cache="tick")
    calls = [wanted("look", what="sea", reasoning=why) for why in ("to see", "to see again")]
    done = await executed(calls, [kept])
    assert shown(done) == ["sea 1", "sea 1"]
    assert ran == ["sea"]
    assert [message.artifact for message in done.messages] == [None, {"cached": True}]
    assert [message.status for message in done.messages] == ["success", "success"]
    assert [one["cached"] for one in done.calls] == [False, True]
    assert [one["ok"] for one in done.outcomes] == [True, True]
    assert list(done.update) == ["tool_cache"]


async def test_a_tools_answer_is_not_kept_where_nobody_says_so(ran: list[str]) -> None:
    done = await executed([wanted("look", what="sea")] * 2, [look])
    assert (ran, done.update) == (["sea", "sea"], {})


async def test_other_arguments_are_another_question(ran: list[str]) -> None:
    kept = registered(look, "safe_chain", cache="tick")
    calls = [wanted("look", what=what) for what in ("sea", "hill", "sea")]
    assert shown(await executed(calls, [kept])) == ["sea 1", "hill 2", "sea 1"]


async def test_a_tick_cache_ends_with_its_tick_and_a_session_cache_does_not(ran: list[str]) -> None:
    for scope, runs in (("tick", 2), ("session", 1)):
        ran.clear()
        kept = registered(look, "safe_chain", cache=scope)  # type: ignore[arg-type]
        first = await asked(None, kept)
        await asked(after(first, tick=43), kept)
        assert len(ran) == runs, scope


async def test_an_answer_ends_with_its_time(ran: list[str]) -> None:
    kept = registered(look, "safe_chain", cache="session", ttl=60)
    state = after(await asked(None, kept))
    for seconds, runs in ((59.9, 1), (60, 2)):
        later = (NOW + timedelta(seconds=seconds)).isoformat()
        held(state["context"])["now"] = later
        await asked(state, kept)
        assert len(ran) == runs


@pytest.mark.parametrize("what", ["fog", "sky"])
async def test_a_failure_and_a_long_answer_are_not_kept(ran: list[str], what: str) -> None:
    kept = registered(look, "safe_chain", cache="session")
    done = await asked(None, kept, what)
    assert done.update == {}
    await asked(after(done), kept, what)
    assert ran == [what, what]


async def test_an_answer_that_changes_the_state_or_wrote_something_is_not_kept() -> None:
    @tool
    def count(id_: Annotated[str, InjectedToolCallId]) -> Command[str]:
        """Count."""
        return Command(update={"goal_index": 1, "messages": [ToolMessage("1", tool_call_id=id_)]})

    kept = registered(count, "safe_chain", cache="session")
    assert (await executed([wanted("count")], [kept])).update == {"goal_index": 1}


async def test_a_write_to_projects_by_a_tool_drops_the_list_of_projects() -> None:
    create = wanted("create_project", project_key="tavern", summary="A tavern")
    calls = [wanted("list_projects"), wanted("list_projects"), create, wanted("list_projects")]
    done = await executed(calls, [CREATE, LIST])
    assert [one["cached"] for one in done.calls] == [False, True, False, False]
    lists = [json.loads(text) for text in shown(done)]
    assert [lists[at]["total"] for at in (0, 1, 3)] == [0, 0, 1]
    later = await executed([wanted("list_projects")], [LIST], after(done, tick=50))
    assert later.calls[0]["cached"]
    assert shown(later) == shown(done)[-1:]


async def test_an_edit_of_projects_by_hand_drops_it_too() -> None:
    create = wanted("create_project", project_key="tavern", summary="A tavern")
    state = after(await executed([create, wanted("list_projects")], [CREATE, LIST]))
    state["projects"]["slots"]["tavern"]["status"] = "paused"
    done = await executed([wanted("list_projects")], [LIST], state)
    assert not done.calls[0]["cached"]
    assert json.loads(shown(done)[0])["projects"][0]["status"] == "paused"


def test_the_fifty_newest_answers_are_kept() -> None:
    cache: dict[str, Any] = {}
    for at in range(MOST_CACHED + 10):
        cache = with_answer(cache, f"k{at}", "x", SESSION, tick=1, now=NOW)
    assert list(cache) == [f"k{at}" for at in range(10, MOST_CACHED + 10)]
    again = with_answer(cache, "k20", "y", SESSION, tick=1, now=NOW)
    assert list(again)[-1] == "k20"
    assert len(again) == MOST_CACHED


def test_expired_answers_are_dropped() -> None:
    cache = with_answer({}, "tick", "x", TICK, tick=1, now=NOW)
    brief = ToolKind(cache="session", ttl=5)
    cache = with_answer(cache, "brief", "x", brief, tick=1, now=NOW)
    later = with_answer(cache, "new", "x", SESSION, tick=2, now=NOW + timedelta(seconds=5))
    assert list(later) == ["new"]


def test_a_key_tells_tools_arguments_and_what_they_read_apart() -> None:
    reads = ToolKind(cache="session", reads=("projects",))
    keys = {
        cache_key("a", {"x": 1}, SESSION, {}),
        cache_key("b", {"x": 1}, SESSION, {}),
        cache_key("a", {"x": 2}, SESSION, {}),
        cache_key("a", {"x": 1}, reads, {"projects": {}}),
        cache_key("a", {"x": 1}, reads, {"projects": {"active": "p"}}),
    }
    assert len(keys) == 5
    assert cache_key("a", {"x": 1, "y": 2}, reads, {"goals": 1}) == cache_key(
        "a", {"y": 2, "reasoning": "r", "x": 1}, reads, {"goals": 2}
    )
