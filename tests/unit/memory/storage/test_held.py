"""What a run holds back of its checkpoints, and when it is stored after all."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from graph.persistence import open_saver
from memory.installation.opening import Installation
from memory.storage.checkpoints import HELD, HeldCheckpoints
from tests.support.homes import home as home
from tests.support.homes import rows


class Count(TypedDict, total=False):
    number: int
    listed: list[int]


class Counting:
    def __init__(self, trouble: str = "") -> None:
        self.trouble, self.ran = trouble, list[str]()

    def compile(self, saver: Any) -> Any:
        builder = StateGraph(Count)
        for name, then in (("one", "two"), ("two", "three"), ("three", END)):
            builder.add_node(name, self._step(name))
            builder.add_edge(name, then)
        builder.add_edge(START, "one")
        return builder.compile(saver)

    def _step(self, name: str) -> Any:
        async def step(state: Count) -> Count:
            if name == "two" and self.trouble == "fails":
                self.trouble = ""
                raise ValueError("broken")
            self.ran.append(name)
            number = state.get("number", 0) + 1
            return {"number": number, "listed": [*state.get("listed", []), number]}

        return step


def holding() -> RunnableConfig:
    return {"configurable": {"thread_id": "t", HELD: HeldCheckpoints(between)}}


def between(values: Mapping[str, Any]) -> bool:
    return "__start__" in values or any(key.startswith("branch:to:") for key in values)


async def test_only_the_end_of_a_run_is_stored_behind_the_run_before(home: Installation) -> None:
    async with open_saver(home) as saver:
        graph = Counting().compile(saver)
        for run in (1, 2):
            await graph.ainvoke({}, holding(), durability="sync")
            assert await rows(saver, "checkpoints", "TRUE") == run
            assert await rows(saver, "writes", "TRUE") == 0
        now = await graph.aget_state({"configurable": {"thread_id": "t"}})
        assert (now.values["listed"], now.next) == ([1, 2, 3, 4, 5, 6], ())
        before = await graph.aget_state(now.parent_config)
        assert (before.values["number"], before.next) == (3, ())


async def test_a_run_that_fails_stores_what_it_held_back_and_is_resumed(home: Installation) -> None:
    async with open_saver(home) as saver:
        steps = Counting("fails")
        graph = steps.compile(saver)
        with pytest.raises(ValueError, match="broken"):
            await graph.ainvoke({}, holding(), durability="sync")
        now = await graph.aget_state({"configurable": {"thread_id": "t"}})
        assert (now.values["number"], now.next) == (1, ("two",))
        assert "broken" in str(now.tasks[0].error)
        out = await graph.ainvoke(None, holding(), durability="sync")
        assert (out["number"], steps.ran) == (3, ["one", "two", "three"])


async def test_a_run_reads_its_checkpoint_once_and_changes_no_copy(
    home: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_saver(home) as saver:
        graph = Counting().compile(saver)
        await graph.ainvoke({}, holding(), durability="sync")
        config, loads = holding(), list[Any]()
        stored = type(saver).__mro__[2]
        load = stored.aget_tuple  # type: ignore[attr-defined]

        async def counted(self: Any, config: RunnableConfig) -> Any:
            loads.append(config)
            return await load(self, config)

        monkeypatch.setattr(stored, "aget_tuple", counted)
        seen = await graph.aget_state(config)
        await graph.ainvoke({}, config, durability="sync")
        assert len(loads) == 1
        assert seen.values["listed"] == [1, 2, 3]
        # What it stored meanwhile is read anew.
        assert (await graph.aget_state(config)).values["number"] == 6


@pytest.mark.parametrize("trouble", ["", "fails", "stateful"])
async def test_only_a_subgraph_that_stored_a_step_is_looked_for(
    home: Installation, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    looked = list[str]()
    async with open_saver(home) as saver:
        stored = type(saver).__mro__[2]
        load = stored.aget_tuple  # type: ignore[attr-defined]

        async def counted(self: Any, config: RunnableConfig) -> Any:
            looked.append(config["configurable"].get("checkpoint_ns", "").partition(":")[0])
            return await load(self, config)

        monkeypatch.setattr(stored, "aget_tuple", counted)
        steps = Counting(trouble)
        builder = StateGraph(Count)
        builder.add_node("before", lambda state: {"number": 0})
        builder.add_node(
            "inner",
            steps.compile(trouble == "stateful" or None),
            retry_policy=RetryPolicy(0, retry_on=ValueError),
        )
        builder.add_edge(START, "before")
        builder.add_edge("before", "inner")
        config: RunnableConfig = {
            "configurable": {"thread_id": "t", HELD: HeldCheckpoints(lambda _: False)}
        }
        out = await builder.compile(saver).ainvoke({}, config, durability="sync")
        assert out["number"] == 3
        assert looked == ["", *(["inner"] if trouble else [])]
