"""Credit: a recalled fact counts as accessed only where the tick used it."""

from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from memory.operations import apply
from memory.records.operations import add_fact
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.facts import draft
from tests.support.scripted import Step, call, scripted

OWNED = Settings(owners=["Ada"])
FACTS = {"home": "Ada lives in Bergen with two cats.", "harp": "Ada plays the harp at the mill."}


async def accesses(tmp_path: Path, *steps: Step) -> dict[str, int]:
    clock = Clock()
    async with opened(tmp_path / "data", scripted(*steps), clock, settings=OWNED) as agent:
        await _learn(agent)
        await agent.ainvoke(said("Where does Ada live?"))
        facts = await agent.resources.semantic.all(agent.scope)
    return {one["op"]: one.get("access_count", 0) for one in facts}


async def _learn(agent: AsyncAgent) -> None:
    memory: Any = {"store": agent.store, "semantic": agent.resources.semantic, "scope": agent.scope}
    drafts = [draft(op, text, speaker="Ada", entities=["Ada"]) for op, text in FACTS.items()]
    await apply.apply_operations([add_fact(one, "told") for one in drafts], **memory)


@pytest.mark.parametrize(
    ("steps", "used"),
    [
        (("You live in Bergen.",), {"home"}),
        (("I cannot say.",), set()),
        ((call("recall_memories", query="Bergen harp mill"), "I cannot say."), set()),
        ((call("recall_memories", query="Ada"), "You play the harp."), {"harp"}),
        ((call("send_message", to="Ben", text="She is in Bergen."),), {"home"}),
    ],
)
async def test_only_what_the_answer_used_is_credited(
    steps: tuple[Step, ...], used: set[str], tmp_path: Path
) -> None:
    found = await accesses(tmp_path, *steps)
    assert found == {op: int(op in used) for op in FACTS}
