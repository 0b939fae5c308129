"""How a night ends, and what is said of it: why it stopped, and whether there is more to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.nights import broke_off, find_night
from memory.errors import InputError
from tests.clock import Clock
from tests.dreamers import dreamer
from tests.test_night_previews import copy_of, lived
from tests.test_undo_resumed import breaks_off_a_tick

__all__ = ["lived"]


async def test_a_tick_broken_off_behind_a_night_in_the_same_run_is_none_of_the_nights(
    lived: Path, clock: Clock
) -> None:
    model = dreamer()
    async with copy_of(lived, "behind", clock, model) as agent:
        await breaks_off_a_tick(agent, request="sleep")
        record = await find_night(agent, "last")
        snapshot = await agent.aget_state()
        assert snapshot.values["report"]["night"]["id"] == record["id"]
        assert not await broke_off(agent, record)
        paid = len(model.calls)
        with pytest.raises(InputError, match="is applied: there is nothing to apply"):
            await agent.apply_night(record["id"])
        assert len(model.calls) == paid
        assert [task.name for task in (await agent.aget_state()).tasks] == ["awake"]
        assert len(await agent.nights()) == 2
