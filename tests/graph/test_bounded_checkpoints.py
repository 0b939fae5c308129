"""What many ticks leave of checkpoints: the newest, and nothing of finished subgraphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from memory.settings import Settings
from tests.support.agents import Opening, said
from tests.support.homes import KINDS, rows
from tests.support.scripted import ScriptedChatModel, call, scripted

TICKS = 20


def model() -> ScriptedChatModel:
    """A tool and an answer for every event."""
    return scripted(*[one for _ in range(TICKS + 1) for one in (call("noop"), "I see.")])


@pytest.fixture(params=KINDS)
def data(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | None:
    """Where the agent is opened; every test here holds for both homes."""
    if request.param == "folder":
        return tmp_path / "data"
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    return None


async def test_many_ticks_leave_few_checkpoints_and_the_next_tick_is_right(
    opening: Opening,
) -> None:
    settings = Settings(reflection_interval=0)
    kept = settings.checkpoints_kept
    async with opening(model(), settings=settings) as agent:
        for run in range(10):
            await agent.ainvoke({"events": [{"text": f"{run}.{n}"} for n in range(TICKS // 10)]})
        saver = agent.graph.checkpointer
        assert isinstance(saver, BaseCheckpointSaver)
        # The state before the newest run is kept too, for a rollback.
        assert await rows(saver, "checkpoints", "checkpoint_ns = ''") <= kept + 1
        assert await rows(saver, "checkpoints", "checkpoint_ns != ''") == 0
        assert await rows(saver, "writes", "checkpoint_ns != ''") == 0
    async with opening(scripted("Done."), settings=settings) as agent:
        out = await agent.ainvoke(said("One more"))
    tick = out["report"]["ticks"][0]
    assert (tick["tick"], tick["reply"]) == (TICKS + 1, "Done.")
    assert len(out["messages"]) == 4 * TICKS + 2


async def test_an_unfinished_tick_keeps_what_it_needs(opening: Opening) -> None:
    settings = Settings(checkpoints_kept=1)
    async with opening(model(), settings=settings) as agent:
        await agent.ainvoke(said("Before"))
        async for _, update in agent.astream(said("Go on"), stream_mode="updates", subgraphs=True):
            if "use_tools" in update:
                break
    left = scripted("Done.")
    async with opening(left, settings=settings) as agent:
        out = await agent.ainvoke(None)
    assert (out["report"]["ticks"][0]["reply"], len(left.calls)) == ("Done.", 1)
